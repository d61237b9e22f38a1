"""What happened when the plan was put to the test with live autoscaling, against what it forecast."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

from planner.artifacts.base import Artifact, Strict
from planner.artifacts.fingerprint import Fingerprint
from planner.artifacts.qmax import Quantiles

ScoreVerdict = Literal["ok", "better", "wrong", "undecided", "not_run"]


class ForecastScore(Strict):
    """One forecast number against what was observed."""

    name: str
    source: Literal["plan", "simulator"]
    """Only the plan's scores decide; the simulator's show how far it can be trusted."""
    predicted: float | None
    observed: float | None
    tolerance: float
    unit: str
    verdict: ScoreVerdict
    """better = outside the tolerance on the harmless side; undecided = too few requests for a share."""
    detail: str = ""


class FleetPoint(Strict):
    """The variant's counts when they were looked at; seconds since the load began."""

    at_s: float
    desired: int
    current: int
    status: str


class AlarmChange(Strict):
    """A scaling alarm that changed its state."""

    at_s: float
    alarm: str
    state: str


class ScalingActivity(Strict):
    """What Application Auto Scaling did."""

    at_s: float
    description: str
    cause: str
    status: str
    message: str = ""


class StretchResult(Strict):
    """One stretch of the profile as the client saw it."""

    name: str
    start_s: float
    end_s: float
    offered: int
    ok: int
    shed: int
    other: dict[str, int] = {}
    """Outcomes that are neither."""
    slo_attainment: float | None
    shed_fraction: float | None
    ttfab_ms: Quantiles | None
    """From the intended send time."""


class Spent(Strict):
    """Against the budget."""

    minutes: float
    usd: float | None
    """None = the price table does not have the instance type."""
    stopped_by: str | None = None


class Validation(Artifact):
    """``artifacts/validate-<model>.json``."""

    kind_name: ClassVar[str] = "validate"
    kind: Literal["validate"] = "validate"
    model: str
    fingerprint: Fingerprint | None
    plan_run_id: str
    qmax_run_id: str
    started_at: datetime
    start_instances: int
    base_rps: float
    surge_ratio: float
    surge_s: float
    seed: int
    verdict: Literal["right", "wrong", "undecided"]
    reasons: list[str]
    scores: list[ForecastScore]
    stretches: list[StretchResult]
    fleet: list[FleetPoint]
    alarms: list[AlarmChange]
    activities: list[ScalingActivity]
    detection_s: float | None
    """Surge begun to the first scale-out."""
    scale_out_s: float | None
    """That scale-out to its instance in service."""
    client_late_p99_ms: float | None
    spent: Spent
    records_file: str | None = None
    records_sha256: str | None = None
