# Model and configuration cannot be changed at AWS: their names must change with their content and with nothing else,
# and every id and dimension must carry the same endpoint and variant.

mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  image_digest = "sha256:8b1b96bc4dc0b30ddd84d8fe37af7c490937333c44a9f8f7d77b918c3d7eaced"
}

run "base" {
  command = plan

  assert {
    condition     = startswith(output.endpoint_config_name, "speech-kokoro-82m-") && startswith(output.sagemaker_model_name, "speech-kokoro-82m-")
    error_message = "names are known at plan time and start with the endpoint's"
  }
}

run "another_environment_is_another_model" {
  command = plan

  variables {
    container_environment = { SCHEDULER = "fifo" }
  }

  assert {
    condition     = output.sagemaker_model_name != run.base.sagemaker_model_name && output.endpoint_config_name != run.base.endpoint_config_name
    error_message = "a new environment must reach the endpoint"
  }
}

run "another_image_is_another_model" {
  command = plan

  variables {
    image_digest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
  }

  assert {
    condition     = output.sagemaker_model_name != run.base.sagemaker_model_name && output.endpoint_config_name != run.base.endpoint_config_name
    error_message = "a new image must reach the endpoint"
  }
}

run "another_instance_type_is_another_configuration" {
  command = plan

  variables {
    instance_type = "ml.g5.2xlarge"
  }

  assert {
    condition     = output.endpoint_config_name != run.base.endpoint_config_name && output.sagemaker_model_name == run.base.sagemaker_model_name
    error_message = "the configuration changes, the model stays"
  }
}

run "another_startup_timeout_is_another_configuration" {
  command = plan

  variables {
    container_startup_timeout_s = 900
  }

  assert {
    condition     = output.endpoint_config_name != run.base.endpoint_config_name
    error_message = "the timeout belongs to the configuration"
  }
}

run "a_plan_brings_its_bound_to_the_model" {
  command = plan

  variables {
    plan_json = "tests/fixtures/valid.json"
  }

  assert {
    condition     = output.sagemaker_model_name != run.base.sagemaker_model_name
    error_message = "the bound is part of the model's environment"
  }
}

run "another_bound_is_another_model" {
  command = plan

  variables {
    plan_json = "tests/fixtures/new-bound.json"
  }

  assert {
    condition     = output.plan.queue_max_depth == 48 && output.sagemaker_model_name != run.a_plan_brings_its_bound_to_the_model.sagemaker_model_name
    error_message = "a new bound must reach the endpoint"
  }
}

run "a_salt_makes_new_names" {
  command = plan

  variables {
    name_salt = "again"
  }

  assert {
    condition     = output.sagemaker_model_name != run.base.sagemaker_model_name && output.endpoint_config_name != run.base.endpoint_config_name
    error_message = "the same content under new names"
  }
}

run "the_instance_count_is_no_content" {
  command = plan

  variables {
    initial_instance_count = 7
  }

  assert {
    condition     = output.endpoint_config_name == run.base.endpoint_config_name
    error_message = "the count is the autoscaler's; it must not make a new configuration"
  }
}

run "one_source_for_the_names" {
  command = plan

  variables {
    endpoint_name = "other-endpoint"
    variant_name  = "green"
    plan_json     = "tests/fixtures/valid.json"
  }

  assert {
    condition     = output.scaling_resource_id == "endpoint/other-endpoint/variant/green"
    error_message = "resource id is ${output.scaling_resource_id}"
  }

  assert {
    condition     = output.scaling_policy_names == { scale_out = "other-endpoint-scale-out", scale_in = "other-endpoint-scale-in" }
    error_message = "policies are ${jsonencode(output.scaling_policy_names)}"
  }

  assert {
    condition     = output.scale_in_alarm_name == "other-endpoint-scale-in" && output.dashboard_name == "other-endpoint"
    error_message = "alarm is ${output.scale_in_alarm_name}"
  }

  assert {
    condition     = alltrue([for name in values(output.alarm_names) : startswith(name, "other-endpoint-")])
    error_message = "alarms are ${jsonencode(output.alarm_names)}"
  }
}
