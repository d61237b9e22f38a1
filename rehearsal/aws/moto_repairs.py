"""What is wrong in moto 5.2.5 for our callers, put right."""

from __future__ import annotations

import json
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.logs.metric_filters import MetricFilters
from moto.s3.models import FakeBucket, FakeDeleteMarker

_ADD_FILTER = MetricFilters.add_filter


def repair() -> None:
    """Idempotent."""
    bucket: Any = FakeBucket
    marker: Any = FakeDeleteMarker
    bucket.get_permission = _permission_without_conditions
    marker.dispose = _dispose_nothing
    filters: Any = MetricFilters
    filters.add_filter = _replace_filter


def _permission_without_conditions(bucket: Any, action: str, resource: str) -> Any:
    """moto takes a statement whose condition it cannot judge for a refusal; the rehearsal counts as TLS."""
    if bucket.policy is None:
        return PermissionResult.NEUTRAL
    policy = json.loads(bucket.policy.decode())
    given = policy.get("Statement", [])
    statements = [each for each in (given if isinstance(given, list) else [given]) if "Condition" not in each]
    if not statements:
        return PermissionResult.NEUTRAL
    return IAMPolicy(json.dumps({**policy, "Statement": statements})).is_action_permitted(action, resource)


def _dispose_nothing(_: Any, garbage: bool = False) -> None:
    """Emptying a versioned bucket disposes of delete markers too; moto gave them no way to."""


def _replace_filter(filters: MetricFilters, name: str, pattern: str, group: str, transformations: Any) -> None:
    """Putting a filter again changes it; moto kept both."""
    filters.delete_filter(name, group)
    _ADD_FILTER(filters, name, pattern, group, transformations)
