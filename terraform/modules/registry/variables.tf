variable "name" {
  description = "Prefix of repository, project and role"
  type        = string
}

variable "model_name" {
  description = "Last part of the repository's name"
  type        = string
}

variable "kms_key_arn" {
  description = "Key for the repository and the build output; null means AWS-managed encryption"
  type        = string
  default     = null
}

variable "force_destroy" {
  description = "Delete the repository with its images"
  type        = bool
}

variable "images_kept" {
  description = "Images kept in the repository"
  type        = number
}

variable "log_retention_days" {
  description = "How long build logs are kept"
  type        = number
}

variable "source_bucket" {
  description = "Bucket and key of the archive the image is built from"
  type = object({
    name = string
    arn  = string
    key  = string
  })
}

variable "dockerfile" {
  description = "Dockerfile inside the archive"
  type        = string
}

variable "compute_type" {
  description = "CodeBuild compute type"
  type        = string
}
