# The autoscaling module on its own: units, order of bounds, and what happens to an idle fleet.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  endpoint_name        = "speech"
  variant_name         = "primary"
  min_instances        = 1
  max_instances        = 9
  target_value         = 37.5
  scale_in_threshold   = 25
  scale_out_cooldown_s = 30
  scale_in_cooldown_s  = 960
  scheduled_actions    = {}
}

run "policies" {
  command = plan

  module {
    source = "./modules/autoscaling"
  }

  assert {
    condition = (
      aws_appautoscaling_target.this.resource_id == "endpoint/speech/variant/primary" &&
      aws_appautoscaling_target.this.min_capacity == 1 && aws_appautoscaling_target.this.max_capacity == 9
    )
    error_message = "the target carries the plan's bounds"
  }

  assert {
    condition = (
      aws_appautoscaling_policy.scale_out.policy_type == "TargetTrackingScaling" &&
      aws_appautoscaling_policy.scale_out.target_tracking_scaling_policy_configuration[0].disable_scale_in &&
      aws_appautoscaling_policy.scale_out.target_tracking_scaling_policy_configuration[0].target_value == 37.5 &&
      aws_appautoscaling_policy.scale_out.target_tracking_scaling_policy_configuration[0].scale_out_cooldown == 30 &&
      aws_appautoscaling_policy.scale_out.target_tracking_scaling_policy_configuration[0].predefined_metric_specification[0].predefined_metric_type == "SageMakerVariantConcurrentRequestsPerModelHighResolution"
    )
    error_message = "scale-out tracks the high-resolution metric and never scales in"
  }

  assert {
    condition = (
      aws_appautoscaling_policy.scale_in.policy_type == "StepScaling" &&
      aws_appautoscaling_policy.scale_in.step_scaling_policy_configuration[0].cooldown == 960 &&
      aws_appautoscaling_policy.scale_in.step_scaling_policy_configuration[0].metric_aggregation_type == "Maximum" &&
      length(aws_appautoscaling_policy.scale_in.step_scaling_policy_configuration[0].step_adjustment) == 1
    )
    error_message = "scale-in is one step"
  }

  assert {
    condition = alltrue([
      for step in aws_appautoscaling_policy.scale_in.step_scaling_policy_configuration[0].step_adjustment :
      step.scaling_adjustment == -1 && step.metric_interval_upper_bound == "0" && (step.metric_interval_lower_bound == null || step.metric_interval_lower_bound == "")
    ])
    error_message = "the step covers everything below the threshold, relative to it"
  }

  assert {
    condition = (
      aws_cloudwatch_metric_alarm.scale_in.alarm_name == "speech-scale-in" &&
      aws_cloudwatch_metric_alarm.scale_in.metric_name == "ConcurrentRequestsPerModel" &&
      aws_cloudwatch_metric_alarm.scale_in.statistic == "Maximum" &&
      aws_cloudwatch_metric_alarm.scale_in.period == 60 &&
      aws_cloudwatch_metric_alarm.scale_in.evaluation_periods == 3 &&
      aws_cloudwatch_metric_alarm.scale_in.datapoints_to_alarm == 3 &&
      aws_cloudwatch_metric_alarm.scale_in.comparison_operator == "LessThanThreshold" &&
      aws_cloudwatch_metric_alarm.scale_in.threshold == 25
    )
    error_message = "the alarm reads the Maximum over three minutes"
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.scale_in.treat_missing_data == "breaching"
    error_message = "an idle fleet that reports nothing must shrink"
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.scale_in.dimensions == tomap({ EndpointName = "speech", VariantName = "primary" })
    error_message = "the alarm reads the variant's own metric"
  }

  assert {
    condition     = length(aws_appautoscaling_scheduled_action.this) == 0
    error_message = "no schedule unless asked for"
  }
}

run "schedules" {
  command = plan

  module {
    source = "./modules/autoscaling"
  }

  variables {
    scheduled_actions = {
      day   = { schedule = "cron(0 6 ? * MON-FRI *)", timezone = "Europe/Zurich", min_instances = 4 }
      night = { schedule = "cron(0 22 * * ? *)", timezone = "Europe/Zurich", min_instances = 1, max_instances = 3 }
    }
  }

  assert {
    condition = (
      aws_appautoscaling_scheduled_action.this["day"].scalable_target_action[0].min_capacity == "4" &&
      aws_appautoscaling_scheduled_action.this["night"].scalable_target_action[0].max_capacity == "3" &&
      aws_appautoscaling_scheduled_action.this["night"].timezone == "Europe/Zurich" &&
      aws_appautoscaling_scheduled_action.this["day"].resource_id == "endpoint/speech/variant/primary"
    )
    error_message = "schedules move the bounds of the same target"
  }
}
