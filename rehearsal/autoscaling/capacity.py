"""How many instances a policy wants: plain arithmetic, as Application Auto Scaling documents it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def by_tracking(current: int, metric: float, target: float) -> int:
    """Enough instances to bring a metric that counts one instance to the target, rounded up."""
    return math.ceil(current * metric / target - 1e-9)


def by_steps(current: int, breach: float, config: Mapping[str, Any]) -> int:
    """The step whose interval holds ``breach`` = metric - threshold; the current count when none does."""
    step = _step(breach, config["StepAdjustments"])
    if step is None:
        return current
    adjustment = float(step["ScalingAdjustment"])
    kind = config["AdjustmentType"]
    if kind == "ExactCapacity":
        return int(adjustment)
    if kind == "ChangeInCapacity":
        return current + int(adjustment)
    change = current * adjustment / 100
    size = max(math.floor(abs(change)), 1 if change else 0, int(config.get("MinAdjustmentMagnitude") or 0))
    return current + int(math.copysign(size, change))


def _step(breach: float, steps: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Above the threshold the lower bound belongs to the interval, below it the upper bound does."""
    for step in steps:
        low = step.get("MetricIntervalLowerBound", -math.inf)
        high = step.get("MetricIntervalUpperBound", math.inf)
        if low <= breach < high or (breach <= 0 and low < breach <= high):
            return step
    return None
