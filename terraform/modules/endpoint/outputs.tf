output "endpoint_name" {
  description = "Name of the endpoint"
  value       = aws_sagemaker_endpoint.this.name
}

output "variant_name" {
  description = "Name of the variant"
  value       = aws_sagemaker_endpoint_configuration.this.production_variants[0].variant_name
}

output "endpoint_config_name" {
  description = "The configuration that should be live"
  value       = aws_sagemaker_endpoint_configuration.this.name
}

output "model_name" {
  description = "The model behind it"
  value       = aws_sagemaker_model.this.name
}

output "role_arn" {
  description = "The endpoint's role"
  value       = aws_iam_role.this.arn
}

output "log_group" {
  description = "Log group of the containers"
  value       = aws_cloudwatch_log_group.this.name
}
