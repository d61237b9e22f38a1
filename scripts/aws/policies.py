"""The deployed scaling policies of a variant and the alarms that trigger them; read-only."""

from __future__ import annotations

from typing import Any

from scripts.aws.clients import aws_errors, control
from scripts.aws.scaling import DIMENSION, NAMESPACE, resource_id


def scaling_policies(endpoint: str, variant: str) -> list[dict[str, Any]]:
    """Every policy on the variant's scalable target, as Application Auto Scaling describes it."""
    with aws_errors(f"reading the scaling policies of {endpoint}"):
        pages = (
            control("application-autoscaling")
            .get_paginator("describe_scaling_policies")
            .paginate(
                ServiceNamespace=NAMESPACE, ResourceId=resource_id(endpoint, variant), ScalableDimension=DIMENSION
            )
        )
        return [policy for page in pages for policy in page["ScalingPolicies"]]


def alarms(names: list[str]) -> list[dict[str, Any]]:
    """Metric alarms by name; one that does not exist is absent."""
    if not names:
        return []
    with aws_errors("reading alarms"):
        pages = control("cloudwatch").get_paginator("describe_alarms").paginate(AlarmNames=names)
        return [alarm for page in pages for alarm in page["MetricAlarms"]]


def alarms_of(policy: dict[str, Any]) -> list[dict[str, Any]]:
    """The alarms Application Auto Scaling keeps for a policy."""
    return alarms([alarm["AlarmName"] for alarm in policy.get("Alarms", [])])
