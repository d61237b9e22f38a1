"""The 10 s Maximum over a fleet, counted event by event: what the planner's fleet reading is held to."""

from __future__ import annotations

import numpy as np

from planner.simulate.exact import ExactKernel
from planner.simulate.interval import TtfabBins
from planner.simulate.service import ServiceModel

WARM_UP = 6


def window_maxima(
    service: ServiceModel, bound: int, instances: int, load_rps: float, *, periods: int = 60, period_s: float = 10.0
) -> list[int]:
    """Largest occupancy of any instance in each of ``periods`` windows, at ``load_rps`` an instance."""
    rng = np.random.default_rng([3, instances])
    server = ExactKernel(
        service,
        instances=instances,
        bound=bound,
        routing="least_outstanding",
        bins=TtfabBins(1.0),
        rng=np.random.default_rng([4, instances]),
    )
    peaks = []
    for period in range(WARM_UP + periods):
        start_s = period * period_s
        count = rng.poisson(load_rps * instances * period_s)
        peaks.append(server.advance(start_s + period_s, start_s + np.sort(rng.random(count)) * period_s).peak)
    return peaks[WARM_UP:]
