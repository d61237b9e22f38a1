"""docs/operator-policy.json allows what the commands call, and names resources wherever AWS has them."""

from __future__ import annotations

import json

import pytest

from planner.artifacts.base import read_json

from .conftest import REPOSITORY
from .operator import POLICY, allowed, of_provider_log, of_sources

# Calls whose resource AWS cannot narrow.
WITHOUT_RESOURCE = "ReadsThatAwsCannotNarrow"


@pytest.mark.parametrize("folder", ["scripts", "loadtest"])
def test_every_call_of_the_commands_is_allowed(folder: str) -> None:
    found = of_sources(REPOSITORY / folder)
    assert found
    assert found - allowed() == set()


def test_the_scan_sees_methods_paginators_and_invocations() -> None:
    found = of_sources(REPOSITORY / "scripts") | of_sources(REPOSITORY / "loadtest")
    assert found >= {
        "sagemaker:UpdateEndpointWeightsAndCapacities", "cloudwatch:GetMetricData", "s3:PutObject",
        "servicequotas:ListServiceQuotas", "codebuild:StartBuild", "sagemaker:InvokeEndpointWithResponseStream",
    }  # fmt: skip


def test_a_provider_log_is_read() -> None:
    line = 'x: HTTP Request Sent: rpc.service="Application Auto Scaling" a.b=c rpc.method=PutScalingPolicy'
    assert of_provider_log(line) == {"application-autoscaling:PutScalingPolicy"}
    assert of_provider_log("rpc.method=PutBucketEncryption rpc.service=S3") == {"s3:PutEncryptionConfiguration"}


def test_star_only_for_reads_that_aws_cannot_narrow() -> None:
    for statement in read_json(POLICY)["Statement"]:
        assert statement["Effect"] == "Allow"
        if statement["Resource"] == "*":
            assert statement["Sid"] == WITHOUT_RESOURCE
            assert all(name.split(":")[1].startswith(("Describe", "Get", "List")) for name in statement["Action"])


def test_no_wildcard_action() -> None:
    assert not [name for name in allowed() if "*" in name]


def test_it_fits_a_managed_policy() -> None:
    assert len(json.dumps(read_json(POLICY), separators=(",", ":"))) <= 6144
