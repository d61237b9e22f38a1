# Bucket, repository and builders: encryption with and without a key of your own, and what a build is told.

mock_provider "aws" {
  source = "./tests/mocks"
}

run "cache_with_aws_managed_encryption" {
  command = plan

  module {
    source = "./modules/model_cache"
  }

  variables {
    name                       = "headroom"
    force_destroy              = false
    old_version_retention_days = 30
    log_retention_days         = 30
    weights = {
      repository = "owner/model"
      revision   = "f3ff3571791e39611d31c381e3a41a3af07b4987"
      files      = ["*.pth"]
      sha256     = {}
      prefix     = "models/model/"
    }
  }

  assert {
    condition = alltrue([
      for rule in aws_s3_bucket_server_side_encryption_configuration.this.rule :
      rule.apply_server_side_encryption_by_default[0].sse_algorithm == "AES256"
    ])
    error_message = "SSE-S3 without a key"
  }

  assert {
    condition     = !contains([for statement in data.aws_iam_policy_document.weights.statement : statement.sid], "UseKey")
    error_message = "no key, no permission on one"
  }

  assert {
    condition = (
      aws_s3_bucket_public_access_block.this.block_public_acls && aws_s3_bucket_public_access_block.this.block_public_policy &&
      aws_s3_bucket_public_access_block.this.ignore_public_acls && aws_s3_bucket_public_access_block.this.restrict_public_buckets &&
      aws_s3_bucket_versioning.this.versioning_configuration[0].status == "Enabled" && !aws_s3_bucket.this.force_destroy
    )
    error_message = "private, versioned, not deleted by accident"
  }

  assert {
    condition = (
      data.aws_iam_policy_document.bucket.statement[0].effect == "Deny" &&
      one(data.aws_iam_policy_document.bucket.statement[0].condition).variable == "aws:SecureTransport"
    )
    error_message = "TLS only"
  }

  assert {
    condition     = aws_codebuild_project.weights.source[0].type == "NO_SOURCE" && strcontains(aws_codebuild_project.weights.source[0].buildspec, "def listing(repository, revision):")
    error_message = "the copy carries its own script"
  }

  assert {
    condition = contains(
      [for variable in aws_codebuild_project.weights.environment[0].environment_variable : "${variable.name}=${variable.value}"],
      "DESTINATION=s3://headroom-111122223333-eu-west-1/models/model/",
    )
    error_message = "the weights go where the endpoint reads them"
  }
}

run "cache_with_a_key" {
  command = plan

  module {
    source = "./modules/model_cache"
  }

  variables {
    name                       = "headroom"
    kms_key_arn                = "arn:aws:kms:eu-west-1:111122223333:key/aaaaaaaa-2222-3333-4444-555555555555"
    force_destroy              = true
    old_version_retention_days = 30
    log_retention_days         = 30
    weights = {
      repository = "owner/model"
      revision   = "f3ff3571791e39611d31c381e3a41a3af07b4987"
      files      = ["*.pth"]
      sha256     = {}
      prefix     = "models/model/"
    }
  }

  assert {
    condition = alltrue([
      for rule in aws_s3_bucket_server_side_encryption_configuration.this.rule :
      rule.bucket_key_enabled &&
      rule.apply_server_side_encryption_by_default[0].sse_algorithm == "aws:kms" &&
      rule.apply_server_side_encryption_by_default[0].kms_master_key_id == "arn:aws:kms:eu-west-1:111122223333:key/aaaaaaaa-2222-3333-4444-555555555555"
    ])
    error_message = "the bucket uses the key"
  }

  assert {
    condition     = aws_codebuild_project.weights.encryption_key == "arn:aws:kms:eu-west-1:111122223333:key/aaaaaaaa-2222-3333-4444-555555555555"
    error_message = "so does the build"
  }

  assert {
    condition     = contains([for statement in data.aws_iam_policy_document.weights.statement : statement.sid], "UseKey")
    error_message = "and its role may"
  }

  assert {
    condition     = aws_s3_bucket.this.force_destroy
    error_message = "force_destroy is passed on"
  }
}

run "registry_with_aws_managed_encryption" {
  command = plan

  module {
    source = "./modules/registry"
  }

  variables {
    name               = "headroom"
    model_name         = "model"
    force_destroy      = false
    images_kept        = 20
    log_retention_days = 30
    dockerfile         = "container/Dockerfile"
    compute_type       = "BUILD_GENERAL1_LARGE"
    source_bucket      = { name = "bucket", arn = "arn:aws:s3:::bucket", key = "source/image.zip" }
  }

  assert {
    condition = (
      aws_ecr_repository.this.image_tag_mutability == "IMMUTABLE" &&
      aws_ecr_repository.this.image_scanning_configuration[0].scan_on_push &&
      aws_ecr_repository.this.encryption_configuration[0].encryption_type == "AES256"
    )
    error_message = "immutable, scanned, encrypted"
  }

  assert {
    condition     = jsondecode(aws_ecr_lifecycle_policy.this.policy).rules[1].selection.countNumber == 20
    error_message = "old images leave"
  }

  assert {
    condition     = aws_codebuild_project.image.source[0].type == "S3" && aws_codebuild_project.image.source[0].location == "bucket/source/image.zip"
    error_message = "built from the archive"
  }

  assert {
    condition = alltrue([
      for flag in ["--platform linux/amd64", "--provenance=false", "--sbom=false", "oci-mediatypes=false", "application/vnd.docker.distribution.manifest.v2+json"] :
      strcontains(aws_codebuild_project.image.source[0].buildspec, flag)
    ])
    error_message = "an image SageMaker takes: one architecture, docker media type, no attestations, checked after the push"
  }

  assert {
    condition     = one([for statement in data.aws_iam_policy_document.image.statement : statement.resources if statement.sid == "ReadSource"]) == toset(["arn:aws:s3:::bucket/source/*"])
    error_message = "the build reads its source and no more"
  }
}

run "registry_with_a_key" {
  command = plan

  module {
    source = "./modules/registry"
  }

  variables {
    name               = "headroom"
    model_name         = "model"
    kms_key_arn        = "arn:aws:kms:eu-west-1:111122223333:key/aaaaaaaa-2222-3333-4444-555555555555"
    force_destroy      = true
    images_kept        = 20
    log_retention_days = 30
    dockerfile         = "container/Dockerfile"
    compute_type       = "BUILD_GENERAL1_LARGE"
    source_bucket      = { name = "bucket", arn = "arn:aws:s3:::bucket", key = "source/image.zip" }
  }

  assert {
    condition = (
      aws_ecr_repository.this.encryption_configuration[0].encryption_type == "KMS" &&
      aws_ecr_repository.this.encryption_configuration[0].kms_key == "arn:aws:kms:eu-west-1:111122223333:key/aaaaaaaa-2222-3333-4444-555555555555" &&
      aws_codebuild_project.image.encryption_key == "arn:aws:kms:eu-west-1:111122223333:key/aaaaaaaa-2222-3333-4444-555555555555" &&
      aws_ecr_repository.this.force_delete
    )
    error_message = "repository and build use the key"
  }
}
