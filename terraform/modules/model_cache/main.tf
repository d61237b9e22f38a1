# The bucket of weights and image sources, and the build project that fills it from Hugging Face.

data "aws_caller_identity" "this" {}

data "aws_region" "this" {}

data "aws_partition" "this" {}

locals {
  account_id  = data.aws_caller_identity.this.account_id
  region      = data.aws_region.this.id
  partition   = data.aws_partition.this.partition
  bucket_name = "${var.name}-${local.account_id}-${local.region}"
  bucket_arn  = "arn:${local.partition}:s3:::${local.bucket_name}"
  project     = "${var.name}-weights"
}

################################################################################
# Bucket
################################################################################

resource "aws_s3_bucket" "this" {
  bucket        = local.bucket_name
  force_destroy = var.force_destroy
}

resource "aws_s3_bucket_public_access_block" "this" {
  bucket = aws_s3_bucket.this.id

  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_ownership_controls" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    object_ownership = "BucketOwnerEnforced"
  }
}

resource "aws_s3_bucket_versioning" "this" {
  bucket = aws_s3_bucket.this.id

  versioning_configuration {
    status = "Enabled"
  }
}

resource "aws_s3_bucket_server_side_encryption_configuration" "this" {
  bucket = aws_s3_bucket.this.id

  rule {
    bucket_key_enabled = var.kms_key_arn != null

    apply_server_side_encryption_by_default {
      sse_algorithm     = var.kms_key_arn == null ? "AES256" : "aws:kms"
      kms_master_key_id = var.kms_key_arn
    }
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "this" {
  bucket = aws_s3_bucket_versioning.this.bucket

  rule {
    id     = "old-versions"
    status = "Enabled"

    filter {}

    noncurrent_version_expiration {
      noncurrent_days = var.old_version_retention_days
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 7
    }
  }
}

data "aws_iam_policy_document" "bucket" {
  statement {
    sid       = "TlsOnly"
    effect    = "Deny"
    actions   = ["s3:*"]
    resources = [local.bucket_arn, "${local.bucket_arn}/*"]

    principals {
      type        = "*"
      identifiers = ["*"]
    }

    condition {
      test     = "Bool"
      variable = "aws:SecureTransport"
      values   = ["false"]
    }
  }
}

resource "aws_s3_bucket_policy" "this" {
  bucket = aws_s3_bucket.this.id
  policy = data.aws_iam_policy_document.bucket.json

  depends_on = [aws_s3_bucket_public_access_block.this]
}

################################################################################
# Weights: a build without a source
################################################################################

resource "aws_cloudwatch_log_group" "weights" {
  name              = "/aws/codebuild/${local.project}"
  retention_in_days = var.log_retention_days
}

data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["codebuild.amazonaws.com"]
    }

    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [local.account_id]
    }
  }
}

data "aws_iam_policy_document" "weights" {
  statement {
    sid       = "WriteLogs"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.weights.arn}:*"]
  }

  statement {
    sid       = "WriteWeights"
    actions   = ["s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload"]
    resources = ["${local.bucket_arn}/models/*", "${local.bucket_arn}/${var.weights.prefix}*"]
  }

  statement {
    sid       = "ListWeights"
    actions   = ["s3:ListBucket"]
    resources = [local.bucket_arn]

    condition {
      test     = "StringLike"
      variable = "s3:prefix"
      values   = ["models/*", "${var.weights.prefix}*"]
    }
  }

  dynamic "statement" {
    for_each = var.kms_key_arn[*]

    content {
      sid       = "UseKey"
      actions   = ["kms:Decrypt", "kms:GenerateDataKey"]
      resources = [statement.value]
    }
  }
}

resource "aws_iam_role" "weights" {
  name               = "${local.project}-build"
  assume_role_policy = data.aws_iam_policy_document.assume.json
}

resource "aws_iam_role_policy" "weights" {
  name   = "build"
  role   = aws_iam_role.weights.id
  policy = data.aws_iam_policy_document.weights.json
}

resource "aws_codebuild_project" "weights" {
  name           = local.project
  description    = "Copies ${var.weights.repository} at a pinned commit into the bucket, checksums verified"
  service_role   = aws_iam_role.weights.arn
  build_timeout  = 30
  encryption_key = var.kms_key_arn

  artifacts {
    type = "NO_ARTIFACTS"
  }

  environment {
    type         = "LINUX_CONTAINER"
    compute_type = "BUILD_GENERAL1_SMALL"
    image        = "aws/codebuild/amazonlinux-x86_64-standard:5.0"

    dynamic "environment_variable" {
      for_each = {
        WEIGHTS_REPOSITORY = var.weights.repository
        WEIGHTS_REVISION   = var.weights.revision
        WEIGHTS_FILES      = jsonencode(var.weights.files)
        WEIGHTS_SHA256     = jsonencode(var.weights.sha256)
        DESTINATION        = "s3://${local.bucket_name}/${var.weights.prefix}"
      }

      content {
        name  = environment_variable.key
        value = environment_variable.value
      }
    }
  }

  logs_config {
    cloudwatch_logs {
      group_name = aws_cloudwatch_log_group.weights.name
    }
  }

  source {
    type      = "NO_SOURCE"
    buildspec = templatefile("${path.module}/buildspec.yml.tftpl", { script = file("${path.module}/sync_weights.py") })
  }

  depends_on = [aws_iam_role_policy.weights]
}
