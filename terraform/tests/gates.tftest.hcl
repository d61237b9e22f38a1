# What each gate lets through and what it stops; the wording is tested in gate_messages.tftest.hcl.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  image_digest = "sha256:8b1b96bc4dc0b30ddd84d8fe37af7c490937333c44a9f8f7d77b918c3d7eaced"
}

################################################################################
# Nothing is created without its gate
################################################################################

run "no_image_builds_the_foundation_only" {
  command = plan

  variables {
    image_digest = null
  }

  assert {
    condition     = length(module.endpoint) == 0 && length(module.autoscaling) == 0 && length(module.observability) == 0
    error_message = "without an image there is neither endpoint nor autoscaling"
  }

  assert {
    condition     = output.bucket == "headroom-111122223333-eu-west-1" && output.repository_name == "headroom/kokoro-82m"
    error_message = "the foundation is there"
  }
}

run "no_plan_creates_no_autoscaling" {
  command = plan

  assert {
    condition     = length(module.endpoint) == 1 && length(module.autoscaling) == 0 && length(module.observability) == 0
    error_message = "without a plan there is an endpoint, no autoscaling and no alarm on it"
  }

  assert {
    condition     = output.plan == null && output.scaling_resource_id == null && length(output.alarm_names) == 0
    error_message = "the outputs say so"
  }
}

run "scaling_enabled_alone_creates_nothing" {
  command = plan

  variables {
    scaling_enabled = true
  }

  assert {
    condition     = length(module.autoscaling) == 0 && length(module.observability) == 0
    error_message = "only a plan creates autoscaling"
  }
}

run "a_valid_plan_creates_autoscaling" {
  command = plan

  variables {
    plan_json = "tests/fixtures/valid.json"
  }

  assert {
    condition     = length(module.autoscaling) == 1 && length(module.observability) == 1
    error_message = "a plan that fits creates both"
  }

  assert {
    condition     = output.scaling_resource_id == "endpoint/speech-kokoro-82m/variant/primary"
    error_message = "resource id is ${output.scaling_resource_id}"
  }
}

run "scaling_disabled_keeps_the_bound_only" {
  command = plan

  variables {
    plan_json       = "tests/fixtures/valid.json"
    scaling_enabled = false
  }

  assert {
    condition     = length(module.autoscaling) == 0 && length(module.observability) == 0 && output.plan.queue_max_depth == 50
    error_message = "scaling_enabled = false leaves autoscaling out"
  }
}

run "q_max_one_is_a_valid_plan" {
  command = plan

  variables {
    plan_json = "tests/fixtures/q-max-one.json"
  }

  assert {
    condition     = length(module.autoscaling) == 1
    error_message = "a target below 1 is what Q_max 1 asks for"
  }
}

run "the_measurement_bound_is_not_compared" {
  command = plan

  variables {
    plan_json = "tests/fixtures/bounded-measurement.json"
  }

  assert {
    condition     = length(module.autoscaling) == 1
    error_message = "MAX_QUEUE_DEPTH is no part of the fingerprint"
  }
}

################################################################################
# Not a plan
################################################################################

run "missing_file_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/no-such-plan.json"
  }

  expect_failures = [output.plan]
}

run "a_folder_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures"
  }

  expect_failures = [output.plan]
}

run "empty_path_is_refused" {
  command = plan

  variables {
    plan_json = ""
  }

  expect_failures = [output.plan]
}

run "empty_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/empty.json"
  }

  expect_failures = [output.plan]
}

run "empty_object_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/empty-object.json"
  }

  expect_failures = [output.plan]
}

run "malformed_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/malformed.json"
  }

  expect_failures = [output.plan]
}

run "list_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/list.json"
  }

  expect_failures = [output.plan]
}

run "wrong_kind_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/wrong-kind.json"
  }

  expect_failures = [output.plan]
}

run "future_schema_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/future-schema.json"
  }

  expect_failures = [output.plan]
}

################################################################################
# A plan that must not be deployed
################################################################################

run "infeasible_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/infeasible.json"
  }

  expect_failures = [output.plan]
}

run "infeasible_flag_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/infeasible-flag.json"
  }

  expect_failures = [output.plan]
}

run "unconverted_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/unconverted.json"
  }

  expect_failures = [output.plan]
}

run "missing_number_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/missing-number.json"
  }

  expect_failures = [output.plan]
}

run "missing_service_time_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/missing-service-time.json"
  }

  expect_failures = [output.plan]
}

run "fractional_count_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/fractional-count.json"
  }

  expect_failures = [output.plan]
}

run "zero_min_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/zero-min.json"
  }

  expect_failures = [output.plan]
}

run "max_below_min_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/max-below-min.json"
  }

  expect_failures = [output.plan]
}

run "threshold_zero_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/threshold-zero.json"
  }

  expect_failures = [output.plan]
}

run "threshold_at_target_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/threshold-at-target.json"
  }

  expect_failures = [output.plan]
}

run "target_at_bound_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/target-at-bound.json"
  }

  expect_failures = [output.plan]
}

run "cooldowns_swapped_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/cooldowns-swapped.json"
  }

  expect_failures = [output.plan]
}

run "negative_cooldown_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/negative-cooldown.json"
  }

  expect_failures = [output.plan]
}

run "zero_alarm_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/zero-alarm.json"
  }

  expect_failures = [output.plan]
}

run "variant_total_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/variant-total.json"
  }

  expect_failures = [output.plan]
}

################################################################################
# A plan for something else
################################################################################

run "other_instance_type_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/other-instance-type.json"
  }

  expect_failures = [output.plan]
}

run "other_digest_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/other-digest.json"
  }

  expect_failures = [output.plan]
}

run "no_fingerprint_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/no-fingerprint.json"
  }

  expect_failures = [output.plan]
}

run "other_environment_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/other-environment.json"
  }

  expect_failures = [output.plan]
}

run "other_weights_is_refused" {
  command = plan

  variables {
    plan_json = "tests/fixtures/other-weights.json"
  }

  expect_failures = [output.plan]
}

run "changed_instance_type_is_refused" {
  command = plan

  variables {
    plan_json     = "tests/fixtures/valid.json"
    instance_type = "ml.g5.2xlarge"
  }

  expect_failures = [output.plan]
}

run "changed_environment_is_refused" {
  command = plan

  variables {
    plan_json             = "tests/fixtures/valid.json"
    container_environment = { SCHEDULER = "fifo" }
  }

  expect_failures = [output.plan]
}

run "plan_without_image_is_refused" {
  command = plan

  variables {
    plan_json    = "tests/fixtures/valid.json"
    image_digest = null
  }

  expect_failures = [output.plan]
}
