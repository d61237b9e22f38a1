# Everything set. The identifiers are examples: replace them with your own.
project_name  = "headroom-prod"
endpoint_name = "speech-prod"
instance_type = "ml.g5.2xlarge"

kms_key_arn      = "arn:aws:kms:eu-west-1:111122223333:key/aaaaaaaa-2222-3333-4444-555555555555"
alarm_topic_arns = ["arn:aws:sns:eu-west-1:111122223333:on-call"]

vpc_config = {
  subnet_ids         = ["subnet-0a1b2c3d4e5f60718", "subnet-0a1b2c3d4e5f60719"]
  security_group_ids = ["sg-0a1b2c3d4e5f60718"]
}

inference_ami_version       = "al2-ami-sagemaker-inference-gpu-3-1"
container_startup_timeout_s = 900
container_environment       = { SCHEDULER = "deadline", REQUEST_DEADLINE_S = "50" }

# Used once there is a plan.
scheduled_actions = {
  morning = { schedule = "cron(30 6 ? * MON-FRI *)", timezone = "Europe/Zurich", min_instances = 3 }
  night   = { schedule = "cron(0 21 * * ? *)", timezone = "Europe/Zurich", min_instances = 1 }
}

log_retention_days         = 90
old_version_retention_days = 90
tags                       = { Team = "speech", CostCentre = "4711" }
