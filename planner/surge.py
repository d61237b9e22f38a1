"""The surge at the trigger: arrivals x surge ratio from the moment of the trigger until T_total has passed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from planner.instance import SHED_LIMIT, SLO_SHARE, Instance, first_byte, largest_load, mean_occupancy
from planner.queueing import time_to_full_s, transient


@dataclass(frozen=True)
class SurgeOutcome:
    """Of all requests that arrive during the surge."""

    shed_fraction: float
    slo_attainment: float
    """Admitted and first byte within the SLO."""
    p95_ms: float
    """Of the admitted."""
    time_to_full_s: float
    """Mean time until every slot is taken for the first time; may exceed the surge."""

    @property
    def survived(self) -> bool:
        """Shed at most 1 % and p95 of the admitted within the SLO."""
        return self.shed_fraction <= SHED_LIMIT and self.slo_attainment >= SLO_SHARE * (1 - self.shed_fraction)


@lru_cache(maxsize=4096)
def surge(instance: Instance, load_rps: float, occupancy: float, surge_ratio: float, duration_s: float) -> SurgeOutcome:
    """From ``occupancy`` requests present, arrivals at ``load_rps`` x ``surge_ratio`` for ``duration_s``."""
    chain = instance.chain(load_rps * surge_ratio)
    start = chain.start_at(occupancy)
    seen = transient(chain, start, duration_s)
    shed = max(seen.shed_fraction, 0.0)
    return SurgeOutcome(
        shed_fraction=shed,
        slo_attainment=(1 - shed) * first_byte(instance).within(seen.occupancy, instance.slo_ms),
        p95_ms=instance.p95_ms(seen.occupancy),
        time_to_full_s=time_to_full_s(chain, start),
    )


@lru_cache(maxsize=4096)
def drain_load_rps(instance: Instance, surge_ratio: float, duration_s: float) -> float | None:
    """``--rule drain``: the largest load whose surge is survived until ``duration_s``; None when no load is."""

    def survives(load_rps: float) -> bool:
        chain = instance.chain(load_rps * surge_ratio)
        start = chain.start_at(mean_occupancy(instance, load_rps))
        return instance.meets_slo(transient(chain, start, duration_s).occupancy)

    return largest_load(survives, instance.capacity_rps, surge_ratio)


def finite(seconds: float, within_s: float) -> float | None:
    """A time that lies within the surge, else None."""
    return seconds if math.isfinite(seconds) and seconds <= within_s else None
