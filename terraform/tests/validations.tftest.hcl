# One refusal a run: every range and every rule between variables.

mock_provider "aws" {
  source = "./tests/mocks"
}

run "project_name_too_short_is_refused" {
  command = plan

  variables {
    project_name = "ab"
  }

  expect_failures = [var.project_name]
}

run "project_name_upper_case_is_refused" {
  command = plan

  variables {
    project_name = "Headroom"
  }

  expect_failures = [var.project_name]
}

run "reserved_tag_is_refused" {
  command = plan

  variables {
    tags = { "headroom:freeze" = "mine" }
  }

  expect_failures = [var.tags]
}

run "endpoint_name_too_long_is_refused" {
  command = plan

  variables {
    endpoint_name = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
  }

  expect_failures = [var.endpoint_name]
}

run "endpoint_name_underscore_is_refused" {
  command = plan

  variables {
    endpoint_name = "speech_kokoro"
  }

  expect_failures = [var.endpoint_name]
}

run "variant_name_empty_is_refused" {
  command = plan

  variables {
    variant_name = ""
  }

  expect_failures = [var.variant_name]
}

run "model_name_upper_case_is_refused" {
  command = plan

  variables {
    model_name = "Kokoro"
  }

  expect_failures = [var.model_name]
}

run "image_tag_is_refused" {
  command = plan

  variables {
    image_digest = "latest"
  }

  expect_failures = [var.image_digest]
}

run "image_tag_with_repository_is_refused" {
  command = plan

  variables {
    image_digest = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/headroom/kokoro-82m:latest"
  }

  expect_failures = [var.image_digest]
}

run "image_digest_short_is_refused" {
  command = plan

  variables {
    image_digest = "sha256:8b1b96bc"
  }

  expect_failures = [var.image_digest]
}

run "instance_type_of_ec2_is_refused" {
  command = plan

  variables {
    instance_type = "g5.xlarge"
  }

  expect_failures = [var.instance_type]
}

run "zero_initial_instances_is_refused" {
  command = plan

  variables {
    initial_instance_count = 0
  }

  expect_failures = [var.initial_instance_count]
}

run "half_an_instance_is_refused" {
  command = plan

  variables {
    initial_instance_count = 1.5
  }

  expect_failures = [var.initial_instance_count]
}

run "own_queue_bound_is_refused" {
  command = plan

  variables {
    container_environment = { MAX_QUEUE_DEPTH = "10" }
  }

  expect_failures = [var.container_environment]
}

run "environment_key_with_hyphen_is_refused" {
  command = plan

  variables {
    container_environment = { "MY-KEY" = "1" }
  }

  expect_failures = [var.container_environment]
}

run "environment_value_too_long_is_refused" {
  command = plan

  variables {
    container_environment = { KEY = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx" }
  }

  expect_failures = [var.container_environment]
}

run "startup_timeout_too_short_is_refused" {
  command = plan

  variables {
    container_startup_timeout_s = 59
  }

  expect_failures = [var.container_startup_timeout_s]
}

run "startup_timeout_too_long_is_refused" {
  command = plan

  variables {
    container_startup_timeout_s = 3601
  }

  expect_failures = [var.container_startup_timeout_s]
}

run "download_timeout_too_short_is_refused" {
  command = plan

  variables {
    model_download_timeout_s = 59
  }

  expect_failures = [var.model_download_timeout_s]
}

run "ami_of_ec2_is_refused" {
  command = plan

  variables {
    inference_ami_version = "ami-0123456789abcdef0"
  }

  expect_failures = [var.inference_ami_version]
}

run "vpc_without_subnets_is_refused" {
  command = plan

  variables {
    vpc_config = { subnet_ids = [], security_group_ids = ["sg-1"] }
  }

  expect_failures = [var.vpc_config]
}

run "prefix_without_slash_is_refused" {
  command = plan

  variables {
    model_data_prefix = "models/kokoro"
  }

  expect_failures = [var.model_data_prefix]
}

run "prefix_with_leading_slash_is_refused" {
  command = plan

  variables {
    model_data_prefix = "/models/"
  }

  expect_failures = [var.model_data_prefix]
}

run "weights_repository_without_owner_is_refused" {
  command = plan

  variables {
    weights_repository = "Kokoro-82M"
  }

  expect_failures = [var.weights_repository]
}

run "weights_branch_is_refused" {
  command = plan

  variables {
    weights_revision = "main"
  }

  expect_failures = [var.weights_revision]
}

run "no_weights_files_is_refused" {
  command = plan

  variables {
    weights_files = []
  }

  expect_failures = [var.weights_files]
}

run "weights_checksum_too_short_is_refused" {
  command = plan

  variables {
    weights_sha256 = { "kokoro-v1_0.pth" = "496dba11" }
  }

  expect_failures = [var.weights_sha256]
}

run "kms_alias_is_refused" {
  command = plan

  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:111122223333:alias/mine"
  }

  expect_failures = [var.kms_key_arn]
}

run "volume_kms_alias_is_refused" {
  command = plan

  variables {
    instance_type      = "ml.m5.xlarge"
    volume_kms_key_arn = "alias/mine"
  }

  expect_failures = [var.volume_kms_key_arn]
}

run "volume_key_on_local_storage_is_refused" {
  command = plan

  variables {
    instance_type      = "ml.g5.xlarge"
    volume_kms_key_arn = "arn:aws:kms:eu-west-1:111122223333:key/11111111-2222-3333-4444-555555555555"
  }

  expect_failures = [var.volume_kms_key_arn]
}

run "odd_log_retention_is_refused" {
  command = plan

  variables {
    log_retention_days = 31
  }

  expect_failures = [var.log_retention_days]
}

run "no_version_retention_is_refused" {
  command = plan

  variables {
    old_version_retention_days = 0
  }

  expect_failures = [var.old_version_retention_days]
}

run "one_image_kept_is_refused" {
  command = plan

  variables {
    images_kept = 1
  }

  expect_failures = [var.images_kept]
}

run "absolute_dockerfile_is_refused" {
  command = plan

  variables {
    dockerfile = "/Dockerfile"
  }

  expect_failures = [var.dockerfile]
}

run "unknown_compute_type_is_refused" {
  command = plan

  variables {
    build_compute_type = "LARGE"
  }

  expect_failures = [var.build_compute_type]
}

run "alarm_to_an_address_is_refused" {
  command = plan

  variables {
    alarm_topic_arns = ["ops@example.com"]
  }

  expect_failures = [var.alarm_topic_arns]
}

run "schedule_of_unix_cron_is_refused" {
  command = plan

  variables {
    scheduled_actions = { night = { schedule = "0 22 * * *", min_instances = 1 } }
  }

  expect_failures = [var.scheduled_actions]
}

run "schedule_without_bounds_is_refused" {
  command = plan

  variables {
    scheduled_actions = { night = { schedule = "cron(0 22 * * ? *)" } }
  }

  expect_failures = [var.scheduled_actions]
}

run "schedule_to_zero_is_refused" {
  command = plan

  variables {
    scheduled_actions = { night = { schedule = "cron(0 22 * * ? *)", min_instances = 0 } }
  }

  expect_failures = [var.scheduled_actions]
}

run "schedule_min_above_max_is_refused" {
  command = plan

  variables {
    scheduled_actions = { day = { schedule = "cron(0 6 * * ? *)", min_instances = 9, max_instances = 4 } }
  }

  expect_failures = [var.scheduled_actions]
}

