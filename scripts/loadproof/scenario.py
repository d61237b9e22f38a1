"""When requests are sent: hold the fleet at its trigger, surge, come back, and optionally go quiet for a scale-in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loadtest.openloop import Schedule
from planner.simulate.arrivals import Arrivals
from planner.simulate.profiles import Profile

STRETCHES = ("hold", "surge", "after", "quiet")
_CHUNK_S = 10.0


@dataclass(frozen=True)
class Scenario:
    """Rates and times; the fleet starts at ``instances``."""

    instances: int
    base_rps: float
    surge_ratio: float
    hold_s: float
    surge_s: float
    after_s: float
    quiet_s: float = 0.0
    quiet_rps: float = 0.0
    seed: int = 0

    @property
    def ends_s(self) -> tuple[float, ...]:
        """End of each stretch, in the order of STRETCHES."""
        return tuple(float(end) for end in np.cumsum([self.hold_s, self.surge_s, self.after_s, self.quiet_s]))

    @property
    def surge_begins_s(self) -> float:
        return self.hold_s

    @property
    def surge_ends_s(self) -> float:
        return self.hold_s + self.surge_s

    @property
    def profile(self) -> Profile:
        """As the simulator takes it."""
        times, rates, start_s = [0.0], [self.base_rps], 0.0
        levels = (self.base_rps, self.base_rps * self.surge_ratio, self.base_rps, self.quiet_rps)
        for end_s, rate in zip(self.ends_s, levels, strict=True):
            if end_s > start_s:
                times += [start_s, end_s]
                rates += [rate, rate]
            start_s = end_s
        return Profile("validate", tuple(times), tuple(rates), surge_s=(self.surge_begins_s, self.surge_ends_s))

    def schedule(self) -> Schedule:
        """Poisson arrivals by seed, each with the number of its stretch."""
        arrivals, end_s = Arrivals(self.profile, self.seed), self.ends_s[-1]
        starts = np.arange(0.0, end_s, _CHUNK_S)
        due = np.concatenate([arrivals.between(float(s), min(float(s) + _CHUNK_S, end_s)) for s in starts])
        stretch = np.searchsorted(np.array(self.ends_s[:3]), due, side="right")
        return Schedule(due_s=due.tolist(), stretch=stretch.tolist())
