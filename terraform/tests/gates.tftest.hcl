# What each gate lets through; what the plan gate stops is in plan_gate.tftest.hcl.

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
