"""The deployed target, policies and alarm against the plan, number by number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from planner.artifacts.plan import Derived
from scripts.aws.policies import alarms, alarms_of, scaling_policies
from scripts.aws.scaling import Target, read_target, resource_id

METRIC_TYPE = "SageMakerVariantConcurrentRequestsPerModelHighResolution"
METRIC = "ConcurrentRequestsPerModel"
SCALE_IN_PERIOD_S = 60
SCALE_IN_PERIODS = 3
_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Deployed:
    """Everything Application Auto Scaling and CloudWatch hold for the variant."""

    target: Target | None
    scale_out: dict[str, Any] | None
    scale_in: dict[str, Any] | None
    scale_in_alarm: dict[str, Any] | None
    managed_alarms: list[dict[str, Any]]
    others: list[str]
    """Policies on the variant that are not ours."""


@dataclass(frozen=True)
class Field:
    """One number as planned and as deployed."""

    resource: str
    name: str
    planned: object
    deployed: object

    @property
    def equal(self) -> bool:
        """The same, floating point allowed for."""
        if isinstance(self.planned, (int, float)) and isinstance(self.deployed, (int, float)):
            return abs(self.planned - self.deployed) <= _TOLERANCE * max(1.0, abs(self.planned))
        return self.planned == self.deployed


def read(endpoint: str, variant: str) -> Deployed:
    """Look once."""
    found = {policy["PolicyName"]: policy for policy in scaling_policies(endpoint, variant)}
    scale_out = found.pop(f"{endpoint}-scale-out", None)
    scale_in = found.pop(f"{endpoint}-scale-in", None)
    own = alarms([f"{endpoint}-scale-in"])
    return Deployed(
        target=read_target(endpoint, variant),
        scale_out=scale_out,
        scale_in=scale_in,
        scale_in_alarm=own[0] if own else None,
        managed_alarms=alarms_of(scale_out) if scale_out else [],
        others=sorted(found),
    )


def missing(endpoint: str, variant: str, deployed: Deployed) -> list[str]:
    """The parts of the autoscaling that are not there."""
    parts = {
        f"scalable target {resource_id(endpoint, variant)}": deployed.target,
        f"policy {endpoint}-scale-out": deployed.scale_out,
        f"policy {endpoint}-scale-in": deployed.scale_in,
        f"alarm {endpoint}-scale-in": deployed.scale_in_alarm,
    }
    return [name for name, found in parts.items() if found is None]


def compare(endpoint: str, variant: str, plan: Derived, deployed: Deployed) -> list[Field]:
    """Every number of the parts that exist."""
    return [
        *_target(endpoint, variant, plan, deployed.target),
        *_scale_out(endpoint, plan, deployed.scale_out),
        *_scale_in(endpoint, plan, deployed.scale_in),
        *_alarm(endpoint, variant, plan, deployed),
    ]


def _target(endpoint: str, variant: str, plan: Derived, target: Target | None) -> Iterator[Field]:
    if target is not None:
        name = f"target {resource_id(endpoint, variant)}"
        yield Field(name, "min_instances", plan.min_instances, target.min_capacity)
        yield Field(name, "max_instances", plan.max_instances, target.max_capacity)


def _scale_out(endpoint: str, plan: Derived, policy: dict[str, Any] | None) -> Iterator[Field]:
    if policy is None:
        return
    name = f"policy {endpoint}-scale-out"
    yield Field(name, "type", "TargetTrackingScaling", policy["PolicyType"])
    tracking = policy.get("TargetTrackingScalingPolicyConfiguration", {})
    metric = tracking.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
    yield Field(name, "metric", METRIC_TYPE, metric)
    yield Field(name, "target value", plan.scaling_target_value, tracking.get("TargetValue"))
    yield Field(name, "scale-out cooldown (s)", plan.scale_out_cooldown_s, tracking.get("ScaleOutCooldown"))
    yield Field(name, "scale-in disabled", True, tracking.get("DisableScaleIn", False))


def _scale_in(endpoint: str, plan: Derived, policy: dict[str, Any] | None) -> Iterator[Field]:
    if policy is None:
        return
    name = f"policy {endpoint}-scale-in"
    yield Field(name, "type", "StepScaling", policy["PolicyType"])
    step = policy.get("StepScalingPolicyConfiguration", {})
    yield Field(name, "cooldown (s)", plan.scale_in_cooldown_s, step.get("Cooldown"))
    yield Field(name, "adjustment type", "ChangeInCapacity", step.get("AdjustmentType"))
    yield Field(name, "metric aggregation", "Maximum", step.get("MetricAggregationType"))
    steps = [
        (item.get("MetricIntervalLowerBound"), item.get("MetricIntervalUpperBound"), item["ScalingAdjustment"])
        for item in step.get("StepAdjustments", [])
    ]
    yield Field(name, "steps (from, to, change)", [(None, 0.0, -1)], steps)


def _alarm(endpoint: str, variant: str, plan: Derived, deployed: Deployed) -> Iterator[Field]:
    alarm = deployed.scale_in_alarm
    if alarm is None:
        return
    name = f"alarm {endpoint}-scale-in"
    dimensions = {item["Name"]: item["Value"] for item in alarm.get("Dimensions", [])}
    yield Field(name, "threshold", plan.scale_in_threshold, alarm.get("Threshold"))
    yield Field(name, "metric", METRIC, alarm.get("MetricName"))
    yield Field(name, "dimensions", {"EndpointName": endpoint, "VariantName": variant}, dimensions)
    yield Field(name, "statistic", "Maximum", alarm.get("Statistic"))
    yield Field(name, "period (s)", SCALE_IN_PERIOD_S, alarm.get("Period"))
    yield Field(name, "evaluation periods", SCALE_IN_PERIODS, alarm.get("EvaluationPeriods"))
    yield Field(name, "datapoints to alarm", SCALE_IN_PERIODS, alarm.get("DatapointsToAlarm") or SCALE_IN_PERIODS)
    yield Field(name, "comparison", "LessThanThreshold", alarm.get("ComparisonOperator"))
    yield Field(name, "missing data", "breaching", alarm.get("TreatMissingData"))
    yield Field(name, "actions enabled", True, alarm.get("ActionsEnabled", True))
    if deployed.scale_in is not None:
        yield Field(name, "action", [deployed.scale_in.get("PolicyARN")], alarm.get("AlarmActions"))
