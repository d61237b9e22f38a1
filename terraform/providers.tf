# Everything else (credentials, AWS_ENDPOINT_URL) comes from the standard environment.
provider "aws" {
  region = var.region

  default_tags {
    tags = merge({ Project = var.project_name, ManagedBy = "terraform" }, var.tags)
  }

  # A measurement marks the endpoint it froze with a headroom:freeze tag; that is no drift.
  ignore_tags {
    key_prefixes = ["headroom:"]
  }
}
