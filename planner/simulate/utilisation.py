"""GPU and CPU utilisation by throughput: the utilisation law (U = X S) on the ladder's own readings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from planner.artifacts.qmax import Qmax


@dataclass(frozen=True)
class UtilisationCurve:
    """Percent against completions per second of one instance, a straight line between readings."""

    rps: tuple[float, ...]
    pct: tuple[float, ...]
    source: str

    def at(self, throughput_rps: float) -> float:
        """Percent at a throughput; flat outside the readings."""
        return float(np.interp(throughput_rps, self.rps, self.pct))

    def load_rps(self, pct: float) -> float:
        """Throughput at which the resource reads ``pct``; infinite when it never gets there."""
        if pct > max(self.pct):
            return math.inf
        return float(np.interp(pct, np.maximum.accumulate(self.pct), self.rps))


def measured(qmax: Qmax, resource: str) -> UtilisationCurve | None:
    """From CloudWatch's readings in the rungs; None when the ladder has none."""
    readings = {0.0: 0.0}
    for rung in qmax.ladder:
        pct = getattr(rung.cloudwatch, f"{resource}_utilization_pct", None)
        if pct is not None and rung.achieved_rps:
            readings[rung.achieved_rps] = max(pct, readings.get(rung.achieved_rps, 0.0))
    if len(readings) == 1:
        return None
    rps = sorted(readings)
    return UtilisationCurve(tuple(rps), tuple(readings[r] for r in rps), f"ladder of run {qmax.provenance.run_id}")


def stated(saturated_pct: float, capacity_rps: float) -> UtilisationCurve:
    """A proportional model: 0 idle, ``saturated_pct`` at the capacity."""
    return UtilisationCurve((0.0, capacity_rps), (0.0, saturated_pct), f"stated: {saturated_pct:g} % at saturation")
