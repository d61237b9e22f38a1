# Every range and every rule between variables has a value that it refuses. Starting the provider is what a run costs, so
# one run holds the first such value of every variable, the next the second.

mock_provider "aws" {
  source = "./tests/mocks"
}

run "the_first_of_every_variable_is_refused" {
  command = plan

  variables {
    # project name too short
    project_name = "ab"
    # reserved tag
    tags = { "headroom:freeze" = "mine" }
    # endpoint name too long
    endpoint_name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    # variant name empty
    variant_name = ""
    # model name upper case
    model_name = "Kokoro"
    # image tag
    image_digest = "latest"
    # zero initial instances
    initial_instance_count = 0
    # own queue bound
    container_environment = { MAX_QUEUE_DEPTH = "10" }
    # startup timeout too short
    container_startup_timeout_s = 59
    # download timeout too short
    model_download_timeout_s = 59
    # ami of ec2
    inference_ami_version = "ami-0123456789abcdef0"
    # vpc without subnets
    vpc_config = { subnet_ids = [], security_group_ids = ["sg-1"] }
    # prefix without slash
    model_data_prefix = "models/kokoro"
    # weights repository without owner
    weights_repository = "Kokoro-82M"
    # weights branch
    weights_revision = "main"
    # no weights files
    weights_files = []
    # weights checksum too short
    weights_sha256 = { "kokoro-v1_0.pth" = "496dba11" }
    # kms alias
    kms_key_arn = "arn:aws:kms:eu-west-1:111122223333:alias/mine"
    # volume kms alias
    instance_type      = "ml.m5.xlarge"
    volume_kms_key_arn = "alias/mine"
    # odd log retention
    log_retention_days = 31
    # no version retention
    old_version_retention_days = 0
    # one image kept
    images_kept = 1
    # absolute dockerfile
    dockerfile = "/Dockerfile"
    # unknown compute type
    build_compute_type = "LARGE"
    # alarm to an address
    alarm_topic_arns = ["ops@example.com"]
    # schedule of unix cron
    scheduled_actions = { night = { schedule = "0 22 * * *", min_instances = 1 } }
  }

  expect_failures = [
    var.project_name,
    var.tags,
    var.endpoint_name,
    var.variant_name,
    var.model_name,
    var.image_digest,
    var.initial_instance_count,
    var.container_environment,
    var.container_startup_timeout_s,
    var.model_download_timeout_s,
    var.inference_ami_version,
    var.vpc_config,
    var.model_data_prefix,
    var.weights_repository,
    var.weights_revision,
    var.weights_files,
    var.weights_sha256,
    var.kms_key_arn,
    var.volume_kms_key_arn,
    var.log_retention_days,
    var.old_version_retention_days,
    var.images_kept,
    var.dockerfile,
    var.build_compute_type,
    var.alarm_topic_arns,
    var.scheduled_actions,
  ]
}

run "the_second_of_every_variable_is_refused" {
  command = plan

  variables {
    # project name upper case
    project_name = "Headroom"
    # endpoint name underscore
    endpoint_name = "speech_kokoro"
    # image tag with repository
    image_digest = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/headroom/kokoro-82m:latest"
    # half an instance
    initial_instance_count = 1.5
    # environment key with hyphen
    container_environment = { "MY-KEY" = "1" }
    # startup timeout too long
    container_startup_timeout_s = 3601
    # prefix with leading slash
    model_data_prefix = "/models/"
    # volume key on local storage
    instance_type      = "ml.g5.xlarge"
    volume_kms_key_arn = "arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555"
    # schedule without bounds
    scheduled_actions = { night = { schedule = "cron(0 22 * * ? *)" } }
  }

  expect_failures = [
    var.project_name,
    var.endpoint_name,
    var.image_digest,
    var.initial_instance_count,
    var.container_environment,
    var.container_startup_timeout_s,
    var.model_data_prefix,
    var.volume_kms_key_arn,
    var.scheduled_actions,
  ]
}

run "the_third_of_every_variable_is_refused" {
  command = plan

  variables {
    # image digest short
    image_digest = "sha256:8b1b96bc"
    # environment value too long
    container_environment = { KEY = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" }
    # schedule to zero
    scheduled_actions = { night = { schedule = "cron(0 22 * * ? *)", min_instances = 0 } }
    # instance type of ec2
    instance_type = "g5.xlarge"
  }

  expect_failures = [
    var.image_digest,
    var.container_environment,
    var.scheduled_actions,
    var.instance_type,
  ]
}

run "the_fourth_of_every_variable_is_refused" {
  command = plan

  variables {
    # schedule min above max
    scheduled_actions = { day = { schedule = "cron(0 6 * * ? *)", min_instances = 9, max_instances = 4 } }
  }

  expect_failures = [
    var.scheduled_actions,
  ]
}
