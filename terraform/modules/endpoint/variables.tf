variable "endpoint_name" {
  description = "Name of the endpoint, and prefix of everything it owns"
  type        = string
}

variable "variant_name" {
  description = "Name of the only variant"
  type        = string
}

variable "name_salt" {
  description = "Part of the names' hash, changed to get new names for the same content"
  type        = string
  default     = ""
}

variable "image" {
  description = "Repository and digest of the container image"
  type = object({
    repository_name = string
    repository_url  = string
    repository_arn  = string
    digest          = string
  })
}

variable "environment" {
  description = "Environment of the container"
  type        = map(string)
}

variable "model_data" {
  description = "Weights in S3; null when the image needs none"
  type = object({
    bucket     = string
    bucket_arn = string
    prefix     = string
  })
  default = null
}

variable "instance_type" {
  description = "SageMaker instance type"
  type        = string
}

variable "initial_instance_count" {
  description = "Instances a new configuration starts with"
  type        = number
}

variable "container_startup_timeout_s" {
  description = "How long a new instance may take to pass its first health check"
  type        = number
}

variable "model_download_timeout_s" {
  description = "How long the weights may take to reach a new instance"
  type        = number
}

variable "inference_ami_version" {
  description = "SageMaker host image; null takes al2-ami-sagemaker-inference-gpu-3-1 (driver 550) for ml.g4dn, g5, g6 and g6e, SageMaker's default elsewhere"
  type        = string
  default     = null
}

variable "vpc_config" {
  description = "Subnets and security groups; null for none"
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
  })
  default = null
}

variable "kms_key_arn" {
  description = "Key that weights and image are encrypted with; null for AWS-managed encryption"
  type        = string
  default     = null
}

variable "volume_kms_key_arn" {
  description = "Key for the instances' storage volume; null for none"
  type        = string
  default     = null
}

variable "log_retention_days" {
  description = "How long the endpoint's logs are kept"
  type        = number
}
