"""Are the measured numbers possible at all: every one that is not is named, with its value."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from planner.artifacts.qmax import OpenLoop, Qmax, Rung
from planner.artifacts.ttotal import Ttotal
from planner.errors import UsageError
from planner.ladder import usable

LARGEST = 1e9
"""Milliseconds in 11 days, and more requests a second than any endpoint serves: beyond it a file is damaged."""
LARGEST_FLEET = 100_000
"""Instances; a larger fleet takes minutes to compute and no account runs one."""
DEEPEST = 2000
"""A chain of more states takes minutes; no instance that is limited by concurrency holds as many."""

Named = tuple[str, float | None]


def refuse(problems: Sequence[str], hint: str) -> None:
    """Raise UsageError with every problem on a line of its own; nothing to report, nothing raised."""
    if problems:
        listed = problems[0] if len(problems) == 1 else "".join(f"\n  - {problem}" for problem in problems)
        raise UsageError(listed if len(problems) == 1 else f"{len(problems)} problems:{listed}", hint)


def bad_number(name: str, value: float | None) -> str | None:
    """A positive finite number of this world, or what is wrong with it."""
    if value is None:
        return f"{name} is missing, expected a number above 0"
    if not math.isfinite(value) or value <= 0:
        return f"{name} is {value}, expected a number above 0"
    return None if 1 / LARGEST <= value <= LARGEST else f"{name} is {value:g}, which nothing measures"


def faults(qmaxes: Sequence[Qmax], ttotals: Sequence[Ttotal], open_loops: Sequence[OpenLoop]) -> list[str]:
    """Everything impossible in the artifacts, in their order."""
    found: list[str] = []
    for qmax in qmaxes:
        found += [f"qmax run {qmax.provenance.run_id}: {fault}" for fault in _ladder_faults(qmax)]
    for ttotal in ttotals:
        run = f"ttotal run {ttotal.provenance.run_id}"
        found += [f"{run}: {f}" for f in _judged(_timings(ttotal), _lags(ttotal))]
    for opened in open_loops:
        run = f"openloop run {opened.provenance.run_id}"
        ratios = ((f"ratio at {r.offered_rps:g} rps", r.metric_ratio) for r in opened.rates)
        found += [f"{run}: {f}" for f in _judged(_known(ratios), ())]
    return found


def _ladder_faults(qmax: Qmax) -> Iterator[str]:
    rungs = [rung for rung in qmax.ladder if usable(rung)]
    if not rungs:
        yield "no usable rung in the ladder"
    yield from _judged(_summary(qmax), ())
    for rung in qmax.ladder:
        yield from (f"rung {rung.concurrency} {fault}" for fault in _judged(_positive(rung), _not_negative(rung)))
    if qmax.q_max is None or qmax.q_max <= 0:
        return
    if qmax.q_max > DEEPEST:
        yield f"q_max {qmax.q_max} is more than the {DEEPEST} this planner computes"
    elif rungs and qmax.q_max not in {rung.concurrency for rung in rungs}:
        yield f"q_max {qmax.q_max} is not a usable rung of its own ladder"


def _summary(qmax: Qmax) -> Iterator[Named]:
    yield "service_mean_s", qmax.service_mean_s
    yield "service_p95_s", qmax.service_p95_s
    yield "ttfab_p95_at_1_ms", qmax.ttfab_p95_at_1_ms
    yield "method.slo_ms", qmax.method.slo_ms
    yield from _known([("q_max", qmax.q_max)])


def _positive(rung: Rung) -> Iterator[Named]:
    yield "concurrency", rung.concurrency
    yield from _known([("metric_ratio", rung.metric_ratio), ("chars_mean", rung.chars_mean)])
    if usable(rung):
        yield "achieved_rps", rung.achieved_rps
        for metric, quantiles in (("ttfab", rung.ttfab_ms), ("latency", rung.latency_ms)):
            if quantiles is not None:
                yield from _known([(f"{metric} p50", quantiles.p50), (f"{metric} p95", quantiles.p95)])


def _not_negative(rung: Rung) -> Iterator[Named]:
    """A rung where nothing completed has a rate of 0, and a scripted service does not vary."""
    yield from _known([("achieved_rps", rung.achieved_rps), ("service_ms_cv", rung.service_ms_cv)])


def _timings(ttotal: Ttotal) -> Iterator[Named]:
    yield from _known([("t_total_s", ttotal.t_total_s)])
    for run in ttotal.runs:
        yield from _known([(f"run {run.run} t_total_s", run.t_total_s)])


def _lags(ttotal: Ttotal) -> Iterator[Named]:
    if ttotal.policy_lag is not None:
        yield "policy_lag.bound_s", ttotal.policy_lag.bound_s
    for run in ttotal.runs:
        yield from ((f"run {run.run} {d.start} → {d.end}", d.seconds) for d in run.durations)
        yield from ((f"run {run.run} share of {d.start} → {d.end}", d.share_pct) for d in run.durations)


def _known(named: Iterable[Named]) -> Iterator[Named]:
    return ((name, value) for name, value in named if value is not None)


def _judged(positive: Iterable[Named], zero_allowed: Iterable[Named]) -> Iterator[str]:
    for name, value in positive:
        fault = bad_number(name, value)
        if fault:
            yield fault
    for name, value in zero_allowed:
        if value is not None and not 0 <= value <= LARGEST:
            yield f"{name} is {value:g}, expected 0 to {LARGEST:g}"
