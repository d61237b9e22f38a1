"""What the ladder says about one instance: throughput and first-byte times at every concurrency."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.artifacts.qmax import Qmax, Quantiles, Rung

Z95 = 1.6448536269514722  # one-sided 95 % point of the normal distribution

# Above this X_max x S(1) several requests are served at once, and departures of parallel lanes are as irregular as
# Poisson however regular each lane is. Below, service is one at a time and the measured variability applies.
SERIAL_LIMIT = 1.5
# More stages than this cannot be told from deterministic service in any printed digit.
STAGES_MAX = 1000.0


@dataclass(frozen=True)
class Step:
    """One concurrency, worst of its runs."""

    concurrency: int
    rps: float
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True)
class Ladder:
    """Rungs in rising order; between them linear, below the first in proportion, above the last at its rate."""

    steps: tuple[Step, ...]
    service_mean_s: float
    """Whole response at concurrency 1."""
    service_scv: float | None
    """Squared coefficient of variation of one service; None = not measured."""

    def rps(self, concurrency: float) -> float:
        """X(n), completions per second with n in flight."""
        first = self.steps[0]
        if concurrency < first.concurrency:
            return first.rps * concurrency / first.concurrency
        return _interpolate(concurrency, [s.concurrency for s in self.steps], [s.rps for s in self.steps])

    def rates_rps(self, depth: int) -> tuple[float, ...]:
        """X(1)..X(depth): the rates of the flow-equivalent server."""
        return tuple(self.rps(n) for n in range(1, depth + 1))

    def first_byte_ms(self, concurrency: float) -> tuple[float, float]:
        """p50 and p95 of a request that is one of ``concurrency`` in flight."""
        points: list[float] = [s.concurrency for s in self.steps]
        p50 = _interpolate(concurrency, points, [s.p50_ms for s in self.steps])
        return p50, _interpolate(concurrency, points, [s.p95_ms for s in self.steps])

    @property
    def stages(self) -> float:
        """Erlang stages of one service: 1/scv while requests are served one at a time, else 1 (exponential)."""
        if self.service_scv is None or not self.serial:
            return 1.0
        if self.service_scv * STAGES_MAX <= 1.0:
            return math.inf
        return max(1.0, float(round(1.0 / self.service_scv)))

    @property
    def serial(self) -> bool:
        """One request at a time: the throughput never exceeds what one service time allows by much."""
        return max(s.rps for s in self.steps) * self.service_mean_s <= SERIAL_LIMIT


def from_artifacts(artifacts: Sequence[Qmax]) -> Ladder:
    """Merge the usable rungs of every run: lowest throughput and highest quantiles of a concurrency."""
    metric = artifacts[0].method.slo_metric
    rungs = [rung for artifact in artifacts for rung in artifact.ladder if usable(rung)]
    at = sorted({rung.concurrency for rung in rungs})
    steps = tuple(_worst(n, [rung for rung in rungs if rung.concurrency == n], metric) for n in at)
    means = [artifact.service_mean_s for artifact in artifacts if artifact.service_mean_s is not None]
    return Ladder(steps=steps, service_mean_s=max(means), service_scv=_scv(rungs, steps[0]))


def usable(rung: Rung) -> bool:
    """A void rung says nothing; an undecided one still has a throughput."""
    return rung.verdict != "invalid" and bool(rung.achieved_rps) and rung.ttfab_ms is not None


def _worst(concurrency: int, rungs: Sequence[Rung], metric: str) -> Step:
    judged = [found for rung in rungs if (found := _judged(rung, metric)) is not None]
    return Step(
        concurrency=concurrency,
        rps=min(rung.achieved_rps or math.inf for rung in rungs),
        p50_ms=max(q.p95 if q.p50 is None else q.p50 for q in judged),
        p95_ms=max(q.p95 for q in judged),
    )


def _judged(rung: Rung, metric: str) -> Quantiles | None:
    return rung.latency_ms if metric == "latency" and rung.latency_ms is not None else rung.ttfab_ms


def _scv(rungs: Sequence[Rung], first: Step) -> float | None:
    """The container's own variation where it reported one, else from p50 and p95 at concurrency 1."""
    reported = [rung.service_ms_cv for rung in rungs if rung.service_ms_cv is not None]
    if reported:
        return max(reported) ** 2
    if first.concurrency != 1 or first.p95_ms <= first.p50_ms:
        return None
    return ((first.p95_ms - first.p50_ms) / Z95 / first.p50_ms) ** 2


def _interpolate(at: float, points: Sequence[float], values: Sequence[float]) -> float:
    return float(np.interp(at, points, values))
