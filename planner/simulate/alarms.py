"""CloudWatch alarms as documented: M out of M periods, and missing data treated as the alarm says."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

State = Literal["OK", "ALARM", "INSUFFICIENT_DATA"]
Statistic = Literal["Maximum", "Average", "Sum"]
Missing = Literal["missing", "breaching"]

_REDUCE: dict[Statistic, Callable[[Sequence[float]], float]] = {
    "Maximum": max,
    "Sum": math.fsum,
    "Average": lambda values: math.fsum(values) / len(values),
}


@dataclass(frozen=True)
class AlarmSpec:
    """What is deployed; periods are whole multiples of the metric's own."""

    name: str
    threshold: float
    above: bool
    """True: in alarm over the threshold; False: below it."""
    period_s: int
    datapoints: int
    statistic: Statistic = "Maximum"
    missing: Missing = "missing"


@dataclass
class Alarm:
    """One alarm fed with the metric's samples; ``state`` changes when a period of its own completes."""

    spec: AlarmSpec
    sample_s: int = 10
    state: State = "INSUFFICIENT_DATA"
    latest: float | None = None
    """The newest period's value, None when it had no data."""
    _samples: list[float | None] = field(default_factory=list)
    _periods: deque[float | None] = field(default_factory=deque)

    def feed(self, value: float | None) -> bool:
        """Take one sample (None = no data). True when a period completed, so the state is freshly evaluated."""
        self._samples.append(value)
        if len(self._samples) * self.sample_s < self.spec.period_s:
            return False
        present = [sample for sample in self._samples if sample is not None]
        self._samples.clear()
        self.latest = _REDUCE[self.spec.statistic](present) if present else None
        self._periods.append(self.latest)
        if len(self._periods) > self.spec.datapoints:
            self._periods.popleft()
        self.state = self._evaluate()
        return True

    def _evaluate(self) -> State:
        if len(self._periods) < self.spec.datapoints:
            return "INSUFFICIENT_DATA"
        if all(value is None for value in self._periods) and self.spec.missing == "missing":
            return "INSUFFICIENT_DATA"
        return "ALARM" if all(self._breaches(value) for value in self._periods) else "OK"

    def _breaches(self, value: float | None) -> bool:
        if value is None:
            return self.spec.missing == "breaching"
        return value > self.spec.threshold if self.spec.above else value < self.spec.threshold
