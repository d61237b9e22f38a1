"""Poisson arrivals with a time-varying rate: the same for every policy, whatever order it asks in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.simulate.profiles import Profile
from planner.simulate.service import FloatArray

# Cells inside which the rate counts as constant when arrivals are placed.
_CELL_S = 0.5


@dataclass(frozen=True)
class Arrivals:
    """Arrival times by stretch of time; each stretch has a random stream of its own (common random numbers)."""

    profile: Profile
    seed: int

    def between(self, start_s: float, end_s: float) -> FloatArray:
        """Sorted arrival times in [start, end), by inversion of the cumulative rate."""
        rng = np.random.default_rng([self.seed, round(start_s * 1000)])
        grid_s = np.linspace(start_s, end_s, max(2, round((end_s - start_s) / _CELL_S) + 1))
        cumulative = self.profile.cumulative(grid_s)
        expected = cumulative[-1] - cumulative[0]
        if expected <= 0:
            return np.empty(0)
        placed = cumulative[0] + np.sort(rng.random(rng.poisson(expected))) * expected
        times: FloatArray = np.interp(placed, cumulative, grid_s)
        return times
