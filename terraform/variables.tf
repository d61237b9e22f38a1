################################################################################
# Where and what
################################################################################

variable "region" {
  description = "AWS region; null takes AWS_REGION or the profile's"
  type        = string
  default     = null
}

variable "project_name" {
  description = "Prefix of everything several endpoints may share: bucket, image repository, build projects"
  type        = string
  default     = "headroom"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,28}[a-z0-9]$", var.project_name))
    error_message = "project_name is \"${var.project_name}\"; use 3 to 30 lower-case letters, digits and hyphens, because it becomes part of a bucket name."
  }
}

variable "tags" {
  description = "Tags on every resource, besides Project and ManagedBy"
  type        = map(string)
  default     = {}

  validation {
    condition     = alltrue([for key in keys(var.tags) : !startswith(key, "headroom:") && !startswith(key, "aws:")])
    error_message = "tags has the keys ${join(", ", keys(var.tags))}; headroom: is kept for freeze marks and aws: for AWS, so choose another prefix."
  }
}

variable "endpoint_name" {
  description = "Name of the SageMaker endpoint; model and configuration add a content hash to it"
  type        = string
  default     = "speech-kokoro-82m"

  validation {
    condition     = can(regex("^[a-zA-Z0-9](-?[a-zA-Z0-9])*$", var.endpoint_name)) && length(var.endpoint_name) <= 50
    error_message = "endpoint_name is \"${var.endpoint_name}\" (${length(var.endpoint_name)} characters); use at most 50 letters, digits and single hyphens: SageMaker allows 63 and the configuration's hash needs the rest."
  }
}

variable "variant_name" {
  description = "Name of the only production variant"
  type        = string
  default     = "primary"

  validation {
    condition     = can(regex("^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$", var.variant_name))
    error_message = "variant_name is \"${var.variant_name}\"; use 1 to 63 letters, digits and hyphens."
  }
}

variable "model_name" {
  description = "Short name of the model: names its image repository and its folder in the weight cache"
  type        = string
  default     = "kokoro-82m"

  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$", var.model_name))
    error_message = "model_name is \"${var.model_name}\"; use 1 to 40 lower-case letters, digits and hyphens."
  }
}

################################################################################
# Gates
################################################################################

variable "image_digest" {
  description = "sha256:<64 hex> of the image in this deployment's repository; null builds the foundation only (cache, registry, builders)"
  type        = string
  default     = null

  validation {
    condition     = var.image_digest == null || can(regex("^sha256:[0-9a-f]{64}$", var.image_digest))
    error_message = "image_digest is ${var.image_digest == null ? "null" : "\"${var.image_digest}\""}; give the digest that the image build printed (sha256: and 64 hex digits). A tag such as :latest can change under a running fleet."
  }
}

variable "plan_json" {
  description = "Path of the plan.json the planner wrote; null creates no autoscaling and no alarms on it"
  type        = string
  default     = null
}

variable "scaling_enabled" {
  description = "false keeps a plan's admission bound but leaves its autoscaling out; true creates nothing without a plan"
  type        = bool
  default     = true
  nullable    = false
}

################################################################################
# Endpoint
################################################################################

variable "instance_type" {
  description = "SageMaker instance type of the variant"
  type        = string
  default     = "ml.g5.xlarge"

  validation {
    condition     = can(regex("^ml\\.[a-z0-9-]+\\.[a-z0-9]+$", var.instance_type))
    error_message = "instance_type is \"${var.instance_type}\"; SageMaker's types start with ml., for example ml.g5.xlarge."
  }
}

variable "initial_instance_count" {
  description = "Instances a new endpoint configuration starts with; an update of a scaled fleet must pass the live count (make deploy does)"
  type        = number
  default     = 1
  nullable    = false

  validation {
    condition     = var.initial_instance_count >= 1 && floor(var.initial_instance_count) == var.initial_instance_count
    error_message = "initial_instance_count is ${var.initial_instance_count}; a real-time variant needs a whole number of at least 1."
  }
}

variable "name_salt" {
  description = "Part of the names' hash; a new value lets you go back to content whose names a rolled back update left taken"
  type        = string
  default     = ""
  nullable    = false
}

variable "container_environment" {
  description = "Environment of the container; MAX_QUEUE_DEPTH is set from the plan"
  type        = map(string)
  default     = {}
  nullable    = false

  validation {
    condition     = !contains(keys(var.container_environment), "MAX_QUEUE_DEPTH")
    error_message = "container_environment sets MAX_QUEUE_DEPTH to \"${lookup(var.container_environment, "MAX_QUEUE_DEPTH", "")}\"; remove it: the bound is measured, so it comes from plan_json."
  }

  validation {
    condition     = alltrue([for key in keys(var.container_environment) : can(regex("^[a-zA-Z_][a-zA-Z0-9_]*$", key))])
    error_message = "container_environment has the keys ${join(", ", keys(var.container_environment))}; SageMaker takes letters, digits and _ only, not starting with a digit."
  }

  validation {
    condition     = alltrue([for value in values(var.container_environment) : length(value) <= 1024])
    error_message = "container_environment holds a value of ${max(0, [for value in values(var.container_environment) : length(value)]...)} characters; SageMaker's limit is 1024."
  }
}

variable "container_startup_timeout_s" {
  description = "How long a new instance may take to pass its first health check"
  type        = number
  default     = 600

  validation {
    condition     = var.container_startup_timeout_s >= 60 && var.container_startup_timeout_s <= 3600
    error_message = "container_startup_timeout_s is ${var.container_startup_timeout_s}; SageMaker takes 60 to 3600."
  }
}

variable "model_download_timeout_s" {
  description = "How long the weights may take to reach a new instance"
  type        = number
  default     = 600

  validation {
    condition     = var.model_download_timeout_s >= 60 && var.model_download_timeout_s <= 3600
    error_message = "model_download_timeout_s is ${var.model_download_timeout_s}; SageMaker takes 60 to 3600."
  }
}

variable "inference_ami_version" {
  description = "SageMaker host image; null takes al2-ami-sagemaker-inference-gpu-3-1 (driver 550) for ml.g4dn, g5, g6 and g6e, SageMaker's default elsewhere"
  type        = string
  default     = null

  validation {
    condition     = var.inference_ami_version == null || can(regex("^al2(023)?-ami-sagemaker-inference-[a-z0-9-]+$", var.inference_ami_version))
    error_message = "inference_ami_version is ${var.inference_ami_version == null ? "null" : "\"${var.inference_ami_version}\""}; SageMaker's names look like al2-ami-sagemaker-inference-gpu-3-1."
  }
}

variable "vpc_config" {
  description = "Subnets and security groups for the container; null keeps it out of your VPC. The subnets need an S3 gateway endpoint for the weights"
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
  })
  default = null

  validation {
    condition     = var.vpc_config == null || (length(try(var.vpc_config.subnet_ids, [])) > 0 && length(try(var.vpc_config.security_group_ids, [])) > 0)
    error_message = "vpc_config has ${length(try(var.vpc_config.subnet_ids, []))} subnets and ${length(try(var.vpc_config.security_group_ids, []))} security groups; give at least one of each, or null."
  }
}

################################################################################
# Weights
################################################################################

variable "mount_model_data" {
  description = "Mount the weight cache at /opt/ml/model; false for an image that needs no weights from S3"
  type        = bool
  default     = true
  nullable    = false
}

variable "model_data_prefix" {
  description = "Prefix of the weights in the bucket, ending in /; null means models/<model_name>/<weights_revision>/"
  type        = string
  default     = null

  validation {
    condition     = var.model_data_prefix == null || can(regex("^[a-zA-Z0-9][a-zA-Z0-9/_.-]*/$", var.model_data_prefix))
    error_message = "model_data_prefix is ${var.model_data_prefix == null ? "null" : "\"${var.model_data_prefix}\""}; SageMaker reads a prefix, so start without / and end with /."
  }
}

variable "weights_repository" {
  description = "Hugging Face repository the weights are copied from"
  type        = string
  default     = "hexgrad/Kokoro-82M"

  validation {
    condition     = can(regex("^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$", var.weights_repository))
    error_message = "weights_repository is \"${var.weights_repository}\"; write owner/name."
  }
}

variable "weights_revision" {
  description = "Commit of the Hugging Face repository"
  type        = string
  default     = "f3ff3571791e39611d31c381e3a41a3af07b4987"

  validation {
    condition     = can(regex("^[0-9a-f]{40}$", var.weights_revision))
    error_message = "weights_revision is \"${var.weights_revision}\"; give the full 40-digit commit: a branch can change under a running fleet."
  }
}

variable "weights_files" {
  description = "Shell patterns of the files to copy"
  type        = list(string)
  default     = ["config.json", "kokoro-v1_0.pth", "voices/*.pt"]

  validation {
    condition     = length(var.weights_files) > 0
    error_message = "weights_files has ${length(var.weights_files)} patterns; name at least one file."
  }
}

variable "weights_sha256" {
  description = "Checksums to insist on, by file, besides those the repository publishes"
  type        = map(string)
  default     = { "kokoro-v1_0.pth" = "496dba118d1a58f5f3db2efc88dbdc216e0483fc89fe6e47ee1f2c53f18ad1e4" }

  validation {
    condition     = alltrue([for sum in values(var.weights_sha256) : can(regex("^[0-9a-f]{64}$", sum))])
    error_message = "weights_sha256 holds ${join(", ", values(var.weights_sha256))}; every checksum is 64 lower-case hex digits."
  }
}

################################################################################
# Keys, retention, deletion
################################################################################

variable "kms_key_arn" {
  description = "Customer key for bucket, image repository and build output; null uses AWS-managed encryption"
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null || can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[a-zA-Z0-9-]+$", var.kms_key_arn))
    error_message = "kms_key_arn is ${var.kms_key_arn == null ? "null" : "\"${var.kms_key_arn}\""}; give the key's full ARN (not an alias): role policies need it."
  }
}

variable "volume_kms_key_arn" {
  description = "Customer key for the instances' storage volume; only for types without local storage"
  type        = string
  default     = null

  validation {
    condition     = var.volume_kms_key_arn == null || can(regex("^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[a-zA-Z0-9-]+$", var.volume_kms_key_arn))
    error_message = "volume_kms_key_arn is ${var.volume_kms_key_arn == null ? "null" : "\"${var.volume_kms_key_arn}\""}; give the key's full ARN."
  }

  validation {
    condition     = var.volume_kms_key_arn == null || !can(regex("^ml\\.(g4dn|g5|g6|g6e|p3dn|p4d|p4de|p5|p5e|p5en|[cmr][5-8][a-z]*d[a-z]*)\\.", var.instance_type))
    error_message = "volume_kms_key_arn is set and instance_type is ${var.instance_type}, which has local storage that SageMaker encrypts itself and refuses a key for; set volume_kms_key_arn to null or use a type without local storage."
  }
}

variable "log_retention_days" {
  description = "How long the endpoint's and the builds' logs are kept"
  type        = number
  default     = 30

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "log_retention_days is ${var.log_retention_days}; CloudWatch Logs takes 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731 and some longer ones."
  }
}

variable "old_version_retention_days" {
  description = "How long a replaced object in the bucket can still be restored"
  type        = number
  default     = 30

  validation {
    condition     = var.old_version_retention_days >= 1 && floor(var.old_version_retention_days) == var.old_version_retention_days
    error_message = "old_version_retention_days is ${var.old_version_retention_days}; use a whole number of at least 1."
  }
}

variable "images_kept" {
  description = "Images kept in the repository; the deployed one must be among them"
  type        = number
  default     = 20

  validation {
    condition     = var.images_kept >= 2 && floor(var.images_kept) == var.images_kept
    error_message = "images_kept is ${var.images_kept}; keep at least 2, the deployed image and the one before."
  }
}

variable "force_destroy" {
  description = "Let destroy delete the bucket with its weights and the repository with its images"
  type        = bool
  default     = false
  nullable    = false
}

################################################################################
# Builders
################################################################################

variable "dockerfile" {
  description = "Dockerfile inside the source archive; its folder's parent, the archive's root, is the build context"
  type        = string
  default     = "container/Dockerfile"

  validation {
    condition     = can(regex("^[a-zA-Z0-9_.][a-zA-Z0-9_./-]*$", var.dockerfile))
    error_message = "dockerfile is \"${var.dockerfile}\"; give a path relative to the archive's root."
  }
}

variable "build_compute_type" {
  description = "CodeBuild compute type of the image build"
  type        = string
  default     = "BUILD_GENERAL1_LARGE"

  validation {
    condition     = contains(["BUILD_GENERAL1_SMALL", "BUILD_GENERAL1_MEDIUM", "BUILD_GENERAL1_LARGE", "BUILD_GENERAL1_XLARGE", "BUILD_GENERAL1_2XLARGE"], var.build_compute_type)
    error_message = "build_compute_type is \"${var.build_compute_type}\"; use BUILD_GENERAL1_SMALL, _MEDIUM, _LARGE, _XLARGE or _2XLARGE."
  }
}

################################################################################
# Operation
################################################################################

variable "alarm_topic_arns" {
  description = "SNS topics told when an alarm fires and when it recovers"
  type        = list(string)
  default     = []
  nullable    = false

  validation {
    condition     = alltrue([for arn in var.alarm_topic_arns : can(regex("^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[a-zA-Z0-9_-]+$", arn))])
    error_message = "alarm_topic_arns holds ${join(", ", var.alarm_topic_arns)}; every entry is the ARN of a standard SNS topic."
  }
}

variable "scheduled_actions" {
  description = "Changes of the fleet's bounds by time; SageMaker has no predictive scaling. A bound left out stays as it is"
  type = map(object({
    schedule      = string
    timezone      = optional(string, "UTC")
    min_instances = optional(number)
    max_instances = optional(number)
  }))
  default  = {}
  nullable = false

  validation {
    condition     = alltrue([for action in values(var.scheduled_actions) : can(regex("^(cron|at|rate)\\(.+\\)$", action.schedule))])
    error_message = "scheduled_actions has the schedules ${join(", ", [for action in values(var.scheduled_actions) : action.schedule])}; write cron(...), at(...) or rate(...)."
  }

  validation {
    condition     = alltrue([for action in values(var.scheduled_actions) : action.min_instances != null || action.max_instances != null])
    error_message = "scheduled_actions has an action that sets neither min_instances nor max_instances (${join(", ", [for name, action in var.scheduled_actions : name if action.min_instances == null && action.max_instances == null])}); set one or remove it."
  }

  validation {
    condition     = alltrue([for action in values(var.scheduled_actions) : coalesce(action.min_instances, 1) >= 1 && coalesce(action.max_instances, 1) >= 1])
    error_message = "scheduled_actions goes down to ${min(1, flatten([for action in values(var.scheduled_actions) : [coalesce(action.min_instances, 1), coalesce(action.max_instances, 1)]])...)}; a real-time variant cannot go below 1 instance."
  }

  validation {
    condition     = alltrue([for action in values(var.scheduled_actions) : try(action.min_instances <= action.max_instances, true)])
    error_message = "scheduled_actions has min_instances above max_instances: ${join(", ", [for name, action in var.scheduled_actions : "${name} ${try(action.min_instances > action.max_instances, false) ? "${action.min_instances} > ${action.max_instances}" : "ok"}"])}; swap them."
  }
}
