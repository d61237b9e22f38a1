# Model, configuration and endpoint. Model and configuration cannot be changed at AWS, so their names carry a hash of
# their content: any change makes a new pair, and the endpoint moves over in place.

locals {
  data_uri = var.model_data == null ? null : "s3://${var.model_data.bucket}/${var.model_data.prefix}"

  model = {
    image             = "${var.image.repository_name}@${var.image.digest}" # not the URL: names are known at plan time
    environment       = var.environment
    data_uri          = local.data_uri
    vpc_config        = var.vpc_config
    role              = "${var.endpoint_name}-endpoint"
    network_isolation = true
    salt              = var.name_salt
  }
  model_name = "${var.endpoint_name}-${substr(sha256(jsonencode(local.model)), 0, 8)}"

  # The image brings CUDA 12.8, which needs driver 525; SageMaker's own choice for these families has 470.
  default_ami_version = can(regex("^ml\\.(g4dn|g5|g6|g6e)\\.", var.instance_type)) ? "al2-ami-sagemaker-inference-gpu-3-1" : null
  ami_version         = var.inference_ami_version != null ? var.inference_ami_version : local.default_ami_version

  # Without the instance count: that is the autoscaler's, and a change of it is no new configuration.
  config = {
    model_name           = local.model_name
    variant_name         = var.variant_name
    instance_type        = var.instance_type
    startup_timeout_s    = var.container_startup_timeout_s
    download_timeout_s   = var.model_download_timeout_s
    ami_version          = local.ami_version
    volume_kms_key_arn   = var.volume_kms_key_arn
    routing_strategy     = "LEAST_OUTSTANDING_REQUESTS"
    initial_traffic_part = 1
  }
  config_name = "${var.endpoint_name}-${substr(sha256(jsonencode(local.config)), 0, 8)}"
}

################################################################################
# What must exist before SageMaker is asked for ten minutes of its time
################################################################################

# Nothing refers to it: reading it fails the plan when the repository lacks the image, and the error shows this name.
data "aws_ecr_image" "image_digest_in_repository" {
  repository_name = var.image.repository_name
  image_digest    = var.image.digest
}

data "aws_s3_objects" "weights" {
  count = var.model_data == null ? 0 : 1

  bucket = var.model_data.bucket
  prefix = "${var.model_data.prefix}SHA256SUMS"
}

################################################################################
# Endpoint
################################################################################

resource "aws_cloudwatch_log_group" "this" {
  name              = "/aws/sagemaker/Endpoints/${var.endpoint_name}"
  retention_in_days = var.log_retention_days
}

resource "aws_sagemaker_model" "this" {
  name                     = local.model_name
  execution_role_arn       = aws_iam_role.this.arn
  enable_network_isolation = local.model.network_isolation

  primary_container {
    image       = "${var.image.repository_url}@${var.image.digest}"
    environment = local.model.environment

    dynamic "model_data_source" {
      for_each = local.model.data_uri[*]

      content {
        s3_data_source {
          s3_uri           = model_data_source.value
          s3_data_type     = "S3Prefix"
          compression_type = "None"
        }
      }
    }
  }

  dynamic "vpc_config" {
    for_each = local.model.vpc_config[*]

    content {
      subnets            = vpc_config.value.subnet_ids
      security_group_ids = vpc_config.value.security_group_ids
    }
  }

  depends_on = [aws_iam_role_policy.this]

  lifecycle {
    create_before_destroy = true

    precondition {
      condition     = var.model_data == null || length(try(data.aws_s3_objects.weights[0].keys, [])) > 0
      error_message = "There is no SHA256SUMS under ${coalesce(local.data_uri, "(no model data)")}, so the weights are missing or half copied; run the weights build first, or set mount_model_data to false for an image that needs none."
    }
  }
}

resource "aws_sagemaker_endpoint_configuration" "this" {
  name        = local.config_name
  kms_key_arn = local.config.volume_kms_key_arn

  production_variants {
    variant_name           = local.config.variant_name
    model_name             = aws_sagemaker_model.this.name
    instance_type          = local.config.instance_type
    initial_instance_count = var.initial_instance_count
    initial_variant_weight = local.config.initial_traffic_part
    inference_ami_version  = local.config.ami_version

    container_startup_health_check_timeout_in_seconds = local.config.startup_timeout_s
    model_data_download_timeout_in_seconds            = local.config.download_timeout_s

    routing_config {
      routing_strategy = local.config.routing_strategy
    }
  }

  lifecycle {
    create_before_destroy = true

    # A new configuration takes the count it is given; an existing one is not replaced for it.
    ignore_changes = [production_variants[0].initial_instance_count]
  }
}

resource "aws_sagemaker_endpoint" "this" {
  name                 = var.endpoint_name
  endpoint_config_name = aws_sagemaker_endpoint_configuration.this.name

  depends_on = [aws_iam_role_policy.this, aws_cloudwatch_log_group.this]

  lifecycle {
    postcondition {
      condition     = self.endpoint_config_name == local.config_name
      error_message = "SageMaker runs ${self.endpoint_config_name}, intended was ${local.config_name}: it rolled the update back. `aws sagemaker describe-endpoint --endpoint-name ${var.endpoint_name}` has the FailureReason, log group /aws/sagemaker/Endpoints/${var.endpoint_name} the container's last words."
    }
  }
}
