"""Driving Terraform and CodeBuild."""
