"""How a provider log becomes IAM actions; test_applied.py compares those of a whole life with the policy."""

from __future__ import annotations

from .iam_calls import of_provider_log, refused


def test_a_provider_log_is_read() -> None:
    line = 'x: HTTP Request Sent: rpc.service="Application Auto Scaling" a.b=c rpc.method=PutScalingPolicy'
    assert of_provider_log(line) == {"application-autoscaling:PutScalingPolicy"}
    assert of_provider_log("rpc.method=PutBucketEncryption rpc.service=S3") == {"s3:PutEncryptionConfiguration"}


def test_what_the_policy_leaves_out_is_named() -> None:
    assert refused({"sagemaker:CreateEndpoint", "sagemaker:CreateTrainingJob"}) == ["sagemaker:CreateTrainingJob"]
