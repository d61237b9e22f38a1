"""What an operator needs: calls to IAM actions, and the documented policy."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import boto3
import botocore.session

POLICY = Path(__file__).parents[2] / "docs" / "operator-policy.json"

PREFIXES = {
    "Application Auto Scaling": "application-autoscaling",
    "CloudWatch Logs": "logs",
    "Service Quotas": "servicequotas",
    "service-quotas": "servicequotas",
    "sagemaker-runtime": "sagemaker",
}
# Where IAM names an action otherwise than the API names the call.
RENAMED = {
    "s3:DeleteBucketEncryption": "s3:PutEncryptionConfiguration",
    "s3:DeleteBucketLifecycle": "s3:PutLifecycleConfiguration",
    "s3:DeleteBucketOwnershipControls": "s3:PutBucketOwnershipControls",
    "s3:DeleteObjects": "s3:DeleteObject",
    "s3:DeletePublicAccessBlock": "s3:PutBucketPublicAccessBlock",
    "s3:GetBucketAccelerateConfiguration": "s3:GetAccelerateConfiguration",
    "s3:GetBucketCors": "s3:GetBucketCORS",
    "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "s3:GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
    "s3:GetBucketReplication": "s3:GetReplicationConfiguration",
    "s3:GetObjectLockConfiguration": "s3:GetBucketObjectLockConfiguration",
    "s3:GetPublicAccessBlock": "s3:GetBucketPublicAccessBlock",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:HeadObject": "s3:GetObject",
    "s3:ListObjectVersions": "s3:ListBucketVersions",
    "s3:ListObjectsV2": "s3:ListBucket",
    "s3:PutBucketEncryption": "s3:PutEncryptionConfiguration",
    "s3:PutBucketLifecycleConfiguration": "s3:PutLifecycleConfiguration",
    "s3:PutPublicAccessBlock": "s3:PutBucketPublicAccessBlock",
}


def action(service: str, call: str) -> str:
    name = f"{PREFIXES.get(service, service.lower())}:{call}"
    return RENAMED.get(name, name)


def allowed() -> set[str]:
    found: set[str] = set()
    for statement in json.loads(POLICY.read_text())["Statement"]:
        actions = statement["Action"]
        found |= {actions} if isinstance(actions, str) else set(actions)
    return found


def of_provider_log(text: str) -> set[str]:
    """From a Terraform provider log at debug level."""
    found = set()
    for line in text.splitlines():
        service = re.search(r'rpc\.service="?([A-Za-z0-9 ]+?)"?(?: [a-z_.@]+=|$)', line)
        call = re.search(r"rpc\.method=(\w+)", line)
        if service and call:
            found.add(action(service[1], call[1]))
    return found


def of_sources(folder: Path) -> set[str]:
    """Every boto3 call of a service that a file asks a client for: as an attribute, or by name for a paginator."""
    found = set()
    for file in folder.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        services = re.findall(r'\bcontrol\("([a-z0-9-]+)"\)', text)
        services += ["sagemaker-runtime"] if "invoke_endpoint" in text else []
        words = set(re.findall(r"\.(\w+)", text)) | set(re.findall(r'"(\w+)"', text))
        for service in services:
            found |= {action(service, call) for word, call in calls(service).items() if word in words}
    return found


@functools.cache
def calls(service: str) -> dict[str, str]:
    """Method name to API name."""
    session = boto3.Session(botocore_session=botocore.session.Session(), region_name="us-east-1")
    client = session.client(service, aws_access_key_id="none", aws_secret_access_key="none")
    return dict(client.meta.method_to_api_mapping)
