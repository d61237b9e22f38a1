"""A ready endpoint through the AWS APIs, for people without Terraform."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from rehearsal.client import client
from rehearsal.errors import RehearsalError
from rehearsal.fleet.logs import log_group
from rehearsal.image import Image

POLL_S = 0.1
STARTUP_TIMEOUT_S = 600
TRUST = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Principal": {"Service": "sagemaker.amazonaws.com"}, "Action": "sts:AssumeRole"}],
}


@dataclass(frozen=True, slots=True)
class Seed:
    """What to create."""

    endpoint: str
    variant: str
    instance_type: str
    environment: dict[str, str]
    image: Image
    repository: str = "rehearsal"


def create(url: str, region: str, seed: Seed, progress: Callable[[str], None]) -> bool:
    """Wait until the endpoint is in service; False when it was there already, in whatever shape."""
    sagemaker = client(url, region, "sagemaker")
    missing = not _exists(lambda: sagemaker.describe_endpoint(EndpointName=seed.endpoint))
    if missing:
        image = seed.image.push(client(url, region, "ecr"), seed.repository)
        role = _role(client(url, region, "iam"), f"{seed.endpoint}-execution")
        _log_group(client(url, region, "logs"), log_group(seed.endpoint))
        _endpoint(sagemaker, seed, image, role)
    _wait(sagemaker, seed.endpoint, progress)
    return missing


def _role(iam: Any, name: str) -> str:
    if _exists(lambda: iam.get_role(RoleName=name)):
        return str(iam.get_role(RoleName=name)["Role"]["Arn"])
    return str(iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(TRUST))["Role"]["Arn"])


def _log_group(logs: Any, name: str) -> None:
    groups = logs.describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    if all(group["logGroupName"] != name for group in groups):
        logs.create_log_group(logGroupName=name)


def _endpoint(sagemaker: Any, seed: Seed, image: str, role: str) -> None:
    name = f"{seed.endpoint}-{seed.image.digest[7:15]}"
    if not _exists(lambda: sagemaker.describe_model(ModelName=name)):
        sagemaker.create_model(
            ModelName=name,
            ExecutionRoleArn=role,
            PrimaryContainer={"Image": image, "Environment": seed.environment},
        )
    if not _exists(lambda: sagemaker.describe_endpoint_config(EndpointConfigName=name)):
        sagemaker.create_endpoint_config(
            EndpointConfigName=name,
            ProductionVariants=[
                {
                    "VariantName": seed.variant,
                    "ModelName": name,
                    "InstanceType": seed.instance_type,
                    "InitialInstanceCount": 1,
                    "InitialVariantWeight": 1.0,
                    "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
                    "ContainerStartupHealthCheckTimeoutInSeconds": STARTUP_TIMEOUT_S,
                }
            ],
        )
    sagemaker.create_endpoint(EndpointName=seed.endpoint, EndpointConfigName=name)


def _wait(sagemaker: Any, endpoint: str, progress: Callable[[str], None]) -> None:
    started = time.monotonic()
    while True:
        found = sagemaker.describe_endpoint(EndpointName=endpoint)
        status = found["EndpointStatus"]
        if status == "InService":
            return
        if status == "Failed":
            raise RehearsalError(
                f"endpoint {endpoint} failed: {found.get('FailureReason')}",
                "python -m rehearsal logs shows what its container said",
            )
        progress(f"{endpoint}: {status}, {time.monotonic() - started:.0f} s")
        time.sleep(POLL_S)


def _exists(describe: Callable[[], Any]) -> bool:
    try:
        describe()
    except ClientError as error:
        if error.response["Error"]["Code"] in ("ValidationException", "NoSuchEntity"):
            return False
        raise
    return True
