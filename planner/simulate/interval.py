"""What a kernel reports about a stretch of time, and the bins TTFAB is counted in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from planner.simulate.service import FloatArray

IntArray = NDArray[np.int64]

# 200 bins a decade: a quantile read from them is within 1.2 % of the true one.
_BINS_PER_DECADE = 200
_DECADES_BELOW, _DECADES_ABOVE = 4, 2


@dataclass(frozen=True)
class TtfabBins:
    """Logarithmic bins with an edge exactly at the SLO, so that attainment has no binning error."""

    slo_s: float

    @property
    def edges_s(self) -> FloatArray:
        exponents = np.arange(-_DECADES_BELOW * _BINS_PER_DECADE, _DECADES_ABOVE * _BINS_PER_DECADE + 1)
        edges: FloatArray = self.slo_s * 10.0 ** (exponents / _BINS_PER_DECADE)
        return edges

    @property
    def size(self) -> int:
        """Bins, with one below the first edge and one above the last."""
        return (_DECADES_BELOW + _DECADES_ABOVE) * _BINS_PER_DECADE + 2

    def count(self, ttfab_s: FloatArray) -> IntArray:
        """How many values fall into each bin; a value equal to the SLO meets it."""
        counts: IntArray = np.bincount(np.searchsorted(self.edges_s, ttfab_s, side="left"), minlength=self.size)
        return counts

    def within_slo(self, counts: FloatArray | IntArray) -> float:
        """Values at or below the SLO."""
        return float(counts[: _DECADES_BELOW * _BINS_PER_DECADE + 1].sum())

    def quantile_s(self, counts: FloatArray | IntArray, q: float) -> float | None:
        """Upper edge of the bin that holds the quantile; None without values."""
        total = counts.sum()
        if total <= 0:
            return None
        index = int(np.searchsorted(np.cumsum(counts), q * total))
        return float(self.edges_s[min(index, len(self.edges_s) - 1)])


@dataclass(frozen=True)
class Interval:
    """One stretch of simulated time over the whole fleet."""

    start_s: float
    end_s: float
    offered: int
    shed: int
    completed: int
    peak: int
    """Largest number inside any one instance."""
    in_flight_s: float
    """Time integral of the number inside all instances."""
    instance_s: float
    """Time integral of the number of instances in service."""
    ttfab_counts: FloatArray
    """By TtfabBins; the exact kernel counts at completion, the batched one at admission."""

    def then(self, other: Interval) -> Interval:
        """The two stretches as one."""
        return Interval(
            start_s=self.start_s,
            end_s=other.end_s,
            offered=self.offered + other.offered,
            shed=self.shed + other.shed,
            completed=self.completed + other.completed,
            peak=max(self.peak, other.peak),
            in_flight_s=self.in_flight_s + other.in_flight_s,
            instance_s=self.instance_s + other.instance_s,
            ttfab_counts=self.ttfab_counts + other.ttfab_counts,
        )


class Kernel(Protocol):
    """A fleet that serves arrivals; both implementations answer alike."""

    def advance(self, until_s: float, arrivals_s: FloatArray) -> Interval:
        """Serve sorted ``arrivals_s`` in [now, until_s)."""
        ...

    def add_instance(self) -> None:
        """One more instance takes traffic from now on."""
        ...

    def retire_instance(self) -> None:
        """One instance takes no new traffic; what it holds is finished, as SIGTERM allows."""
        ...

    @property
    def instances(self) -> int:
        """Instances in service."""
        ...
