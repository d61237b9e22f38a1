"""Upper bound of the time the scaling policy itself needs to notice; kept apart from the measurement."""

from __future__ import annotations

from typing import Any

from planner.artifacts.ttotal import PolicyLag
from planner.rule import SCALE_OUT_COOLDOWN_S, scale_out_cooldown_s
from scripts.aws.policies import alarms_of, scaling_policies

# The high-resolution predefined metric arrives every 10 s; the managed alarm was seen to need three of them.
DEFAULT_PERIOD_S = 10
DEFAULT_DATAPOINTS = 3


def policy_lag(endpoint: str, variant: str, t_total_s: float | None) -> PolicyLag:
    """From the deployed scale-out policy, else from what Terraform would deploy for this T_total."""
    for policy in scaling_policies(endpoint, variant):
        if policy["PolicyType"] == "TargetTrackingScaling":
            return _deployed(policy)
    return defaults(t_total_s)


def defaults(t_total_s: float | None) -> PolicyLag:
    """Three periods and the planner's scale-out cooldown; its longest while T_total is unknown."""
    cooldown_s = SCALE_OUT_COOLDOWN_S[1] if t_total_s is None else scale_out_cooldown_s(t_total_s)
    return _bound(DEFAULT_PERIOD_S, DEFAULT_DATAPOINTS, cooldown_s, "defaults")


def _deployed(policy: dict[str, Any]) -> PolicyLag:
    tracking = policy["TargetTrackingScalingPolicyConfiguration"]
    cooldown_s = float(tracking.get("ScaleOutCooldown", 0))
    high = [alarm for alarm in alarms_of(policy) if alarm["ComparisonOperator"].startswith("GreaterThan")]
    if not high:
        return _bound(DEFAULT_PERIOD_S, DEFAULT_DATAPOINTS, cooldown_s, "deployed")
    alarm = max(high, key=lambda found: found["Period"] * _datapoints(found))
    return _bound(alarm["Period"], _datapoints(alarm), cooldown_s, "deployed")


def _datapoints(alarm: dict[str, Any]) -> int:
    return int(alarm.get("DatapointsToAlarm") or alarm["EvaluationPeriods"])


def _bound(period_s: int, datapoints: int, cooldown_s: float, source: Any) -> PolicyLag:
    return PolicyLag(
        bound_s=period_s * datapoints + cooldown_s,
        source=source,
        formula=f"{period_s} s period x {datapoints} datapoints + {cooldown_s:g} s scale-out cooldown",
    )
