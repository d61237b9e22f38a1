"""What is deployed right now: one endpoint variant as SageMaker describes it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlparse

from botocore.exceptions import ClientError

from planner.artifacts.fingerprint import ADMISSION_BOUND_ENV, Fingerprint, Transport, Workload
from planner.errors import AwsError, UsageError
from scripts.aws.clients import aws_errors, control, error_code, error_message

CHECKSUMS = "SHA256SUMS"


@dataclass(frozen=True)
class LiveEndpoint:
    """One variant, its configuration, model and counts."""

    name: str
    variant: str
    status: str
    failure_reason: str | None
    config_name: str
    instance_type: str
    image: str
    image_digest: str | None
    """``sha256:<hex>``; None when neither the model nor the endpoint names one."""
    environment: dict[str, str]
    model_data_url: str | None
    model_data_hash: str | None
    desired_instances: int
    current_instances: int
    arn: str
    created_at: datetime | None = None
    model_name: str = ""


@dataclass(frozen=True)
class Counts:
    """How many instances a variant has, cheap enough to poll."""

    status: str
    failure_reason: str | None
    desired: int
    current: int
    config_name: str
    modified_at: datetime | None

    @property
    def settled(self) -> bool:
        """Nothing is changing."""
        return self.status == "InService" and self.desired == self.current


def log_group(endpoint: str) -> str:
    """Where the containers of an endpoint log."""
    return f"/aws/sagemaker/Endpoints/{endpoint}"


def describe(name: str, variant: str) -> LiveEndpoint:
    """Read one variant; an unknown endpoint or variant is a UsageError that lists what exists."""
    with aws_errors(f"reading endpoint {name}"):
        endpoint = _describe_endpoint(name)
        sagemaker = control("sagemaker")
        config = sagemaker.describe_endpoint_config(EndpointConfigName=endpoint["EndpointConfigName"])
        configured = _named_variant(config["ProductionVariants"], name, variant)
        live: dict[str, Any] = next(
            (v for v in endpoint.get("ProductionVariants", []) if v["VariantName"] == variant), {}
        )
        model = sagemaker.describe_model(ModelName=configured["ModelName"])
        container = model.get("PrimaryContainer") or model["Containers"][0]
        url = _model_data_url(container)
        return LiveEndpoint(
            name=name,
            variant=variant,
            status=endpoint["EndpointStatus"],
            failure_reason=endpoint.get("FailureReason"),
            config_name=endpoint["EndpointConfigName"],
            instance_type=configured["InstanceType"],
            image=container["Image"],
            image_digest=_digest(container["Image"], live),
            environment=dict(container.get("Environment", {})),
            model_data_url=url,
            model_data_hash=_model_data_hash(url) if url else None,
            desired_instances=live.get("DesiredInstanceCount", configured["InitialInstanceCount"]),
            current_instances=live.get("CurrentInstanceCount", 0),
            arn=endpoint["EndpointArn"],
            created_at=endpoint.get("CreationTime"),
            model_name=configured["ModelName"],
        )


def read_counts(name: str, variant: str) -> Counts:
    """Status and instance counts right now."""
    with aws_errors(f"reading endpoint {name}"):
        endpoint = _describe_endpoint(name)
    live: dict[str, Any] = next((v for v in endpoint.get("ProductionVariants", []) if v["VariantName"] == variant), {})
    return Counts(
        status=endpoint["EndpointStatus"],
        failure_reason=endpoint.get("FailureReason"),
        desired=live.get("DesiredInstanceCount", 0),
        current=live.get("CurrentInstanceCount", 0),
        config_name=endpoint["EndpointConfigName"],
        modified_at=endpoint.get("LastModifiedTime"),
    )


def status_of(name: str) -> str | None:
    """SageMaker's status of the endpoint; None when there is none of that name."""
    with aws_errors(f"reading endpoint {name}"):
        try:
            return str(control("sagemaker").describe_endpoint(EndpointName=name)["EndpointStatus"])
        except ClientError as error:
            if _is_unknown(error):
                return None
            raise


def require_in_service(live: LiveEndpoint) -> None:
    """Raise unless the endpoint is InService and not changing its count."""
    if live.status == "Failed":
        raise AwsError(
            f"endpoint {live.name} is Failed: {live.failure_reason or 'no reason given'}",
            f"read the log group {log_group(live.name)}, then deploy again",
        )
    if live.status != "InService":
        raise UsageError(
            f"endpoint {live.name} is {live.status}, not InService", "wait until it is InService, run again"
        )
    if live.current_instances != live.desired_instances:
        raise UsageError(
            f"endpoint {live.name} is changing from {live.current_instances} to {live.desired_instances} instances",
            "wait until the counts agree, run again",
        )


def fingerprint(live: LiveEndpoint, workload: Workload, transport: Transport) -> Fingerprint:
    """Identity of this deployment under this workload."""
    if live.image_digest is None:
        raise UsageError(
            f"the image of {live.name} has no digest: {live.image}", "deploy by digest (make deploy), never by tag"
        )
    return Fingerprint(
        instance_type=live.instance_type,
        image_digest=live.image_digest,
        model_data_url=live.model_data_url,
        model_data_hash=live.model_data_hash,
        transport=transport,
        container_env={key: value for key, value in live.environment.items() if key != ADMISSION_BOUND_ENV},
        workload=workload,
    )


def _describe_endpoint(name: str) -> dict[str, Any]:
    sagemaker = control("sagemaker")
    try:
        return dict(sagemaker.describe_endpoint(EndpointName=name))
    except ClientError as error:
        if not _is_unknown(error):
            raise
    names = ", ".join(found["EndpointName"] for found in sagemaker.list_endpoints(MaxResults=20)["Endpoints"])
    raise UsageError(f"no endpoint is named {name!r}", f"endpoints here: {names or 'none'}; `make deploy` creates it")


def _is_unknown(error: ClientError) -> bool:
    return error_code(error) == "ResourceNotFound" or (
        error_code(error) == "ValidationException" and "could not find" in error_message(error).lower()
    )


def _named_variant(variants: list[dict[str, Any]], name: str, variant: str) -> dict[str, Any]:
    for candidate in variants:
        if candidate["VariantName"] == variant:
            return candidate
    names = ", ".join(v["VariantName"] for v in variants)
    raise UsageError(f"endpoint {name} has no variant {variant!r}", f"variants: {names}")


def _digest(image: str, live: dict[str, Any]) -> str | None:
    resolved = [d.get("ResolvedImage", "") for d in live.get("DeployedImages", [])]
    for candidate in (image, *resolved):
        digest = str(candidate).partition("@")[2]
        if digest.startswith("sha256:"):
            return digest
    return None


def _model_data_url(container: dict[str, Any]) -> str | None:
    source = container.get("ModelDataSource", {}).get("S3DataSource", {})
    url = source.get("S3Uri") or container.get("ModelDataUrl")
    return str(url) if url else None


def _model_data_hash(url: str) -> str:
    """Of the checksum list beside the weights, else of every object's key, size and ETag under the location."""
    parsed = urlparse(url)
    prefix = parsed.path.lstrip("/")
    listed = _checksum_list(parsed.netloc, prefix)
    digest = hashlib.sha256(listed or b"")
    if listed is None:
        for page in control("s3").get_paginator("list_objects_v2").paginate(Bucket=parsed.netloc, Prefix=prefix):
            for item in page.get("Contents", []):
                relative = item["Key"].removeprefix(prefix)
                digest.update(f"{relative}\0{item['Size']}\0{item['ETag']}\n".encode())
    return f"sha256:{digest.hexdigest()}"


def _checksum_list(bucket: str, prefix: str) -> bytes | None:
    if not prefix.endswith("/"):
        return None
    try:
        answer = control("s3").get_object(Bucket=bucket, Key=f"{prefix}{CHECKSUMS}")
    except ClientError as error:
        if error_code(error) in {"NoSuchKey", "404"}:
            return None
        raise
    return bytes(answer["Body"].read())
