"""docs/operator-policy.json against the calls in scripts/ and loadtest/."""

from __future__ import annotations

import ast
import fnmatch
import json
from collections.abc import Iterator
from pathlib import Path

import botocore.session
import pytest
from botocore import xform_name

from tests.terraform.blocks import typed

ROOT = Path(__file__).parents[2]
POLICY = json.loads((ROOT / "docs/operator-policy.json").read_text())
PREFIX = {"service-quotas": "servicequotas"}
# S3's actions have names of their own.
S3 = {
    "list_objects_v2": "ListBucket",
    "get_object": "GetObject",
    "head_object": "GetObject",
    "put_object": "PutObject",
    "list_object_versions": "ListBucketVersions",
}
RUNTIME = {"sagemaker:InvokeEndpoint", "sagemaker:InvokeEndpointWithResponseStream"}


def calls(path: Path) -> Iterator[tuple[str, str]]:
    """(service, method) of every ``control("service").method`` and of methods of a name bound to such a client."""
    tree = ast.parse(path.read_text())
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            service = service_of(node.value)
            if service:
                bound[node.targets[0].id] = service
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner = node.func.value
        service = service_of(owner) or (bound.get(owner.id) if isinstance(owner, ast.Name) else None)
        if service is None:
            continue
        method = node.func.attr
        if method == "get_paginator" and isinstance(node.args[0], ast.Constant):
            method = str(node.args[0].value)
        if method != "get_paginator":
            yield service, method


def service_of(node: ast.expr) -> str | None:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "control":
        return str(node.args[0].value) if isinstance(node.args[0], ast.Constant) else None
    return None


def iam_action(service: str, method: str) -> str:
    if service == "s3":
        return f"s3:{S3[method]}"
    model = botocore.session.get_session().get_service_model(service)
    operation = next(name for name in model.operation_names if xform_name(name) == method)
    return f"{PREFIX.get(service, service)}:{operation}"


def needed() -> set[str]:
    files = [path for folder in ("scripts", "loadtest") for path in (ROOT / folder).rglob("*.py")]
    return {iam_action(service, method) for path in files for service, method in calls(path)} | RUNTIME


def granted() -> list[str]:
    return [action for statement in POLICY["Statement"] for action in statement["Action"]]


def test_every_call_of_ours_is_granted():
    found = needed()
    assert len(found) > 25  # the scan sees the calls
    missing = sorted(action for action in found if not any(fnmatch.fnmatchcase(action, g) for g in granted()))
    assert missing == []


def test_the_alarms_of_target_tracking_are_only_read():
    """AWS owns them: no call of ours changes an alarm, and none of Terraform's has a name of theirs."""
    found = {action for action in needed() if action.startswith("cloudwatch:")}
    assert found <= {"cloudwatch:GetMetricData", "cloudwatch:DescribeAlarms"}
    alarms = [
        body for type_, _, body in typed([*ROOT.glob("terraform/**/*.tf")], "resource") if "metric_alarm" in type_
    ]
    assert alarms
    assert not [body["alarm_name"] for body in alarms if body["alarm_name"].startswith("TargetTracking-")]


@pytest.mark.parametrize("statement", POLICY["Statement"], ids=lambda statement: statement["Sid"])
def test_no_statement_grants_a_whole_service(statement):
    assert statement["Effect"] == "Allow"
    assert all(action.split(":")[1] not in {"*", ""} for action in statement["Action"])


# Actions for which AWS's service authorization reference lists no resource type.
WITHOUT_RESOURCE = {
    "application-autoscaling:Describe*",
    "cloudwatch:GetMetricData",
    "cloudwatch:DescribeAlarms",
    "cloudwatch:ListMetrics",
    "ecr:GetAuthorizationToken",
    "logs:DescribeLogGroups",
    "sagemaker:ListEndpoints",
    "servicequotas:ListServiceQuotas",
    "servicequotas:ListAWSDefaultServiceQuotas",
    "sts:GetCallerIdentity",
}


def test_a_star_stands_only_where_aws_knows_no_resource():
    for statement in POLICY["Statement"]:
        resources = statement["Resource"] if isinstance(statement["Resource"], list) else [statement["Resource"]]
        if "*" in resources:
            assert set(statement["Action"]) <= WITHOUT_RESOURCE, statement["Sid"]


def test_passing_a_role_is_bound_to_its_service():
    (passing,) = [s for s in POLICY["Statement"] if "iam:PassRole" in s["Action"]]
    services = passing["Condition"]["StringEquals"]["iam:PassedToService"]
    assert sorted(services) == ["codebuild.amazonaws.com", "sagemaker.amazonaws.com"]
