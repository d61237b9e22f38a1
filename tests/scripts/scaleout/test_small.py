"""Metric scope, the policy's bound, and what a FailureReason means."""

from __future__ import annotations

import pytest

from scripts.scaleout.metric_scope import scope
from scripts.scaleout.policy_lag import defaults, policy_lag
from scripts.scaleout.run import classify


@pytest.mark.parametrize(
    ("readings", "instances", "expected"),
    [
        ([5.0, 5.0, 6.0], 2, "per_instance"),
        ([10.0, 10.0, 9.0], 2, "variant_total"),
        ([7.5, 7.5], 2, "unknown"),
        ([], 2, "unknown"),
        ([10.0], 1, "unknown"),
    ],
)
def test_scope(readings, instances, expected):
    assert scope(readings, 10, instances) == expected


@pytest.mark.parametrize(("t_total_s", "bound_s"), [(260.248, 60.0), (30.0, 45.0), (4.0, 40.0), (None, 60.0)])
def test_the_default_bound_is_period_times_datapoints_plus_cooldown(t_total_s, bound_s):
    # 3 x 10 s + clamp(T_total / 2, 10, 30)
    lag = defaults(t_total_s)
    assert (lag.bound_s, lag.source) == (bound_s, "defaults")


def test_the_bound_of_a_deployed_policy(account):
    policy = {
        "PolicyName": "e-scale-out",
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": {"TargetValue": 37.5, "ScaleOutCooldown": 25},
        "Alarms": [{"AlarmName": "high"}, {"AlarmName": "low"}],
    }
    alarms = [
        {"AlarmName": "high", "ComparisonOperator": "GreaterThanThreshold", "Period": 10, "EvaluationPeriods": 4},
        {"AlarmName": "low", "ComparisonOperator": "LessThanThreshold", "Period": 60, "EvaluationPeriods": 15},
    ]
    account(policies=[policy], alarms=alarms)
    lag = policy_lag("e", "v", 260.0)
    assert (lag.bound_s, lag.source) == (65.0, "deployed")


def test_without_a_policy_the_defaults_are_said_to_be_defaults(account):
    account()
    assert policy_lag("e", "v", 260.0).source == "defaults"


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error.", "no_capacity"),
        ("The account-level service limit 'ml.g5.xlarge for endpoint usage' is exceeded", "quota"),
        ("The primary container for production variant v did not pass the ping health check.", "unhealthy"),
        ("The deployment was rolled back because one or more alarms were in state ALARM.", "rollback"),
        ("no FailureReason", "rollback"),
    ],
)
def test_failure_reasons(reason, outcome):
    assert classify(reason) == outcome
