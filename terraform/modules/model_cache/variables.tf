variable "name" {
  description = "Prefix of bucket, project and role"
  type        = string
}

variable "kms_key_arn" {
  description = "Key for the bucket and the build output; null means SSE-S3"
  type        = string
  default     = null
}

variable "force_destroy" {
  description = "Delete the bucket with its content"
  type        = bool
}

variable "old_version_retention_days" {
  description = "How long a replaced object can be restored"
  type        = number
}

variable "log_retention_days" {
  description = "How long build logs are kept"
  type        = number
}

variable "weights" {
  description = "What to copy from Hugging Face and where to put it"
  type = object({
    repository = string
    revision   = string
    files      = list(string)
    sha256     = map(string)
    prefix     = string
  })
}
