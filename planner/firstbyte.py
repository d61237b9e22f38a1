"""Time to first byte under open arrivals: the ladder's own times, weighted by what an arrival finds.

At concurrency n of a closed loop every request arrives to find n - 1 others. So an admitted open arrival that finds n
(PASTA) is served like the ladder's rung n + 1, whose p50 and p95 were measured, network path included.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from planner.ladder import Z95, Ladder
from planner.queueing import Vector


@dataclass(frozen=True)
class FirstByte:
    """A mixture of normals, one a concurrency, fitted to the measured p50 and p95."""

    p50_ms: tuple[float, ...]
    sigma_ms: tuple[float, ...]

    @classmethod
    def of(cls, ladder: Ladder, depth: int) -> FirstByte:
        """Times for an arrival that finds 0..depth-1 others."""
        pairs = [ladder.first_byte_ms(n) for n in range(1, depth + 1)]
        return cls(
            p50_ms=tuple(p50 for p50, _ in pairs),
            sigma_ms=tuple(max(p95 - p50, 1e-6) / Z95 for p50, p95 in pairs),
        )

    def within(self, occupancy: Vector, limit_ms: float) -> float:
        """Share of the admitted whose first byte comes within ``limit_ms``."""
        weights = occupancy[:-1]
        total = float(weights.sum())
        if total <= 0:
            return 0.0
        return float(weights @ self._below(limit_ms)) / total

    def quantile_ms(self, occupancy: Vector, share: float) -> float:
        """The time within which ``share`` of the admitted get their first byte."""
        low = 0.0
        high = max(m + 8 * s for m, s in zip(self.p50_ms, self.sigma_ms, strict=True))
        return bisect(lambda limit: self.within(occupancy, limit) >= share, low, high, 1e-3)

    def _below(self, limit_ms: float) -> Vector:
        scores = (limit_ms - np.asarray(self.p50_ms)) / (np.asarray(self.sigma_ms) * math.sqrt(2))
        return np.array([0.5 * (1 + math.erf(score)) for score in _clipped(scores)])


def bisect(holds: Callable[[float], bool], low: float, high: float, tolerance: float) -> float:
    """Smallest point of [low, high] from which ``holds`` is true, for a condition that switches once."""
    while high - low > tolerance:
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def _clipped(scores: Vector) -> Sequence[float]:
    found: list[float] = np.clip(scores, -9.0, 9.0).tolist()
    return found
