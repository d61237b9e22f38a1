"""What an operator needs for Terraform: calls as IAM actions, against the documented policy."""

from __future__ import annotations

import fnmatch
import json
import re
from pathlib import Path

POLICY = Path(__file__).parents[2] / "docs" / "operator-policy.json"

PREFIXES = {
    "Application Auto Scaling": "application-autoscaling",
    "CloudWatch Logs": "logs",
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


def refused(actions: set[str]) -> list[str]:
    """Those the policy does not allow."""
    patterns = allowed()
    return sorted(name for name in actions if not any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns))


def of_provider_log(text: str) -> set[str]:
    """From a Terraform provider log at debug level."""
    found = set()
    for line in text.splitlines():
        service = re.search(r'rpc\.service="?([A-Za-z0-9 ]+?)"?(?: [a-z_.@]+=|$)', line)
        call = re.search(r"rpc\.method=(\w+)", line)
        if service and call:
            found.add(action(service[1], call[1]))
    return found
