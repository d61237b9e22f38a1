mock_data "aws_caller_identity" {
  defaults = {
    account_id = "111122223333"
  }
}

mock_data "aws_region" {
  defaults = {
    id   = "eu-west-1"
    name = "eu-west-1"
  }
}

mock_data "aws_partition" {
  defaults = {
    partition = "aws"
  }
}

mock_data "aws_iam_policy_document" {
  defaults = {
    json = "{\"Version\":\"2012-10-17\",\"Statement\":[]}"
  }
}

mock_data "aws_ecr_image" {
  defaults = {
    image_digest = "sha256:8b1b96bc4dc0b30ddd84d8fe37af7c490937333c44a9f8f7d77b918c3d7eaced"
  }
}

mock_data "aws_s3_objects" {
  defaults = {
    keys = ["models/kokoro-82m/SHA256SUMS"]
  }
}
