"""The plan: thresholds, cooldowns, queue bound and fleet size, each with a verdict."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from planner.artifacts.base import Artifact, Strict
from planner.artifacts.fingerprint import Fingerprint

FindingVerdict = Literal["ok", "warn", "stop", "not_run"]
Rule = Literal["headroom", "drain"]
Sizing = Literal["throughput", "published"]


class Finding(Strict):
    """One judged property of the plan."""

    name: str
    verdict: FindingVerdict
    detail: str
    recommendation: str = ""


class Formula(Strict):
    """How a derived number came about, so that a reader can check it by hand."""

    name: str
    expression: str
    inputs: dict[str, float | int | str | None]
    value: float | int | str | None
    unit: str
    source: str


class Derived(Strict):
    """What Terraform and the operator use."""

    q_max: int
    c_scale_max: float
    """Mean occupancy a instance at which to scale out."""
    c_scale_min: float
    """Mean occupancy a instance at which to scale in."""
    metric_ratio: float | None
    """scaling_target_value over c_scale_max; None = not known, then nothing below is emitted."""
    metric_ratio_source: Literal["closed_loop", "open_loop", "model", "unknown"]
    scaling_target_value: float | None
    """What the alarm compares with: c_scale_max converted, or under drain one level for every fleet size."""
    scale_in_threshold: float | None
    """Likewise for c_scale_min; drain's is safe for every fleet size."""
    w_max_s: float
    queue_max_depth: int
    min_instances: int
    max_instances: int
    min_safe_instances: int | None
    """None = both thresholds coincide (surge ratio 1): no fleet scales in safely."""
    scale_out_cooldown_s: int
    scale_in_cooldown_s: int
    utilization_at_trigger: float
    load_at_trigger_rps: float
    """Arrivals one instance takes when it stands at c_scale_max."""
    instance_capacity_rps: float
    first_chunk_alarm_ms: float


class Surge(Strict):
    """The surge applied at the trigger for T_total."""

    surge_ratio: float
    duration_s: float
    shed_fraction: float
    slo_attainment: float
    time_to_saturation_s: float | None
    """None = the headroom outlasts the surge."""
    p95_ms: float
    """First byte of the admitted."""
    model: str


class Stage(Strict):
    """One part of T_total, from the slowest run."""

    start: str
    end: str
    seconds: float
    share_pct: float


class StageEffect(Strict):
    """What halving the dominant stage of T_total would change."""

    start: str
    end: str
    seconds: float
    share_pct: float
    advice: str
    t_total_s: float
    """T_total with that stage halved."""
    scale_out_cooldown_s: int
    scale_in_cooldown_s: int
    shed_fraction: float
    """Of the surge that then lasts shorter."""
    drain_utilization: float | None
    drain_utilization_now: float | None


class Alternative(Strict):
    """The same derived numbers under another rule and sizing, with what the fleet costs."""

    rule: Rule
    sizing: Sizing
    derived: Derived
    surge: Surge
    usd_per_h_at_max: float | None
    usd_per_million_chars: float | None


class Plan(Artifact):
    """``artifacts/plan-<model>.json``; Terraform reads ``verdict``, ``fingerprint`` and ``derived``."""

    kind_name: ClassVar[str] = "plan"
    kind: Literal["plan"] = "plan"
    model: str
    fingerprint: Fingerprint | None
    inputs: dict[str, Any]
    rule: Rule
    sizing: Sizing
    derived: Derived
    surge: Surge
    findings: list[Finding]
    alternatives: list[Alternative]
    formulas: list[Formula]
    metric_scope: Literal["per_instance", "variant_total", "unknown"]
    feasible: bool
    """No finding says stop and every threshold is in the units the alarm reads."""
    verdict: Literal["ok", "warn", "stop"]
    cost: dict[str, float | str | None] = {}
    stages: list[Stage] = []
    stage_effect: StageEffect | None = None
