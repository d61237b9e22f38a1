"""The measurements a plan rests on, checked once: everything wrong is reported together, nothing is guessed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.artifacts.fingerprint import Fingerprint, Mismatch, mismatches
from planner.artifacts.qmax import OpenLoop, Qmax
from planner.artifacts.ttotal import StageDuration, Ttotal, TtotalRun
from planner.conversion import Ratios, closed_loop, open_loop
from planner.errors import FactFails, Undecided
from planner.ladder import Ladder, from_artifacts, usable
from planner.soundness import faults, refuse


@dataclass(frozen=True)
class Measured:
    """One instance's capacity and the fleet's delay, worst of the runs given."""

    qmax: Qmax
    """The run with the lowest Q_max; names, fingerprint and provenance come from it."""
    ladder: Ladder
    q_max: int
    q_max_runs: tuple[int, ...]
    bracketed: bool
    service_mean_s: float
    service_p95_s: float
    first_byte_p95_at_1_ms: float
    response_p95_at_q_max_ms: float | None
    t_total_s: float
    policy_lag_s: float | None
    t_total_runs: tuple[float, ...]
    t_total_assumed: bool
    stages: tuple[StageDuration, ...]
    metric_scope: str
    closed_loop: Ratios
    open_loop: Ratios
    mismatches: tuple[Mismatch, ...]
    chars_mean: float | None
    sources: dict[str, list[str]]

    @property
    def surge_duration_s(self) -> float:
        """T_total with the policy's detection bound: how long a surge must be survived."""
        return self.t_total_s + (self.policy_lag_s or 0.0)

    @property
    def fingerprint(self) -> Fingerprint | None:
        """What was measured."""
        return self.qmax.fingerprint


def measured(
    qmaxes: Sequence[Qmax],
    ttotals: Sequence[Ttotal],
    open_loops: Sequence[OpenLoop] = (),
    *,
    assumed_t_total_s: float | None = None,
    allow_mismatch: bool = False,
) -> Measured:
    """Join the artifacts or raise with every reason why they do not join."""
    differing = _pairing(qmaxes, ttotals, open_loops)
    refuse(faults(qmaxes, ttotals, open_loops), "measure again with concurrency 1 among --rungs, or restore the file")
    problems = _different_method(qmaxes) + _mixed_worlds(qmaxes, ttotals, open_loops)
    if differing and not allow_mismatch:
        problems += [f"fingerprints differ in {mismatch}" for mismatch in differing]
    refuse(
        problems,
        "measure Q_max and T_total again on one deployment with one corpus (--allow-config-mismatch records it)",
    )
    _require_answers(qmaxes, ttotals, assumed_t_total_s)
    lowest = min(qmaxes, key=lambda artifact: artifact.q_max or math.inf)
    per_run = tuple(q for artifact in qmaxes for q in (artifact.q_max_per_run or [artifact.q_max]) if q is not None)
    runs = [run for artifact in ttotals for run in artifact.runs if run.t_total_s is not None]
    totals = [artifact.t_total_s for artifact in ttotals if artifact.t_total_s is not None]
    assumed = assumed_t_total_s is not None
    lags = [artifact.policy_lag.bound_s for artifact in ttotals if artifact.policy_lag is not None]
    q_max = min(artifact.q_max for artifact in qmaxes if artifact.q_max is not None)
    return Measured(
        qmax=lowest,
        ladder=from_artifacts(qmaxes),
        q_max=q_max,
        q_max_runs=per_run,
        bracketed=all(artifact.bracketed for artifact in qmaxes),
        service_mean_s=max(a.service_mean_s for a in qmaxes if a.service_mean_s is not None),
        service_p95_s=max(a.service_p95_s for a in qmaxes if a.service_p95_s is not None),
        first_byte_p95_at_1_ms=max(a.ttfab_p95_at_1_ms for a in qmaxes if a.ttfab_p95_at_1_ms is not None),
        response_p95_at_q_max_ms=_response_p95_ms(qmaxes, q_max),
        t_total_s=assumed_t_total_s if assumed_t_total_s is not None else max(totals),
        policy_lag_s=0.0 if assumed else (max(lags) if lags else None),
        t_total_runs=tuple(run.t_total_s for run in runs if run.t_total_s is not None) or tuple(totals),
        t_total_assumed=assumed,
        stages=_stages(runs),
        metric_scope=_scope(ttotals),
        closed_loop=closed_loop(qmaxes),
        open_loop=open_loop(open_loops),
        mismatches=tuple(differing),
        chars_mean=_chars_mean(lowest),
        sources={
            "qmax_runs": [artifact.provenance.run_id for artifact in qmaxes],
            "ttotal_runs": [artifact.provenance.run_id for artifact in ttotals],
            "open_loop_runs": [artifact.provenance.run_id for artifact in open_loops],
        },
    )


def _different_method(qmaxes: Sequence[Qmax]) -> list[str]:
    first = qmaxes[0].method
    return [
        f"qmax runs differ in {name}: {getattr(first, name)} against {getattr(other.method, name)}"
        for other in qmaxes[1:]
        for name in ("slo_ms", "slo_metric")
        if getattr(first, name) != getattr(other.method, name)
    ]


def _mixed_worlds(qmaxes: Sequence[Qmax], ttotals: Sequence[Ttotal], open_loops: Sequence[OpenLoop]) -> list[str]:
    everything = [*qmaxes, *ttotals, *open_loops]
    rehearsed = [a for a in everything if a.provenance.aws_endpoint_url is not None]
    if not rehearsed or len(rehearsed) == len(everything):
        return []
    real = next(a for a in everything if a.provenance.aws_endpoint_url is None)
    other = rehearsed[0]
    return [
        f"{other.kind} run {other.provenance.run_id} was measured at {other.provenance.aws_endpoint_url}, "
        f"{real.kind} run {real.provenance.run_id} on AWS: the two never pair"
    ]


def _pairing(qmaxes: Sequence[Qmax], ttotals: Sequence[Ttotal], open_loops: Sequence[OpenLoop]) -> list[Mismatch]:
    first = qmaxes[0]
    found: dict[str, Mismatch] = {}
    others: list[Qmax | Ttotal | OpenLoop] = [*qmaxes[1:], *ttotals, *open_loops]
    for other in others:
        if other.model != first.model:
            found["model"] = Mismatch(field="model", first=first.model, second=other.model)
        for mismatch in mismatches(first.fingerprint, other.fingerprint):
            found.setdefault(mismatch.field, mismatch)
    return list(found.values())


def _require_answers(qmaxes: Sequence[Qmax], ttotals: Sequence[Ttotal], assumed_t_total_s: float | None) -> None:
    for artifact in qmaxes:
        run = artifact.provenance.run_id
        if artifact.outcome == "none_meets_slo":
            raise FactFails(
                f"qmax run {run}: no concurrency meets the SLO of {artifact.method.slo_ms:g} ms",
                "a faster instance or engine, shorter first segments, or a longer SLO; then measure again",
            )
        if artifact.outcome == "undecided" or artifact.q_max is None:
            raise Undecided(f"qmax run {run}: Q_max is undecided", "measure again with a longer --hold-s")
    if assumed_t_total_s is not None:
        return
    for timing in ttotals:
        if timing.t_total_s is None:
            outcomes = ", ".join(run.outcome for run in timing.runs) or "no runs"
            raise Undecided(
                f"ttotal run {timing.provenance.run_id}: no T_total ({outcomes})",
                "measure again, or plan with --assume-t-total-s",
            )


def _response_p95_ms(qmaxes: Sequence[Qmax], q_max: int) -> float | None:
    found = [
        r.latency_ms.p95 for a in qmaxes for r in a.ladder if r.concurrency == q_max and r.latency_ms and usable(r)
    ]
    return max(found) if found else None


def _stages(runs: Sequence[TtotalRun]) -> tuple[StageDuration, ...]:
    if not runs:
        return ()
    return tuple(max(runs, key=lambda run: run.t_total_s or 0.0).durations)


def _scope(ttotals: Sequence[Ttotal]) -> str:
    scopes = {artifact.metric_scope for artifact in ttotals}
    if "variant_total" in scopes:
        return "variant_total"
    return "per_instance" if scopes == {"per_instance"} else "unknown"


def _chars_mean(artifact: Qmax) -> float | None:
    at_q_max = [r.chars_mean for r in artifact.ladder if r.concurrency == artifact.q_max and r.chars_mean]
    if at_q_max:
        return at_q_max[0]
    return artifact.fingerprint.workload.chars_mean if artifact.fingerprint else None
