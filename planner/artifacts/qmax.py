"""The ladder's result: Q_max of one instance."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from planner.artifacts.base import Artifact, Strict
from planner.artifacts.fingerprint import Fingerprint

Verdict = Literal["pass", "fail", "undecided", "invalid"]
SloMetric = Literal["ttfab", "latency"]


class Quantiles(Strict):
    """Of the measured window, in ms, nearest-rank from raw records. None = a published figure nobody gave."""

    n: int
    mean: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float
    p99: float | None = None
    p95_upper: float | None = None
    """One-sided 95 % upper order-statistic bound of the p95; None when n < 59."""
    p95_lower: float | None = None
    """One-sided 95 % lower order-statistic bound of the p95; None when n is too small."""


class Method(Strict):
    """How the ladder was run."""

    rungs: list[int]
    hold_s: float
    measure_window_s: float
    idle_s: float
    slo_ms: float
    slo_metric: SloMetric = "ttfab"
    runs: int = 1
    refine: bool = False
    load_processes: int = 1
    seed: int = 0


class ClientHealth(Strict):
    """Evidence that the load generator was not the limit."""

    dispatch_gap_p95_ms: float | None = None
    """Between one answer and the next request of the same user."""
    loop_lag_p95_ms: float | None = None
    cpu_share: float | None = None
    """Busy share of one core, worst process."""
    bound: bool = False


class CloudWatchView(Strict):
    """What CloudWatch saw in the same window; None = it had no data (never zero)."""

    period_s: int = 10
    concurrency_max: float | None = None
    concurrency_min: float | None = None
    model_latency_p95_ms: float | None = None
    first_chunk_p95_ms: float | None = None
    invocations: float | None = None
    gpu_utilization_pct: float | None = None
    cpu_utilization_pct: float | None = None


class Rung(Strict):
    """One step of the ladder in one run."""

    concurrency: int
    run: int = 0
    verdict: Verdict
    point_verdict: Literal["pass", "fail"] | None
    """Published rule: p95 against the SLO, whatever the confidence. None = no data."""
    reasons: list[str] = []
    window_start: datetime | None = None
    window_end: datetime | None = None
    in_flight_mean: float | None = None
    achieved_rps: float | None = None
    """Completions per second in the window, ok only."""
    completed: int = 0
    ok: int = 0
    outcomes: dict[str, int] = {}
    ttfab_ms: Quantiles | None = None
    latency_ms: Quantiles | None = None
    service_ms_mean: float | None = None
    """The container's own service time a request, from its response attribute."""
    service_ms_cv: float | None = None
    drift_ms: float | None = None
    chars_mean: float | None = None
    audio_s_per_s: float | None = None
    client: ClientHealth = ClientHealth()
    cloudwatch: CloudWatchView | None = None
    metric_ratio: float | None = None
    """CloudWatch 10 s Maximum over mean in-flight; 1.0 by construction in a closed loop."""


class OpenLoopRate(Strict):
    """One rate of the open-loop ladder (surge.py --rates)."""

    offered_rps: float
    achieved_rps: float
    shed_fraction: float
    ttfab_ms: Quantiles | None
    in_flight_mean: float
    concurrency_10s_max: float | None
    """Mean over 10 s periods of CloudWatch's Maximum."""
    metric_ratio: float | None
    """concurrency_10s_max over in_flight_mean, under Poisson arrivals."""
    client_bound: bool = False
    window_s: float


class Qmax(Artifact):
    """``artifacts/qmax-<model>-<transport>-<slug>.json``."""

    kind_name: ClassVar[str] = "qmax"
    kind: Literal["qmax"] = "qmax"
    model: str
    fingerprint: Fingerprint | None
    method: Method
    outcome: Literal["found", "lower_bound", "none_meets_slo", "undecided"]
    """found = bracketed by a valid rung that missed; lower_bound = every rung passed."""
    q_max: int | None
    bracketed: bool
    q_max_per_run: list[int | None] = []
    notes: list[str] = []
    service_mean_s: float | None
    """Mean whole response at concurrency 1."""
    service_p95_s: float | None
    """p95 of the whole response at concurrency 1."""
    ttfab_p95_at_1_ms: float | None
    ladder: list[Rung]
    records_file: str | None = None
    records_sha256: str | None = None


class OpenLoop(Artifact):
    """``artifacts/openloop-<model>-<transport>-<slug>.json``: the metric ratio under real arrivals."""

    kind_name: ClassVar[str] = "openloop"
    kind: Literal["openloop"] = "openloop"
    model: str
    fingerprint: Fingerprint | None
    seed: int
    slo_ms: float
    rates: list[OpenLoopRate]
    records_file: str | None = None
    records_sha256: str | None = None
