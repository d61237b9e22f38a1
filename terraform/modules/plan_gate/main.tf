# Reads plan.json and judges it against what is deployed. No resources: every fault is known at plan time.

locals {
  schema_version = 1

  path     = coalesce(var.plan_json, "(no plan)")
  text     = try(file(var.plan_json), null)
  document = try(jsondecode(local.text), null)
  derived  = try(local.document.derived, {})
  measured = try(local.document.fingerprint, null)

  replan = "run the planner again (make plan)"
}

################################################################################
# Is it a plan at all: only the first fault is worth telling
################################################################################

locals {
  kind    = try(coalesce(tostring(local.document.kind)), "missing")
  version = try(coalesce(tostring(local.document.schema_version)), "missing")

  not_a_plan = (
    var.plan_json == null ? null :
    trimspace(var.plan_json) == "" ? "plan_json is an empty string and not a path; set it to null for no plan, or ${local.replan}." :
    local.text == null ? "plan_json names ${local.path}, which cannot be read (missing, a folder or not text); check the path, or ${local.replan}." :
    trimspace(local.text) == "" ? "${local.path} is empty; ${local.replan}." :
    !can(jsondecode(local.text)) ? "${local.path} is not valid JSON; ${local.replan}." :
    !can(keys(local.document)) ? "${local.path} holds no JSON object, so it is no plan; ${local.replan}." :
    local.kind != "plan" ? "${local.path} has kind ${local.kind}, expected plan; pass the planner's plan-<model>.json, or ${local.replan}." :
    local.version != tostring(local.schema_version) ? "${local.path} has schema_version ${local.version}, this module reads ${local.schema_version}; use the planner of this version and ${local.replan}." :
    null
  )
}

################################################################################
# Numbers
################################################################################

locals {
  converted = ["scaling_target_value", "scale_in_threshold"]
  plain     = ["queue_max_depth", "min_instances", "max_instances", "scale_out_cooldown_s", "scale_in_cooldown_s", "first_chunk_alarm_ms"]
  whole     = ["queue_max_depth", "min_instances", "max_instances", "scale_out_cooldown_s", "scale_in_cooldown_s"]

  number = merge(
    { for name in concat(local.converted, local.plain) : name => try(tonumber(local.derived[name]), null) },
    {
      slo_ms        = try(tonumber(local.document.inputs.slo_ms), null)
      service_p95_s = try(tonumber(local.document.inputs.service_p95_s), null)
      t_total_s     = try(tonumber(local.document.surge.duration_s), null)
    },
  )
  shown = { for name, value in local.number : name => value == null ? "missing" : tostring(value) }

  missing = concat(
    [for name in local.plain : "derived.${name}" if local.number[name] == null],
    local.number.slo_ms == null ? ["inputs.slo_ms"] : [],
    local.number.service_p95_s == null ? ["inputs.service_p95_s"] : [],
    local.number.t_total_s == null ? ["surge.duration_s"] : [],
  )
  unconverted = [for name in local.converted : name if local.number[name] == null]

  number_faults = concat(
    [for name in local.missing : "${local.path} has no number in ${name}; ${local.replan}."],
    [for name in local.unconverted : "${local.path} has derived.${name} null: the threshold is not in the units the alarm reads (c_scale_max ${try(coalesce(tostring(local.derived.c_scale_max)), "missing")}, metric_ratio ${try(coalesce(tostring(local.derived.metric_ratio)), "missing")}); measure the metric ratio (ladder with CloudWatch data, or the open-loop ladder) and ${local.replan}."],
    [for name in local.whole : "${local.path} has derived.${name} ${local.shown[name]}, expected a whole number; ${local.replan}." if try(floor(local.number[name]) != local.number[name], false)],
  )
}

################################################################################
# Relations: a comparison with a missing number is already told above
################################################################################

locals {
  feasible = try(local.document.feasible, false) == true && try(local.document.verdict, "stop") != "stop"
  stops    = [for finding in try(local.document.findings, []) : "${try(coalesce(finding.name), "?")}: ${try(coalesce(finding.detail), "?")}" if try(finding.verdict, "") == "stop"]
  scope    = try(coalesce(tostring(local.document.metric_scope)), "unknown")

  relations = [
    {
      broken = !local.feasible
      fault  = "${local.path} is not feasible (feasible ${try(coalesce(tostring(local.document.feasible)), "missing")}, verdict ${try(coalesce(tostring(local.document.verdict)), "missing")}${length(local.stops) == 0 ? "" : "; ${join("; ", local.stops)}"}); follow the report's recommendation and ${local.replan}."
    },
    {
      broken = local.scope == "variant_total"
      fault  = "${local.path} has metric_scope variant_total and the policy here expects per_instance: a target for one instance would be compared with the whole fleet's sum; keep a fixed fleet (initial_instance_count) or scheduled bounds instead."
    },
    {
      broken = try(local.number.min_instances < 1, false)
      fault  = "${local.path} has min_instances ${local.shown.min_instances}; a real-time variant cannot scale to zero: plan with --min-floor 1 or more."
    },
    {
      broken = try(local.number.max_instances < local.number.min_instances, false)
      fault  = "${local.path} has max_instances ${local.shown.max_instances} below min_instances ${local.shown.min_instances}; plan with a peak above the trough."
    },
    {
      broken = try(local.number.scale_in_threshold <= 0, false)
      fault  = "${local.path} has scale_in_threshold ${local.shown.scale_in_threshold}, and concurrency never falls below 0; plan with a smaller surge ratio so that the fleet can shrink."
    },
    {
      broken = try(local.number.scale_in_threshold >= local.number.scaling_target_value, false)
      fault  = "${local.path} has scale_in_threshold ${local.shown.scale_in_threshold} not below scaling_target_value ${local.shown.scaling_target_value}: the fleet would shrink and grow in turn; ${local.replan}."
    },
    {
      broken = try(local.number.scaling_target_value >= local.number.queue_max_depth, false)
      fault  = "${local.path} has scaling_target_value ${local.shown.scaling_target_value} not below queue_max_depth ${local.shown.queue_max_depth}: admission stops the metric before it can pass the target, so scale-out would never start; ${local.replan}."
    },
    {
      broken = try(local.number.queue_max_depth < 1, false)
      fault  = "${local.path} has queue_max_depth ${local.shown.queue_max_depth}; below 1 every request is refused: measure again."
    },
    {
      broken = try(local.number.scale_out_cooldown_s < 0, false)
      fault  = "${local.path} has scale_out_cooldown_s ${local.shown.scale_out_cooldown_s}; use 0 or more: ${local.replan}."
    },
    {
      broken = try(local.number.scale_in_cooldown_s < local.number.scale_out_cooldown_s, false)
      fault  = "${local.path} has scale_in_cooldown_s ${local.shown.scale_in_cooldown_s} below scale_out_cooldown_s ${local.shown.scale_out_cooldown_s}: the fleet would shrink faster than it grows; ${local.replan}."
    },
    {
      broken = try(local.number.first_chunk_alarm_ms <= 0, false)
      fault  = "${local.path} has first_chunk_alarm_ms ${local.shown.first_chunk_alarm_ms}; a latency is above 0: ${local.replan}."
    },
  ]
  relation_faults = [for relation in local.relations : relation.fault if relation.broken]
}

################################################################################
# What was measured against what is deployed
################################################################################

locals {
  measured_instance = try(coalesce(tostring(local.measured.instance_type)), "missing")
  measured_digest   = try(coalesce(tostring(local.measured.image_digest)), "missing")
  measured_data     = try(tostring(local.measured.model_data_url), null)
  measured_env      = { for key, value in try(local.measured.container_env, {}) : key => tostring(value) if key != "MAX_QUEUE_DEPTH" }
  deployed_env      = { for key, value in var.deployed.container_environment : key => value if key != "MAX_QUEUE_DEPTH" }
  env_keys          = setunion(keys(local.measured_env), keys(local.deployed_env))

  differences = [
    {
      broken = local.measured_instance != var.deployed.instance_type
      fault  = "${local.path} was measured on instance_type ${local.measured_instance}, this deploys ${var.deployed.instance_type}; set instance_type back, or remove the plan (plan_json = null, apply), change the type (apply), measure and plan again."
    },
    {
      broken = var.deployed.image_digest == null
      fault  = "${local.path} is set but image_digest is null, so there is no endpoint to scale; set image_digest to ${local.measured_digest}, or plan_json to null."
    },
    {
      broken = var.deployed.image_digest != null && local.measured_digest != var.deployed.image_digest
      fault  = "${local.path} was measured on image_digest ${local.measured_digest}, this deploys ${coalesce(var.deployed.image_digest, "none")}; deploy the new image without the plan (plan_json = null), measure and plan again, or set image_digest back."
    },
    {
      broken = local.measured_data != null && local.measured_data != var.deployed.model_data_url
      fault  = "${local.path} was measured with model data ${coalesce(local.measured_data, "none")}, this deploys ${coalesce(var.deployed.model_data_url, "none")}; deploy the new weights without the plan (plan_json = null), measure and plan again."
    },
  ]
  difference_faults = concat(
    [for difference in local.differences : difference.fault if difference.broken],
    [
      for key in local.env_keys :
      "${local.path} was measured with ${key} ${try("\"${local.measured_env[key]}\"", "unset")}, container_environment has ${try("\"${local.deployed_env[key]}\"", "unset")}; make them equal, or deploy without the plan, measure and plan again."
      if try(local.measured_env[key], null) != try(local.deployed_env[key], null)
    ],
  )

  faults = (
    var.plan_json == null ? [] :
    local.not_a_plan != null ? [local.not_a_plan] :
    concat(local.number_faults, local.relation_faults, local.difference_faults)
  )
}
