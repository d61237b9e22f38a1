# Run with -var-file=examples/<name>/terraform.tfvars to see that an example passes every validation and plans.

mock_provider "aws" {
  source = "./tests/mocks"
}

run "plans" {
  command = plan

  variables {
    image_digest = "sha256:8b1b96bc4dc0b30ddd84d8fe37af7c490937333c44a9f8f7d77b918c3d7eaced"
  }

  assert {
    condition     = length(module.endpoint) == 1
    error_message = "the example deploys an endpoint"
  }
}
