"""One instance as a flow-equivalent server: the ladder's throughput by number in the system.

Chandy, Herzog and Woo (1975): a closed loop at N gives the rate X(N) at which a subsystem holding N requests
completes them. The simulator works off the head of a FCFS queue at speed X(n), each request carrying work of mean 1;
with exponential work this is the birth-death chain, with near-constant work it is close to M/D/1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.artifacts.qmax import Qmax, Rung
from planner.errors import UsageError
from planner.fleet_reading import Server
from planner.ladder import from_artifacts, usable

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class ServiceModel:
    """What the simulator needs to know about an instance."""

    rates_rps: tuple[float, ...]
    """Completions per second with n = 0, 1, 2, ... requests inside; flat beyond the last."""
    cv: float
    """Coefficient of variation of one request's work; 0 = constant, 1 = exponential."""
    first_audio_share: tuple[float, ...] = (1.0,)
    """TTFAB over the time to the last byte, by the number in the system at admission; flat beyond the last."""
    source: str = "stated"

    def __post_init__(self) -> None:
        if len(self.rates_rps) < 2 or self.rates_rps[0] != 0 or min(self.rates_rps[1:]) <= 0:
            raise UsageError("service rates must start with 0 and be positive from one request on")
        if not 0 <= self.cv <= 3:
            raise UsageError(f"service variability {self.cv} is outside 0..3", "pass --service-cv between 0 and 3")

    @property
    def capacity_rps(self) -> float:
        """The most one instance completes per second, whatever its backlog."""
        return max(self.rates_rps)

    def rates_up_to(self, depth: int) -> FloatArray:
        """rates[n] for n = 0..depth."""
        return _extended(self.rates_rps, depth)

    def shares_up_to(self, depth: int) -> FloatArray:
        """First-audio share for n = 0..depth."""
        return _extended(self.first_audio_share, depth)

    def server(self, bound: int) -> Server:
        """As the planner sees one instance of a fleet, with admission at ``bound``."""
        stages = math.inf if self.cv == 0 else max(1.0, 1 / self.cv**2)
        return Server(tuple(self.rates_up_to(bound)[1:].tolist()), stages)

    def work(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Work of ``size`` requests, mean 1: Gamma (Erlang when 1/cv^2 is whole), constant when cv is 0."""
        if self.cv == 0:
            return np.ones(size)
        shape = 1 / self.cv**2
        return rng.gamma(shape, 1 / shape, size)


def from_ladder(artifacts: Sequence[Qmax], cv: float | None = None) -> ServiceModel:
    """The planner's own reading of the ladder as rates, with its variability unless ``cv`` is stated."""
    ladder = from_artifacts(artifacts)
    rungs = {rung.concurrency: rung for artifact in artifacts for rung in artifact.ladder if usable(rung)}
    levels = sorted(rungs)
    shares = np.interp(np.arange(levels[-1] + 1), levels, [_first_audio_share(rungs[n]) for n in levels])
    work_cv = 1 / math.sqrt(ladder.stages) if cv is None else cv
    run = artifacts[0].provenance.run_id
    return ServiceModel(
        rates_rps=(0.0, *ladder.rates_rps(levels[-1])),
        cv=work_cv,
        first_audio_share=tuple(map(float, shares)),
        source=f"ladder of run {run}, work cv {work_cv:.3f} {'from the ladder' if cv is None else 'stated'}",
    )


def _first_audio_share(rung: Rung) -> float:
    first, last = rung.ttfab_ms, rung.latency_ms
    if first is None or last is None:
        return 1.0
    if first.mean is not None and last.mean is not None:
        return min(1.0, first.mean / last.mean)
    return min(1.0, first.p95 / last.p95) if first.p95 and last.p95 else 1.0


def _extended(values: tuple[float, ...], depth: int) -> FloatArray:
    array = np.full(depth + 1, values[-1])
    known = min(len(values), depth + 1)
    array[:known] = values[:known]
    return array
