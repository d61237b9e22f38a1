"""How many instances a policy wants."""

from __future__ import annotations

import pytest

from rehearsal.autoscaling.capacity import by_steps, by_tracking

IN = {
    "AdjustmentType": "ChangeInCapacity",
    "StepAdjustments": [{"MetricIntervalUpperBound": 0.0, "ScalingAdjustment": -1}],
}
OUT = {
    "AdjustmentType": "ChangeInCapacity",
    "StepAdjustments": [
        {"MetricIntervalLowerBound": 0.0, "MetricIntervalUpperBound": 10.0, "ScalingAdjustment": 1},
        {"MetricIntervalLowerBound": 10.0, "ScalingAdjustment": 3},
    ],
}
PERCENT = {
    "AdjustmentType": "PercentChangeInCapacity",
    "StepAdjustments": [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 25}],
    "MinAdjustmentMagnitude": 2,
}
EXACT = {"AdjustmentType": "ExactCapacity", "StepAdjustments": [{"ScalingAdjustment": 7}]}


@pytest.mark.parametrize(
    ("current", "metric", "target", "expected"),
    [(1, 6, 2.5, 3), (2, 37.6, 37.5, 3), (4, 37.5, 37.5, 4), (3, 0, 37.5, 0), (10, 50, 37.5, 14)],
)
def test_tracking(current: int, metric: float, target: float, expected: int) -> None:
    assert by_tracking(current, metric, target) == expected


@pytest.mark.parametrize(
    ("config", "current", "breach", "expected"),
    [
        (IN, 4, -3.0, 3),
        (IN, 4, 0.0, 3),
        (IN, 4, 1.0, 4),
        (OUT, 2, 0.0, 3),
        (OUT, 2, 9.9, 3),
        (OUT, 2, 10.0, 5),
        (OUT, 2, -0.1, 2),
        (PERCENT, 4, 1.0, 6),
        (PERCENT, 100, 1.0, 125),
        (EXACT, 2, 5.0, 7),
    ],
)
def test_steps(config: dict, current: int, breach: float, expected: int) -> None:
    assert by_steps(current, breach, config) == expected
