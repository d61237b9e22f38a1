"""What the simulator wrote: every policy's score on the same arrivals, and its timeline."""

from __future__ import annotations

from typing import Any, Literal

from planner.artifacts.base import SCHEMA_VERSION, Strict


class Score(Strict):
    """One policy on one profile."""

    policy: str
    setting: str
    """What the policy was set to, in words."""
    offered: int
    slo_attainment: float
    """Requests admitted and answered within the SLO over all that were offered."""
    shed_fraction: float
    surge_shed_fraction: float | None
    """Of the requests offered while the surge lasted; None without a surge."""
    surge_slo_attainment: float | None
    ttfab_p95_s: float | None
    """Of the admitted."""
    instance_h: float
    usd: float | None
    """None = the price table does not have the instance type."""
    start_instances: int
    peak_instances: int
    scale_outs: int
    scale_ins: int
    refused_by_quota: int
    flaps: int
    """Instances taken away and asked back within half an hour."""
    detection_s: float | None
    """First scale-out after the surge began; None when there was none, or no surge."""
    first_capacity_s: float | None
    """First added instance in service after the surge began."""
    kernel: Literal["exact", "batched"]


class Timeline(Strict):
    """Per metric period, or thinned to a few hundred points in long runs."""

    end_s: list[float]
    offered_rps: list[float]
    served_rps: list[float]
    shed_fraction: list[float]
    slo_attainment: list[float]
    in_service: list[int]
    desired: list[int]
    concurrency_max: list[int]


class PolicyRun(Strict):
    """Score and timeline."""

    score: Score
    timeline: Timeline


class Simulation(Strict):
    """``simulate-<name>.json``: a function of its inputs alone, so a rerun is byte-identical."""

    schema_version: int = SCHEMA_VERSION
    kind: Literal["simulation"] = "simulation"
    name: str
    inputs: dict[str, Any]
    runs: list[PolicyRun]
