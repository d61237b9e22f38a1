# The endpoint's own role: it reads one prefix and one repository, and writes its own logs.

data "aws_caller_identity" "this" {}

data "aws_region" "this" {}

data "aws_partition" "this" {}

locals {
  ec2 = "arn:${data.aws_partition.this.partition}:ec2:${data.aws_region.this.id}:${data.aws_caller_identity.this.account_id}"
}

data "aws_iam_policy_document" "assume" {
  statement {
    actions = ["sts:AssumeRole"]

    principals {
      type        = "Service"
      identifiers = ["sagemaker.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "this" {
  statement {
    sid       = "LogIn" # has no resource of its own
    actions   = ["ecr:GetAuthorizationToken"]
    resources = ["*"]
  }

  statement {
    sid       = "PullImage"
    actions   = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    resources = [var.image.repository_arn]
  }

  statement {
    sid       = "WriteLogs"
    actions   = ["logs:CreateLogGroup", "logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
    resources = [aws_cloudwatch_log_group.this.arn, "${aws_cloudwatch_log_group.this.arn}:*"]
  }

  statement {
    sid       = "WriteMetrics" # has no resource of its own; the namespace is the limit
    actions   = ["cloudwatch:PutMetricData"]
    resources = ["*"]

    condition {
      test     = "StringEquals"
      variable = "cloudwatch:namespace"
      values   = ["AWS/SageMaker", "/aws/sagemaker/Endpoints"]
    }
  }

  dynamic "statement" {
    for_each = var.model_data[*]

    content {
      sid       = "ReadWeights"
      actions   = ["s3:GetObject"]
      resources = ["${statement.value.bucket_arn}/${statement.value.prefix}*"]
    }
  }

  dynamic "statement" {
    for_each = var.model_data[*]

    content {
      sid       = "ListWeights"
      actions   = ["s3:ListBucket"]
      resources = [statement.value.bucket_arn]

      condition {
        test     = "StringLike"
        variable = "s3:prefix"
        values   = ["${statement.value.prefix}*"]
      }
    }
  }

  dynamic "statement" {
    for_each = var.kms_key_arn[*]

    content {
      sid       = "UseKey"
      actions   = ["kms:Decrypt"]
      resources = [statement.value]
    }
  }

  dynamic "statement" {
    for_each = var.volume_kms_key_arn[*]

    content {
      sid       = "UseVolumeKey"
      actions   = ["kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:GenerateDataKeyWithoutPlaintext"]
      resources = [statement.value]
    }
  }

  dynamic "statement" {
    for_each = var.vpc_config[*]

    content {
      sid     = "CreateInterfaces"
      actions = ["ec2:CreateNetworkInterface"]
      resources = concat(
        ["${local.ec2}:network-interface/*"],
        [for id in statement.value.subnet_ids : "${local.ec2}:subnet/${id}"],
        [for id in statement.value.security_group_ids : "${local.ec2}:security-group/${id}"],
      )
    }
  }

  dynamic "statement" {
    for_each = var.vpc_config[*]

    content {
      sid       = "ManageInterfaces"
      actions   = ["ec2:CreateNetworkInterfacePermission", "ec2:DeleteNetworkInterface", "ec2:DeleteNetworkInterfacePermission"]
      resources = ["${local.ec2}:network-interface/*"]
    }
  }

  dynamic "statement" {
    for_each = var.vpc_config[*]

    content {
      sid       = "SeeNetwork" # Describe calls have no resource of their own
      actions   = ["ec2:DescribeDhcpOptions", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs"]
      resources = ["*"]
    }
  }
}

resource "aws_iam_role" "this" {
  name               = "${var.endpoint_name}-endpoint"
  assume_role_policy = data.aws_iam_policy_document.assume.json
}

resource "aws_iam_role_policy" "this" {
  name   = "endpoint"
  role   = aws_iam_role.this.id
  policy = data.aws_iam_policy_document.this.json
}
