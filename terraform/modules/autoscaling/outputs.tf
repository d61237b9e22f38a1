output "resource_id" {
  description = "Application Auto Scaling's id of the variant"
  value       = aws_appautoscaling_target.this.resource_id
}

output "policy_names" {
  description = "Scale-out and scale-in policy"
  value = {
    scale_out = aws_appautoscaling_policy.scale_out.name
    scale_in  = aws_appautoscaling_policy.scale_in.name
  }
}

output "alarm_name" {
  description = "The alarm behind scale-in"
  value       = aws_cloudwatch_metric_alarm.scale_in.alarm_name
}
