output "bucket" {
  description = "Name of the bucket"
  value       = aws_s3_bucket.this.bucket
}

output "bucket_arn" {
  description = "ARN of the bucket"
  value       = local.bucket_arn
}

output "weights_uri" {
  description = "Where the weights go, ending in /"
  value       = "s3://${local.bucket_name}/${var.weights.prefix}"
}

output "weights_project" {
  description = "CodeBuild project that copies the weights"
  value       = aws_codebuild_project.weights.name
}

output "log_group" {
  description = "Log group of the copy"
  value       = aws_cloudwatch_log_group.weights.name
}
