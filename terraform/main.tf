# Foundation always; the endpoint once there is an image; autoscaling once there is a plan that fits it.

data "aws_region" "this" {}

locals {
  model_data_prefix = coalesce(var.model_data_prefix, "models/${var.model_name}/${var.weights_revision}/")
  source_key        = "source/image.zip"

  deploys_endpoint = var.image_digest != null
  plan             = module.plan_gate.plan
  scales           = local.deploys_endpoint && local.plan != null && var.scaling_enabled

  # The bound is deployed with the plan that derived it; a measurement runs without one.
  environment = merge(
    var.container_environment,
    local.plan == null ? {} : { MAX_QUEUE_DEPTH = tostring(local.plan.queue_max_depth) },
  )
}

################################################################################
# Foundation
################################################################################

module "model_cache" {
  source = "./modules/model_cache"

  name                       = var.project_name
  kms_key_arn                = var.kms_key_arn
  force_destroy              = var.force_destroy
  old_version_retention_days = var.old_version_retention_days
  log_retention_days         = var.log_retention_days

  weights = {
    repository = var.weights_repository
    revision   = var.weights_revision
    files      = var.weights_files
    sha256     = var.weights_sha256
    prefix     = local.model_data_prefix
  }
}

module "registry" {
  source = "./modules/registry"

  name               = var.project_name
  model_name         = var.model_name
  kms_key_arn        = var.kms_key_arn
  force_destroy      = var.force_destroy
  images_kept        = var.images_kept
  log_retention_days = var.log_retention_days
  dockerfile         = var.dockerfile
  compute_type       = var.build_compute_type

  source_bucket = {
    name = module.model_cache.bucket
    arn  = module.model_cache.bucket_arn
    key  = local.source_key
  }
}

################################################################################
# Endpoint
################################################################################

module "endpoint" {
  source = "./modules/endpoint"
  count  = local.deploys_endpoint ? 1 : 0

  endpoint_name               = var.endpoint_name
  variant_name                = var.variant_name
  name_salt                   = var.name_salt
  environment                 = local.environment
  instance_type               = var.instance_type
  initial_instance_count      = max(var.initial_instance_count, try(local.plan.min_instances, 1))
  container_startup_timeout_s = var.container_startup_timeout_s
  model_download_timeout_s    = var.model_download_timeout_s
  inference_ami_version       = var.inference_ami_version
  vpc_config                  = var.vpc_config
  kms_key_arn                 = var.kms_key_arn
  volume_kms_key_arn          = var.volume_kms_key_arn
  log_retention_days          = var.log_retention_days

  image = {
    repository_name = module.registry.repository_name
    repository_url  = module.registry.repository_url
    repository_arn  = module.registry.repository_arn
    digest          = var.image_digest
  }

  model_data = !var.mount_model_data ? null : {
    bucket     = module.model_cache.bucket
    bucket_arn = module.model_cache.bucket_arn
    prefix     = local.model_data_prefix
  }
}

################################################################################
# Autoscaling: names come from the endpoint that exists, never from a second source
################################################################################

module "plan_gate" {
  source = "./modules/plan_gate"

  plan_json = var.plan_json

  deployed = {
    instance_type         = var.instance_type
    image_digest          = var.image_digest
    model_data_url        = var.mount_model_data ? module.model_cache.weights_uri : null
    container_environment = var.container_environment
  }
}

module "autoscaling" {
  source = "./modules/autoscaling"
  count  = local.scales ? 1 : 0

  endpoint_name        = module.endpoint[0].endpoint_name
  variant_name         = module.endpoint[0].variant_name
  min_instances        = local.plan.min_instances
  max_instances        = local.plan.max_instances
  target_value         = local.plan.scaling_target_value
  scale_in_threshold   = local.plan.scale_in_threshold
  scale_out_cooldown_s = local.plan.scale_out_cooldown_s
  scale_in_cooldown_s  = local.plan.scale_in_cooldown_s
  scheduled_actions    = var.scheduled_actions
}

module "observability" {
  source = "./modules/observability"
  count  = local.scales ? 1 : 0

  endpoint_name    = module.endpoint[0].endpoint_name
  variant_name     = module.endpoint[0].variant_name
  log_group        = module.endpoint[0].log_group
  plan             = local.plan
  alarm_topic_arns = var.alarm_topic_arns
}
