output "alarm_names" {
  description = "Every alarm, by meaning"
  value       = { for key, alarm in aws_cloudwatch_metric_alarm.this : key => alarm.alarm_name }
}

output "dashboard_name" {
  description = "Name of the dashboard"
  value       = aws_cloudwatch_dashboard.this.dashboard_name
}
