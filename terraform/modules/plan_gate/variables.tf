variable "plan_json" {
  description = "Path of the plan; null means there is none"
  type        = string
  nullable    = true
}

variable "deployed" {
  description = "What this configuration deploys, to be compared with what was measured; image_digest null means no endpoint"
  type = object({
    instance_type         = string
    image_digest          = string
    model_data_url        = string
    container_environment = map(string)
  })
}
