"""Seconds from asking for capacity until the new instance carries healthy traffic, by stage."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from planner.artifacts.base import Artifact, Strict
from planner.artifacts.fingerprint import Fingerprint

STAGES = (
    "desired_set",
    "instance_logging",
    "container_started",
    "framework_init",
    "weights_ready",
    "warmup_done",
    "in_service",
    "first_traffic",
    "traffic_recovered",
)

RunOutcome = Literal[
    "measured", "no_capacity", "quota", "rollback", "unhealthy", "not_recovered", "timeout", "interrupted"
]


class Stage(Strict):
    """A moment that was seen. A stage nobody saw is missing from the list, never zero."""

    name: str
    at: datetime
    source: str
    """The API that knew: sagemaker, logs, container, probe."""
    bounded: bool = False
    """True when only a bound is known (polling interval, log delivery)."""


class StageDuration(Strict):
    """Between two consecutive seen stages; shares of a run sum to 100 %."""

    start: str
    end: str
    seconds: float
    share_pct: float


class TtotalRun(Strict):
    """One forced scale-out."""

    run: int
    outcome: RunOutcome
    detail: str = ""
    from_instances: int
    to_instances: int
    t_total_s: float | None
    """desired_set to traffic_recovered; None unless outcome is measured."""
    stages: list[Stage] = []
    durations: list[StageDuration] = []
    dominant: str | None = None
    """``start → end`` of the longest duration."""
    probe_p95_before_ms: float | None = None
    probe_p95_recovered_target_ms: float | None = None
    probe_p95_after_ms: float | None = None
    """Of the recovered window alone."""
    requests_per_boot_id: dict[str, int] = {}
    concurrency_metric_readings: list[float] = []


class PolicyLag(Strict):
    """Upper bound of the policy's own detection time; not part of the measurement."""

    bound_s: float
    source: Literal["deployed", "defaults"]
    formula: str


class Ttotal(Artifact):
    """``artifacts/ttotal-<model>-<transport>-<slug>.json``."""

    kind_name: ClassVar[str] = "ttotal"
    kind: Literal["ttotal"] = "ttotal"
    model: str
    fingerprint: Fingerprint | None
    qmax_run_id: str | None
    probe_concurrency: int
    recovered_reference: Literal["ladder", "probe"] = "ladder"
    """Where the p95 at half the concurrency comes from by which recovery is judged."""
    recovered_factor: float = 1.25
    t_total_s: float | None
    """Worst of the measured runs."""
    spread_pct: float | None = None
    """(worst - best) / best over measured runs; None for a single run."""
    policy_lag: PolicyLag | None
    metric_scope: Literal["per_instance", "variant_total", "unknown"] = "unknown"
    runs: list[TtotalRun]
    records_file: str | None = None
    records_sha256: str | None = None
