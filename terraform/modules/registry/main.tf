# The image repository and the build project that fills it, so that nobody needs Docker.

data "aws_caller_identity" "this" {}

locals {
  project = "${var.name}-image"
}

################################################################################
# Repository
################################################################################

resource "aws_ecr_repository" "this" {
  name                 = "${var.name}/${var.model_name}"
  image_tag_mutability = "IMMUTABLE"
  force_delete         = var.force_destroy

  image_scanning_configuration {
    scan_on_push = true
  }

  encryption_configuration {
    encryption_type = var.kms_key_arn == null ? "AES256" : "KMS"
    kms_key         = var.kms_key_arn
  }
}

resource "aws_ecr_lifecycle_policy" "this" {
  repository = aws_ecr_repository.this.name

  policy = jsonencode({
    rules = [
      {
        rulePriority = 1
        description  = "Untagged images are failed pushes"
        selection    = { tagStatus = "untagged", countType = "sinceImagePushed", countUnit = "days", countNumber = 7 }
        action       = { type = "expire" }
      },
      {
        rulePriority = 2
        description  = "Keep the newest images"
        selection    = { tagStatus = "any", countType = "imageCountMoreThan", countNumber = var.images_kept }
        action       = { type = "expire" }
      },
    ]
  })
}

################################################################################
# Build
################################################################################

resource "aws_cloudwatch_log_group" "image" {
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
      values   = [data.aws_caller_identity.this.account_id]
    }
  }
}

data "aws_iam_policy_document" "image" {
  statement {
    sid       = "WriteLogs"
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents"]
    resources = ["${aws_cloudwatch_log_group.image.arn}:*"]
  }

  statement {
    sid       = "ReadSource"
    actions   = ["s3:GetObject", "s3:GetObjectVersion"]
    resources = ["${var.source_bucket.arn}/${dirname(var.source_bucket.key)}/*"]
  }

  statement {
    sid       = "FindSource"
    actions   = ["s3:GetBucketLocation", "s3:GetBucketVersioning"]
    resources = [var.source_bucket.arn]
  }

  statement {
    sid       = "LogIn" # has no resource of its own
    actions   = ["ecr:GetAuthorizationToken"]
    resources = ["*"]
  }

  statement {
    sid = "PushImage"
    actions = [
      "ecr:BatchCheckLayerAvailability",
      "ecr:BatchGetImage",
      "ecr:CompleteLayerUpload",
      "ecr:DescribeImages",
      "ecr:GetDownloadUrlForLayer",
      "ecr:InitiateLayerUpload",
      "ecr:PutImage",
      "ecr:UploadLayerPart",
    ]
    resources = [aws_ecr_repository.this.arn]
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

resource "aws_iam_role" "image" {
  name               = "${local.project}-build"
  assume_role_policy = data.aws_iam_policy_document.assume.json
}

resource "aws_iam_role_policy" "image" {
  name   = "build"
  role   = aws_iam_role.image.id
  policy = data.aws_iam_policy_document.image.json
}

resource "aws_codebuild_project" "image" {
  name           = local.project
  description    = "Builds ${aws_ecr_repository.this.name} for linux/amd64 from the source archive"
  service_role   = aws_iam_role.image.arn
  build_timeout  = 60
  encryption_key = var.kms_key_arn

  artifacts {
    type = "NO_ARTIFACTS"
  }

  environment {
    type            = "LINUX_CONTAINER"
    compute_type    = var.compute_type
    image           = "aws/codebuild/amazonlinux-x86_64-standard:5.0"
    privileged_mode = true # the Docker daemon needs it

    dynamic "environment_variable" {
      for_each = {
        REPOSITORY_NAME = aws_ecr_repository.this.name
        REPOSITORY_URL  = aws_ecr_repository.this.repository_url
        DOCKERFILE      = var.dockerfile
        IMAGE_TAG       = "unset" # every build names its own
      }

      content {
        name  = environment_variable.key
        value = environment_variable.value
      }
    }
  }

  logs_config {
    cloudwatch_logs {
      group_name = aws_cloudwatch_log_group.image.name
    }
  }

  source {
    type      = "S3"
    location  = "${var.source_bucket.name}/${var.source_bucket.key}"
    buildspec = file("${path.module}/buildspec.yml")
  }

  depends_on = [aws_iam_role_policy.image]
}
