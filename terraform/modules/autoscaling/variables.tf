variable "endpoint_name" {
  description = "Name of the endpoint"
  type        = string
}

variable "variant_name" {
  description = "Name of the variant"
  type        = string
}

variable "min_instances" {
  description = "Smallest fleet"
  type        = number
}

variable "max_instances" {
  description = "Largest fleet"
  type        = number
}

variable "target_value" {
  description = "Concurrent requests an instance to track, in the units the alarm reads"
  type        = number
}

variable "scale_in_threshold" {
  description = "Concurrent requests an instance below which the fleet shrinks, in the units the alarm reads"
  type        = number
}

variable "scale_out_cooldown_s" {
  description = "Pause after a scale-out"
  type        = number
}

variable "scale_in_cooldown_s" {
  description = "Pause after a scale-in"
  type        = number
}

variable "scheduled_actions" {
  description = "Changes of the bounds by time"
  type = map(object({
    schedule      = string
    timezone      = string
    min_instances = optional(number)
    max_instances = optional(number)
  }))
}
