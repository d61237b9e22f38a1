# Alarms: microseconds against milliseconds, designed rejections left out, actions only where given.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  endpoint_name    = "speech"
  variant_name     = "primary"
  log_group        = "/aws/sagemaker/Endpoints/speech"
  alarm_topic_arns = []

  plan = {
    scaling_target_value = 37.5
    scale_in_threshold   = 25
    queue_max_depth      = 50
    max_instances        = 9
    first_chunk_alarm_ms = 2292
    slo_ms               = 3000
    service_p95_s        = 0.0661
    t_total_s            = 320.2
  }
}

run "alarms" {
  command = plan

  module {
    source = "./modules/observability"
  }

  assert {
    condition = toset(keys(aws_cloudwatch_metric_alarm.this)) == toset([
      "first-chunk", "first-chunk-service", "first-chunk-slo", "server-errors", "concurrency-over-target", "capacity-below-desired", "no-data",
    ])
    error_message = "seven alarms, each with one meaning"
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.this["first-chunk"].threshold == 2292 && aws_cloudwatch_metric_alarm.this["first-chunk-service"].threshold == 100 && aws_cloudwatch_metric_alarm.this["first-chunk-slo"].threshold == 3000
    error_message = "thresholds are in milliseconds"
  }

  assert {
    condition = alltrue([
      for name in ["first-chunk", "first-chunk-service", "first-chunk-slo"] :
      anytrue([for query in aws_cloudwatch_metric_alarm.this[name].metric_query : strcontains(query.expression, "/ 1000") if query.id == "result"])
    ])
    error_message = "and so is what they are compared with: the metric is in microseconds"
  }

  assert {
    condition     = anytrue([for query in aws_cloudwatch_metric_alarm.this["first-chunk-service"].metric_query : startswith(query.expression, "IF(concurrency <= 1,") if query.id == "result"])
    error_message = "service time is read where nothing queues"
  }

  assert {
    condition     = contains([for query in aws_cloudwatch_metric_alarm.this["server-errors"].metric_query : query.id], "rejections")
    error_message = "designed rejections are no errors"
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.this["capacity-below-desired"].evaluation_periods == 9
    error_message = "1.5 x 320.2 s is 9 minutes"
  }

  assert {
    condition     = alltrue([for alarm in aws_cloudwatch_metric_alarm.this : try(length(alarm.alarm_actions), 0) == 0])
    error_message = "nobody is told unless a topic is given"
  }

  assert {
    condition = toset(flatten([
      for alarm in aws_cloudwatch_metric_alarm.this : [
        for query in alarm.metric_query : [
          for metric in query.metric : metric.dimensions if metric.namespace != "Headroom"
        ]
      ]
    ])) == toset([tomap({ EndpointName = "speech", VariantName = "primary" })])
    error_message = "every metric of the endpoint is read for this endpoint and this variant"
  }

  assert {
    condition = alltrue(flatten([
      for widget in jsondecode(aws_cloudwatch_dashboard.this.dashboard_body).widgets : [
        for metric in widget.properties.metrics :
        strcontains(jsonencode(metric), "\"EndpointName\",\"speech\",\"VariantName\",\"primary\"")
        if can(tostring(metric[0])) && metric[0] != "Headroom"
      ]
    ]))
    error_message = "and so is every metric of the dashboard"
  }
}

run "topics" {
  command = plan

  module {
    source = "./modules/observability"
  }

  variables {
    alarm_topic_arns = ["arn:aws:sns:eu-west-1:111122223333:ops"]
  }

  assert {
    condition = alltrue([
      for alarm in aws_cloudwatch_metric_alarm.this :
      alarm.alarm_actions == toset(["arn:aws:sns:eu-west-1:111122223333:ops"]) && alarm.ok_actions == alarm.alarm_actions
    ])
    error_message = "every alarm tells the given topics, and when it is over"
  }
}
