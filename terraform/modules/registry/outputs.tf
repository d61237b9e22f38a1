output "repository_name" {
  description = "Name of the repository"
  value       = aws_ecr_repository.this.name
}

output "repository_url" {
  description = "URL of the repository"
  value       = aws_ecr_repository.this.repository_url
}

output "repository_arn" {
  description = "ARN of the repository"
  value       = aws_ecr_repository.this.arn
}

output "image_project" {
  description = "CodeBuild project that builds the image"
  value       = aws_codebuild_project.image.name
}

output "log_group" {
  description = "Log group of the build"
  value       = aws_cloudwatch_log_group.image.name
}
