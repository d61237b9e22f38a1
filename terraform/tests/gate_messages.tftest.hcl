# Every refusal names the value it found, the value it expected and what to do. The gate has no resources, so that its
# answer is read here instead of an error's text.

variables {
  deployed = {
    instance_type         = "ml.g5.xlarge"
    image_digest          = "sha256:8b1b96bc4dc0b30ddd84d8fe37af7c490937333c44a9f8f7d77b918c3d7eaced"
    model_data_url        = "s3://headroom-111122223333-eu-west-1/models/kokoro-82m/"
    container_environment = {}
  }
}

run "no_plan_no_fault" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = null
  }

  assert {
    condition     = length(output.faults) == 0 && output.plan == null
    error_message = "no plan is no fault"
  }
}

run "a_valid_plan_gives_its_numbers" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/valid.json"
  }

  assert {
    condition     = length(output.faults) == 0
    error_message = join("; ", output.faults)
  }

  assert {
    condition = output.plan == {
      scaling_target_value = 37.5
      scale_in_threshold   = 25
      queue_max_depth      = 50
      min_instances        = 1
      max_instances        = 9
      scale_out_cooldown_s = 30
      scale_in_cooldown_s  = 960
      first_chunk_alarm_ms = 130.8
      slo_ms               = 3000
      service_p95_s        = 0.0661
      t_total_s            = 320.2
      run_id               = "9d0f6b1c2a34"
    }
    error_message = "the plan's numbers arrive unchanged: ${jsonencode(output.plan)}"
  }
}

run "missing_file" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/no-such-plan.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "no-such-plan.json") && strcontains(output.faults[0], "cannot be read") && strcontains(output.faults[0], "make plan")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "empty" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/empty.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "empty.json is empty") && strcontains(output.faults[0], "make plan")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "empty_object" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/empty-object.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "kind missing, expected plan")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "malformed" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/malformed.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "not valid JSON") && strcontains(output.faults[0], "make plan")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "list" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/list.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "no JSON object")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "wrong_kind" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/wrong-kind.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "kind qmax, expected plan")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "future_schema" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/future-schema.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "schema_version 2, this module reads 1")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "infeasible" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/infeasible.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "feasible false, verdict stop") && strcontains(output.faults[0], "slo_budget: service p95 3.2 s is over the SLO of 3.0 s")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "unconverted" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/unconverted.json"
  }

  assert {
    condition     = length(output.faults) == 2 && strcontains(output.faults[0], "derived.scaling_target_value null") && strcontains(output.faults[0], "c_scale_max 37.5, metric_ratio missing") && strcontains(output.faults[0], "measure the metric ratio")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "missing_number" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/missing-number.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "no number in derived.max_instances")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "missing_service_time" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/missing-service-time.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "no number in inputs.service_p95_s")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "fractional_count" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/fractional-count.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "derived.max_instances 8.5, expected a whole number")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "zero_min" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/zero-min.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "min_instances 0") && strcontains(output.faults[0], "cannot scale to zero") && strcontains(output.faults[0], "--min-floor 1")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "max_below_min" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/max-below-min.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "max_instances 3 below min_instances 4")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "threshold_zero" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/threshold-zero.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "scale_in_threshold 0")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "threshold_at_target" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/threshold-at-target.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "scale_in_threshold 37.5 not below scaling_target_value 37.5")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "target_at_bound" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/target-at-bound.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "scaling_target_value 37.5 not below queue_max_depth 37")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "cooldowns_swapped" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/cooldowns-swapped.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "scale_in_cooldown_s 30 below scale_out_cooldown_s 960")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "negative_cooldown" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/negative-cooldown.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "scale_out_cooldown_s -1")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "zero_alarm" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/zero-alarm.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "first_chunk_alarm_ms 0")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "variant_total" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/variant-total.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "metric_scope variant_total") && strcontains(output.faults[0], "expects per_instance")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "other_instance_type" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/other-instance-type.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "instance_type ml.g6.xlarge, this deploys ml.g5.xlarge") && strcontains(output.faults[0], "plan_json = null")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "other_digest" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/other-digest.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "image_digest sha256:1111") && strcontains(output.faults[0], "this deploys sha256:8b1b96bc") && strcontains(output.faults[0], "measure and plan again")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "no_fingerprint" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/no-fingerprint.json"
  }

  assert {
    condition     = length(output.faults) == 2 && strcontains(output.faults[0], "instance_type missing, this deploys ml.g5.xlarge")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "other_environment" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/other-environment.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "SCHEDULER \"fifo\", container_environment has unset")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "other_weights" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/other-weights.json"
  }

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "model data s3://elsewhere/models/, this deploys s3://headroom-111122223333-eu-west-1/models/kokoro-82m/")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}
