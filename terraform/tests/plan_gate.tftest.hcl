# Every refusal stops the plan, and names the value it found, the value it expected and what to do.

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
      first_chunk_alarm_ms = 2292
      slo_ms               = 3000
      service_p95_s        = 0.0661
      t_total_s            = 320.2
      run_id               = "9d0f6b1c2a34"
    }
    error_message = "the plan's numbers arrive unchanged: ${jsonencode(output.plan)}"
  }
}

run "a_folder_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "tests/fixtures/, which cannot be read")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "missing_file_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/no-such-plan.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "no-such-plan.json") && strcontains(output.faults[0], "cannot be read") && strcontains(output.faults[0], "make plan")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "empty_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/empty.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "empty.json is empty") && strcontains(output.faults[0], "make plan")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "empty_object_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/empty-object.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "kind missing, expected plan")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "malformed_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/malformed.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "not valid JSON") && strcontains(output.faults[0], "make plan")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "list_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/list.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "no JSON object")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "wrong_kind_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/wrong-kind.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "kind qmax, expected plan")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "future_schema_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/future-schema.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "schema_version 2, this module reads 1")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "infeasible_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/infeasible.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "feasible false, verdict stop") && strcontains(output.faults[0], "slo_budget: service p95 3.2 s is over the SLO of 3.0 s")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "infeasible_flag_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/infeasible-flag.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "feasible false, verdict warn")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "unconverted_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/unconverted.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 2 && strcontains(output.faults[0], "derived.scaling_target_value null") && strcontains(output.faults[0], "c_scale_max 37.5, metric_ratio missing") && strcontains(output.faults[0], "measure the metric ratio")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "missing_number_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/missing-number.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "no number in derived.max_instances")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "missing_service_time_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/missing-service-time.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "no number in inputs.service_p95_s")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "fractional_count_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/fractional-count.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "derived.max_instances 8.5, expected a whole number")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "zero_min_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/zero-min.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "min_instances 0") && strcontains(output.faults[0], "cannot scale to zero") && strcontains(output.faults[0], "--min-floor 1")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "max_below_min_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/max-below-min.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "max_instances 3 below min_instances 4")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "threshold_zero_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/threshold-zero.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "scale_in_threshold 0")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "threshold_at_target_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/threshold-at-target.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "scale_in_threshold 37.5 not below scaling_target_value 37.5")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "target_at_bound_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/target-at-bound.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "scaling_target_value 37.5 not below queue_max_depth 37")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "cooldowns_swapped_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/cooldowns-swapped.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "scale_in_cooldown_s 30 below scale_out_cooldown_s 960")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "negative_cooldown_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/negative-cooldown.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "scale_out_cooldown_s -1")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "zero_alarm_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/zero-alarm.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "first_chunk_alarm_ms 0")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "variant_total_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/variant-total.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "metric_scope variant_total") && strcontains(output.faults[0], "expects per_instance")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "other_instance_type_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/other-instance-type.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "instance_type ml.g6.xlarge, this deploys ml.g5.xlarge") && strcontains(output.faults[0], "plan_json = null")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "other_digest_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/other-digest.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "image_digest sha256:1111") && strcontains(output.faults[0], "this deploys sha256:8b1b96bc") && strcontains(output.faults[0], "measure and plan again")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "no_fingerprint_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/no-fingerprint.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 2 && strcontains(output.faults[0], "instance_type missing, this deploys ml.g5.xlarge")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "other_environment_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/other-environment.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "SCHEDULER \"fifo\", container_environment has unset")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "other_weights_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/other-weights.json"
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "model data s3://elsewhere/models/, this deploys s3://headroom-111122223333-eu-west-1/models/kokoro-82m/")
    error_message = "faults are ${jsonencode(output.faults)}"
  }

  assert {
    condition     = output.plan == null
    error_message = "a faulty plan gives no numbers"
  }
}

run "empty_path_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = ""
  }

  expect_failures = [output.plan]

  assert {
    condition     = output.faults == tolist(["plan_json is an empty string and not a path; set it to null for no plan, or run the planner again (make plan)."])
    error_message = "faults are ${jsonencode(output.faults)}"
  }
}

run "plan_without_image_is_refused" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/valid.json"

    deployed = {
      instance_type         = "ml.g5.xlarge"
      image_digest          = null
      model_data_url        = null
      container_environment = {}
    }
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 1 && strcontains(output.faults[0], "image_digest is null, so there is no endpoint to scale")
    error_message = "faults are ${jsonencode(output.faults)}"
  }
}

run "changed_deployment_is_refused_with_every_fault" {
  command = plan

  module {
    source = "./modules/plan_gate"
  }

  variables {
    plan_json = "tests/fixtures/valid.json"

    deployed = {
      instance_type         = "ml.g5.2xlarge"
      image_digest          = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
      model_data_url        = null
      container_environment = { SCHEDULER = "fifo", ENGINE = "onnx" }
    }
  }

  expect_failures = [output.plan]

  assert {
    condition     = length(output.faults) == 4
    error_message = "instance type, image and two variables: ${jsonencode(output.faults)}"
  }
}
