# Seven alarms that each mean one thing to do, and a dashboard with the same numbers.

data "aws_region" "this" {}

locals {
  namespace  = "AWS/SageMaker"
  dimensions = { EndpointName = var.endpoint_name, VariantName = var.variant_name }

  # How long a scale-out may take before its absence is news: half as long again as measured, in whole minutes.
  patience_periods = max(5, ceil(1.5 * var.plan.t_total_s / 60))

  # Of a request that is alone on its instance: half as slow again as measured is another engine.
  service_alarm_ms = ceil(1500 * var.plan.service_p95_s)
}

################################################################################
# Rejections: the container answers 503 by design when its queue is full or it is leaving
################################################################################

locals {
  own_namespace     = "Headroom"
  rejections_metric = "${var.endpoint_name}.DesignedRejections"
}

resource "aws_cloudwatch_log_metric_filter" "rejections" {
  name           = "${var.endpoint_name}-designed-rejections"
  log_group_name = var.log_group
  pattern        = "{ ($.outcome = \"queue_saturated\") || ($.outcome = \"draining\") }"

  metric_transformation {
    namespace     = local.own_namespace
    name          = local.rejections_metric
    value         = "1"
    default_value = "0"
  }
}

################################################################################
# Alarms
################################################################################

locals {
  metrics = {
    concurrency   = { name = "ConcurrentRequestsPerModel", stat = "Maximum" }
    first_chunk   = { name = "FirstChunkLatency", stat = "p95" }
    model_chunk   = { name = "FirstChunkModelLatency", stat = "p95" }
    invocations   = { name = "Invocations", stat = "Sum" }
    per_instance  = { name = "InvocationsPerInstance", stat = "Sum" }
    server_errors = { name = "Invocation5XXErrors", stat = "Sum" }
  }

  # Latency metrics are in microseconds.
  alarms = {
    first-chunk-service = {
      description = "Alone on its instance, a request's first chunk takes over ${local.service_alarm_ms} ms (p95), 1.5 times what was measured: the engine itself has slowed down. Measure again."
      reads       = ["concurrency", "model_chunk"]
      expression  = "IF(concurrency <= 1, model_chunk / 1000)"
      comparison  = "GreaterThanThreshold"
      threshold   = local.service_alarm_ms
      periods     = 5
      datapoints  = 3
    }
    first-chunk = {
      description = "p95 of the first chunk is over the plan's ${var.plan.first_chunk_alarm_ms} ms: more is queueing than at the scale-out trigger."
      reads       = ["first_chunk"]
      expression  = "first_chunk / 1000"
      comparison  = "GreaterThanThreshold"
      threshold   = var.plan.first_chunk_alarm_ms
      periods     = 5
      datapoints  = 3
    }
    first-chunk-slo = {
      description = "p95 of the first chunk is over the SLO of ${var.plan.slo_ms} ms: callers wait too long. See whether the fleet is growing."
      reads       = ["first_chunk"]
      expression  = "first_chunk / 1000"
      comparison  = "GreaterThanThreshold"
      threshold   = var.plan.slo_ms
      periods     = 3
      datapoints  = 3
    }
    server-errors = {
      description = "Over 1 % of the requests end in a 5XX that is no designed rejection: the container is failing. Read ${var.log_group}."
      reads       = ["server_errors", "invocations"]
      expression  = "IF(server_errors > FILL(rejections, 0), 100 * (server_errors - FILL(rejections, 0)) / invocations, 0)"
      comparison  = "GreaterThanThreshold"
      threshold   = 1
      periods     = 5
      datapoints  = 3
    }
    concurrency-over-target = {
      description = "Concurrency has been over the target of ${var.plan.scaling_target_value} for ${local.patience_periods} minutes, longer than a scale-out takes: load outruns the fleet."
      reads       = ["concurrency"]
      expression  = "concurrency"
      comparison  = "GreaterThanThreshold"
      threshold   = var.plan.scaling_target_value
      periods     = local.patience_periods
      datapoints  = local.patience_periods
    }
    # InvocationsPerInstance gets 1/instances for each request, so the quotient is the fleet in service.
    capacity-below-desired = {
      description = "Over the target for ${local.patience_periods} minutes with fewer than ${var.plan.max_instances} instances in service: capacity that was asked for does not arrive. Check quota, capacity and FailureReason."
      reads       = ["concurrency", "invocations", "per_instance"]
      expression  = "IF((concurrency > ${var.plan.scaling_target_value}) AND (invocations / per_instance < ${var.plan.max_instances - 0.5}), 1, 0)"
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      periods     = local.patience_periods
      datapoints  = local.patience_periods
    }
    no-data = {
      description = "Requests arrive but the metric that drives scaling is silent: the fleet cannot grow and would shrink. Suspend scale-in until it is back."
      reads       = ["concurrency", "invocations"]
      expression  = "IF((FILL(concurrency, -1) < 0) AND (FILL(invocations, 0) > 0), 1, 0)"
      comparison  = "GreaterThanThreshold"
      threshold   = 0
      periods     = 5
      datapoints  = 5
    }
  }
}

resource "aws_cloudwatch_metric_alarm" "this" {
  for_each = local.alarms

  alarm_name          = "${var.endpoint_name}-${each.key}"
  alarm_description   = each.value.description
  comparison_operator = each.value.comparison
  threshold           = each.value.threshold
  evaluation_periods  = each.value.periods
  datapoints_to_alarm = each.value.datapoints
  treat_missing_data  = "notBreaching" # no requests, no complaint
  alarm_actions       = var.alarm_topic_arns
  ok_actions          = var.alarm_topic_arns

  metric_query {
    id          = "result"
    label       = each.key
    expression  = each.value.expression
    return_data = true
  }

  dynamic "metric_query" {
    for_each = each.value.reads

    content {
      id = metric_query.value

      metric {
        namespace   = local.namespace
        metric_name = local.metrics[metric_query.value].name
        stat        = local.metrics[metric_query.value].stat
        period      = 60
        dimensions  = local.dimensions
      }
    }
  }

  dynamic "metric_query" {
    for_each = each.key == "server-errors" ? [1] : []

    content {
      id = "rejections"

      metric {
        namespace   = local.own_namespace
        metric_name = local.rejections_metric
        stat        = "Sum"
        period      = 60
      }
    }
  }
}

################################################################################
# Dashboard
################################################################################

locals {
  pair = ["EndpointName", var.endpoint_name, "VariantName", var.variant_name]
  widgets = [
    {
      title   = "Concurrency an instance"
      period  = 10
      metrics = [concat([local.namespace, "ConcurrentRequestsPerModel"], local.pair, [{ stat = "Maximum" }])]
      lines = [
        { label = "admission bound", value = var.plan.queue_max_depth },
        { label = "scale-out target", value = var.plan.scaling_target_value },
        { label = "scale-in threshold", value = var.plan.scale_in_threshold },
      ]
    },
    {
      title  = "First chunk (microseconds)"
      period = 60
      metrics = [
        concat([local.namespace, "FirstChunkLatency"], local.pair, [{ stat = "p95" }]),
        concat([local.namespace, "FirstChunkLatency"], local.pair, [{ stat = "p50" }]),
        concat([local.namespace, "FirstChunkModelLatency"], local.pair, [{ stat = "p95" }]),
      ]
      lines = [
        { label = "SLO", value = var.plan.slo_ms * 1000 },
        { label = "alarm", value = var.plan.first_chunk_alarm_ms * 1000 },
      ]
    },
    {
      title  = "Requests, errors, designed rejections"
      period = 60
      metrics = [
        concat([local.namespace, "Invocations"], local.pair, [{ stat = "Sum" }]),
        concat([local.namespace, "Invocation5XXErrors"], local.pair, [{ stat = "Sum" }]),
        concat([local.namespace, "Invocation4XXErrors"], local.pair, [{ stat = "Sum" }]),
        [local.own_namespace, local.rejections_metric, { stat = "Sum" }],
      ]
      lines = []
    },
    {
      title  = "Instances in service"
      period = 60
      metrics = [
        [{ expression = "invocations / per_instance", label = "in service" }],
        concat([local.namespace, "Invocations"], local.pair, [{ id = "invocations", stat = "Sum", visible = false }]),
        concat([local.namespace, "InvocationsPerInstance"], local.pair, [{ id = "per_instance", stat = "Sum", visible = false }]),
      ]
      lines = [{ label = "max_instances", value = var.plan.max_instances }]
    },
    {
      title  = "Utilisation"
      period = 60
      metrics = [
        for name in ["GPUUtilization", "CPUUtilization", "MemoryUtilization"] :
        concat(["/aws/sagemaker/Endpoints", name], local.pair, [{ stat = "Average" }])
      ]
      lines = []
    },
  ]
}

resource "aws_cloudwatch_dashboard" "this" {
  dashboard_name = var.endpoint_name

  dashboard_body = jsonencode({
    widgets = [
      for index, widget in local.widgets : {
        type   = "metric"
        x      = index % 2 * 12
        y      = floor(index / 2) * 6
        width  = 12
        height = 6
        properties = {
          title       = widget.title
          region      = data.aws_region.this.id
          view        = "timeSeries"
          period      = widget.period
          metrics     = widget.metrics
          annotations = { horizontal = widget.lines }
        }
      }
    ]
  })
}
