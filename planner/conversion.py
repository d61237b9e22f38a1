"""From mean occupancy to what the alarm reads: the 10 s Maximum of the concurrency metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.artifacts.qmax import OpenLoop, Qmax
from planner.ladder import usable

RatioSource = Literal["closed_loop", "open_loop", "model", "unknown"]

WIDE_RATIO = 0.2
"""A spread over the rungs above this share of the smallest ratio is named; the value is interpolated either way."""


@dataclass(frozen=True)
class Ratios:
    """Measured 10 s Maximum over mean occupancy, by mean occupancy."""

    source: RatioSource
    points: tuple[tuple[float, float], ...] = ()

    def at(self, occupancy: float) -> float | None:
        """Linear between the measured points, constant outside; None when nothing was measured."""
        if not self.points:
            return None
        return float(np.interp(occupancy, [p[0] for p in self.points], [p[1] for p in self.points]))

    @property
    def wide(self) -> bool:
        """The ratio depends on the rung."""
        values = [ratio for _, ratio in self.points]
        return bool(values) and max(values) > (1 + WIDE_RATIO) * min(values)


def closed_loop(artifacts: Sequence[Qmax]) -> Ratios:
    """Ratios of the usable rungs; 1.0 by construction when N requests are always in flight."""
    found: dict[float, list[float]] = {}
    for artifact in artifacts:
        for rung in artifact.ladder:
            if usable(rung) and rung.metric_ratio:
                found.setdefault(float(rung.concurrency), []).append(rung.metric_ratio)
    return Ratios("closed_loop", tuple((n, max(found[n])) for n in sorted(found)))


def open_loop(artifacts: Sequence[OpenLoop]) -> Ratios:
    """Ratios under Poisson arrivals, by measured mean in flight; rates the client could not hold are left out."""
    found = {
        rate.in_flight_mean: rate.metric_ratio
        for artifact in artifacts
        for rate in artifact.rates
        if rate.metric_ratio and not rate.client_bound and rate.in_flight_mean > 0
    }
    return Ratios("open_loop", tuple(sorted(found.items())))
