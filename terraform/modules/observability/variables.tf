variable "endpoint_name" {
  description = "Name of the endpoint"
  type        = string
}

variable "variant_name" {
  description = "Name of the variant"
  type        = string
}

variable "log_group" {
  description = "Log group of the containers"
  type        = string
}

variable "plan" {
  description = "The plan's numbers the alarms stand on"
  type = object({
    scaling_target_value = number
    scale_in_threshold   = number
    queue_max_depth      = number
    max_instances        = number
    first_chunk_alarm_ms = number
    slo_ms               = number
    service_p95_s        = number
    t_total_s            = number
  })
}

variable "alarm_topic_arns" {
  description = "SNS topics told when an alarm fires and when it recovers"
  type        = list(string)
}
