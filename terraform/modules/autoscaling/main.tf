# The scalable target, fast scale-out on the high-resolution metric, careful scale-in on an alarm of our own.
# Destroy goes alarm, policies, target, endpoint: each refers to the one after it.

resource "aws_appautoscaling_target" "this" {
  service_namespace  = "sagemaker"
  scalable_dimension = "sagemaker:variant:DesiredInstanceCount"
  resource_id        = "endpoint/${var.endpoint_name}/variant/${var.variant_name}"
  min_capacity       = var.min_instances
  max_capacity       = var.max_instances
}

################################################################################
# Out: target tracking; AWS owns its alarms
################################################################################

resource "aws_appautoscaling_policy" "scale_out" {
  name               = "${var.endpoint_name}-scale-out"
  policy_type        = "TargetTrackingScaling"
  service_namespace  = aws_appautoscaling_target.this.service_namespace
  scalable_dimension = aws_appautoscaling_target.this.scalable_dimension
  resource_id        = aws_appautoscaling_target.this.resource_id

  target_tracking_scaling_policy_configuration {
    target_value       = var.target_value
    scale_out_cooldown = var.scale_out_cooldown_s
    scale_in_cooldown  = var.scale_in_cooldown_s
    disable_scale_in   = true

    predefined_metric_specification {
      predefined_metric_type = "SageMakerVariantConcurrentRequestsPerModelHighResolution"
    }
  }

  lifecycle {
    # Deregistering a target deletes its policies at AWS, so a new target needs new ones.
    replace_triggered_by = [aws_appautoscaling_target.this.arn]
  }
}

################################################################################
# In: one instance at a time
################################################################################

resource "aws_appautoscaling_policy" "scale_in" {
  name               = "${var.endpoint_name}-scale-in"
  policy_type        = "StepScaling"
  service_namespace  = aws_appautoscaling_target.this.service_namespace
  scalable_dimension = aws_appautoscaling_target.this.scalable_dimension
  resource_id        = aws_appautoscaling_target.this.resource_id

  step_scaling_policy_configuration {
    adjustment_type         = "ChangeInCapacity"
    metric_aggregation_type = "Maximum"
    cooldown                = var.scale_in_cooldown_s

    # Relative to the alarm's threshold: everything below it, so there is no gap to fall into.
    step_adjustment {
      metric_interval_upper_bound = 0
      scaling_adjustment          = -1
    }
  }

  lifecycle {
    replace_triggered_by = [aws_appautoscaling_target.this.arn]
  }
}

resource "aws_cloudwatch_metric_alarm" "scale_in" {
  alarm_name        = "${var.endpoint_name}-scale-in"
  alarm_description = "Fewer than ${var.scale_in_threshold} concurrent requests an instance for three minutes: one instance less"

  namespace   = "AWS/SageMaker"
  metric_name = "ConcurrentRequestsPerModel"
  dimensions = {
    EndpointName = var.endpoint_name
    VariantName  = var.variant_name
  }

  # AWS lists only Minimum and Maximum for this metric.
  statistic           = "Maximum"
  period              = 60
  evaluation_periods  = 3
  datapoints_to_alarm = 3
  comparison_operator = "LessThanThreshold"
  threshold           = var.scale_in_threshold

  # AWS does not say whether an idle variant reports zeros or nothing. Nothing for three minutes counts as idle, so that
  # an unused fleet does not bill for ever; the cooldown and the minimum bound what a metrics outage can remove, and
  # the alarm on lost data tells of it. FILL() would also turn merely late data into zeros.
  treat_missing_data = "breaching"

  alarm_actions = [aws_appautoscaling_policy.scale_in.arn]
}

################################################################################
# By the clock
################################################################################

resource "aws_appautoscaling_scheduled_action" "this" {
  for_each = var.scheduled_actions

  name               = "${var.endpoint_name}-${each.key}"
  service_namespace  = aws_appautoscaling_target.this.service_namespace
  scalable_dimension = aws_appautoscaling_target.this.scalable_dimension
  resource_id        = aws_appautoscaling_target.this.resource_id
  schedule           = each.value.schedule
  timezone           = each.value.timezone

  scalable_target_action {
    min_capacity = each.value.min_instances
    max_capacity = each.value.max_instances
  }
}
