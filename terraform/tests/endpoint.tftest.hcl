# The endpoint module on its own: what SageMaker is asked for, options set and unset.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  endpoint_name               = "speech"
  variant_name                = "primary"
  environment                 = { ENGINE = "kokoro", MAX_QUEUE_DEPTH = "50" }
  instance_type               = "ml.g5.xlarge"
  initial_instance_count      = 3
  container_startup_timeout_s = 600
  model_download_timeout_s    = 700
  log_retention_days          = 30

  image = {
    repository_name = "headroom/kokoro-82m"
    repository_url  = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/headroom/kokoro-82m"
    repository_arn  = "arn:aws:ecr:eu-west-1:111122223333:repository/headroom/kokoro-82m"
    digest          = "sha256:8b1b96bc4dc0b30ddd84d8fe37af7c490937333c44a9f8f7d77b918c3d7eaced"
  }

  model_data = {
    bucket     = "headroom-111122223333-eu-west-1"
    bucket_arn = "arn:aws:s3:::headroom-111122223333-eu-west-1"
    prefix     = "models/kokoro-82m/"
  }
}

run "defaults" {
  command = plan

  module {
    source = "./modules/endpoint"
  }

  assert {
    condition     = aws_sagemaker_model.this.primary_container[0].image == "111122223333.dkr.ecr.eu-west-1.amazonaws.com/headroom/kokoro-82m@sha256:8b1b96bc4dc0b30ddd84d8fe37af7c490937333c44a9f8f7d77b918c3d7eaced"
    error_message = "the image is addressed by digest"
  }

  assert {
    condition     = aws_sagemaker_model.this.enable_network_isolation
    error_message = "the container has no network"
  }

  assert {
    condition     = aws_sagemaker_model.this.primary_container[0].environment == tomap({ ENGINE = "kokoro", MAX_QUEUE_DEPTH = "50" })
    error_message = "the environment arrives unchanged"
  }

  assert {
    condition = (
      aws_sagemaker_model.this.primary_container[0].model_data_source[0].s3_data_source[0].s3_uri == "s3://headroom-111122223333-eu-west-1/models/kokoro-82m/" &&
      aws_sagemaker_model.this.primary_container[0].model_data_source[0].s3_data_source[0].s3_data_type == "S3Prefix" &&
      aws_sagemaker_model.this.primary_container[0].model_data_source[0].s3_data_source[0].compression_type == "None"
    )
    error_message = "the weights are mounted uncompressed from the cache"
  }

  assert {
    condition = (
      aws_sagemaker_endpoint_configuration.this.production_variants[0].routing_config[0].routing_strategy == "LEAST_OUTSTANDING_REQUESTS" &&
      aws_sagemaker_endpoint_configuration.this.production_variants[0].container_startup_health_check_timeout_in_seconds == 600 &&
      aws_sagemaker_endpoint_configuration.this.production_variants[0].model_data_download_timeout_in_seconds == 700 &&
      aws_sagemaker_endpoint_configuration.this.production_variants[0].initial_instance_count == 3 &&
      aws_sagemaker_endpoint_configuration.this.production_variants[0].instance_type == "ml.g5.xlarge"
    )
    error_message = "routing, timeouts, count and type belong to the variant"
  }

  assert {
    condition     = length(aws_sagemaker_endpoint_configuration.this.data_capture_config) == 0
    error_message = "nobody's requests are recorded"
  }

  assert {
    condition     = aws_sagemaker_endpoint.this.endpoint_config_name == aws_sagemaker_endpoint_configuration.this.name
    error_message = "the endpoint runs this configuration"
  }

  assert {
    condition     = length(aws_sagemaker_model.this.vpc_config) == 0 && aws_sagemaker_endpoint_configuration.this.kms_key_arn == null
    error_message = "options stay off until asked for"
  }

  assert {
    condition     = aws_sagemaker_endpoint_configuration.this.production_variants[0].inference_ami_version == "al2-ami-sagemaker-inference-gpu-3-1"
    error_message = "a GPU host has a driver that the image's CUDA can use"
  }

  assert {
    condition = [for statement in data.aws_iam_policy_document.this.statement : statement.sid] == [
      "LogIn", "PullImage", "WriteLogs", "WriteMetrics", "ReadWeights", "ListWeights",
    ]
    error_message = "the role has no permission it does not need"
  }
}

run "a_cpu_host_is_sagemakers_choice" {
  command = plan

  module {
    source = "./modules/endpoint"
  }

  variables {
    instance_type = "ml.c6i.xlarge"
  }

  assert {
    condition     = aws_sagemaker_endpoint_configuration.this.production_variants[0].inference_ami_version == null
    error_message = "no GPU, no driver"
  }
}

run "options" {
  command = plan

  module {
    source = "./modules/endpoint"
  }

  variables {
    instance_type         = "ml.m5.xlarge"
    inference_ami_version = "al2-ami-sagemaker-inference-gpu-2-1"
    kms_key_arn           = "arn:aws:kms:eu-west-1:111122223333:key/aaaaaaaa-2222-3333-4444-555555555555"
    volume_kms_key_arn    = "arn:aws:kms:eu-west-1:111122223333:key/bbbbbbbb-2222-3333-4444-555555555555"
    vpc_config            = { subnet_ids = ["subnet-1", "subnet-2"], security_group_ids = ["sg-1"] }
  }

  assert {
    condition     = aws_sagemaker_endpoint_configuration.this.production_variants[0].inference_ami_version == "al2-ami-sagemaker-inference-gpu-2-1"
    error_message = "the host image is the variant's"
  }

  assert {
    condition     = aws_sagemaker_endpoint_configuration.this.kms_key_arn == "arn:aws:kms:eu-west-1:111122223333:key/bbbbbbbb-2222-3333-4444-555555555555"
    error_message = "the volume key is used"
  }

  assert {
    condition     = aws_sagemaker_model.this.vpc_config[0].subnets == toset(["subnet-1", "subnet-2"]) && aws_sagemaker_model.this.vpc_config[0].security_group_ids == toset(["sg-1"])
    error_message = "the model runs in the VPC"
  }

  assert {
    condition     = aws_sagemaker_endpoint_configuration.this.name != run.defaults.endpoint_config_name && aws_sagemaker_model.this.name != run.defaults.model_name
    error_message = "options are content"
  }

  assert {
    condition = one([for statement in data.aws_iam_policy_document.this.statement : statement.resources if statement.sid == "UseKey"]) == toset([
      "arn:aws:kms:eu-west-1:111122223333:key/aaaaaaaa-2222-3333-4444-555555555555",
    ])
    error_message = "the role may use the key the weights are encrypted with"
  }

  assert {
    condition = one([for statement in data.aws_iam_policy_document.this.statement : statement.resources if statement.sid == "CreateInterfaces"]) == toset([
      "arn:aws:ec2:eu-west-1:111122223333:network-interface/*",
      "arn:aws:ec2:eu-west-1:111122223333:subnet/subnet-1",
      "arn:aws:ec2:eu-west-1:111122223333:subnet/subnet-2",
      "arn:aws:ec2:eu-west-1:111122223333:security-group/sg-1",
    ])
    error_message = "network interfaces only in the given subnets"
  }
}

run "an_image_that_needs_no_weights" {
  command = plan

  module {
    source = "./modules/endpoint"
  }

  variables {
    model_data = null
  }

  assert {
    condition     = length(aws_sagemaker_model.this.primary_container[0].model_data_source) == 0
    error_message = "nothing is mounted"
  }

  assert {
    condition     = !contains([for statement in data.aws_iam_policy_document.this.statement : statement.sid], "ReadWeights")
    error_message = "the role cannot read what it does not need"
  }
}

run "missing_weights_are_refused" {
  command = plan

  module {
    source = "./modules/endpoint"
  }

  override_data {
    target = data.aws_s3_objects.weights[0]
    values = {
      keys = []
    }
  }

  expect_failures = [aws_sagemaker_model.this]
}
