################################################################################
# What the commands read
################################################################################

output "region" {
  description = "Region of everything here"
  value       = data.aws_region.this.id
}

output "endpoint_name" {
  description = "Name of the endpoint, deployed or not"
  value       = var.endpoint_name
}

output "variant_name" {
  description = "Name of its only variant"
  value       = var.variant_name
}

output "endpoint_config_name" {
  description = "The configuration that should be live; null without an endpoint"
  value       = one(module.endpoint[*].endpoint_config_name)
}

output "sagemaker_model_name" {
  description = "The SageMaker model that should be live; null without an endpoint"
  value       = one(module.endpoint[*].model_name)
}

output "instance_type" {
  description = "Instance type of the variant"
  value       = var.instance_type
}

output "image_digest" {
  description = "Digest of the deployed image; null without an endpoint"
  value       = var.image_digest
}

output "log_group" {
  description = "Log group of the containers; null without an endpoint"
  value       = one(module.endpoint[*].log_group)
}

################################################################################
# Foundation
################################################################################

output "bucket" {
  description = "Bucket of the weights and of the image's source archive"
  value       = module.model_cache.bucket
}

output "source_key" {
  description = "Key of the source archive the image is built from"
  value       = local.source_key
}

output "model_data_uri" {
  description = "Where the weights go"
  value       = module.model_cache.weights_uri
}

output "repository_name" {
  description = "Name of the image repository"
  value       = module.registry.repository_name
}

output "repository_url" {
  description = "URL of the image repository"
  value       = module.registry.repository_url
}

output "image_project" {
  description = "CodeBuild project that builds the image; a build names its IMAGE_TAG"
  value       = module.registry.image_project
}

output "weights_project" {
  description = "CodeBuild project that copies the weights"
  value       = module.model_cache.weights_project
}

################################################################################
# Autoscaling
################################################################################

output "plan" {
  description = "The plan's numbers as deployed; null without a plan"
  value       = local.plan
}

output "scaling_resource_id" {
  description = "Application Auto Scaling's id of the variant; null without autoscaling"
  value       = one(module.autoscaling[*].resource_id)
}

output "scaling_policy_names" {
  description = "Scale-out and scale-in policy; null without autoscaling"
  value       = one(module.autoscaling[*].policy_names)
}

output "scale_in_alarm_name" {
  description = "The alarm behind scale-in; null without autoscaling"
  value       = one(module.autoscaling[*].alarm_name)
}

output "alarm_names" {
  description = "Alarms for people, by meaning; empty without autoscaling"
  value       = try(module.observability[0].alarm_names, {})
}

output "dashboard_name" {
  description = "CloudWatch dashboard; null without autoscaling"
  value       = one(module.observability[*].dashboard_name)
}
