"""What the numbers mean: one named judgement each, with its figures and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from planner import fleet_findings
from planner.artifacts.plan import Finding, FindingVerdict, StageEffect
from planner.cost import Cost
from planner.decision import Decision
from planner.fleet_fit import Fit
from planner.instance import window_max
from planner.measured import Measured

SPREAD_LIMIT = 0.2
"""Repeats that differ by more than this share of the smallest are named."""
MODELLED_DEPTH = 128
"""Near saturation the expected Maximum of a deeper queue takes seconds to compute, and here it only illustrates."""
SEVERITY: dict[FindingVerdict, int] = {"stop": 0, "warn": 1, "not_run": 2, "ok": 3}


@dataclass(frozen=True)
class Case:
    """What a finding may look at."""

    measured: Measured
    decision: Decision
    drain: Decision | None
    """The same request under ``--rule drain``; None when no trigger survives."""
    cost: Cost
    ceiling_s: float
    stage_effect: StageEffect | None

    @property
    def price_usd_per_h(self) -> float | None:
        """List price of one instance; None when the table does not have it."""
        price = self.cost["usd_per_instance_h"]
        return price if isinstance(price, float) else None


def findings(case: Case) -> list[Finding]:
    """Every judgement, worst first; within a verdict in the order they are listed here."""
    found = [check(case) for check in CHECKS]
    return sorted((f for f in found if f is not None), key=lambda finding: SEVERITY[finding.verdict])


def surge_survival(case: Case) -> Finding:
    d, outcome = case.decision.derived, case.decision.outcome
    duration = case.measured.surge_duration_s
    seconds = outcome.time_to_full_s
    after = f"after {seconds:.1f} s on average" if seconds <= duration else f"not within {duration:.0f} s on average"
    detail = (
        f"arrivals x{case.decision.ask.surge_ratio:g} from the trigger (utilisation {d.utilization_at_trigger:.1%}) "
        f"for {duration:.0f} s: {outcome.shed_fraction:.1%} shed, {outcome.slo_attainment:.1%} of all requests "
        f"within the SLO, slots first full {after}"
    )
    if outcome.survived:
        return _finding("surge_survival", "ok", detail)
    if case.drain is None:
        return _finding(
            "surge_survival", "warn", detail, "no trigger survives this surge: shorten T_total or plan a smaller one"
        )
    drained = case.drain.derived
    spared = (outcome.shed_fraction - case.drain.outcome.shed_fraction) * 100
    price = case.price_usd_per_h
    more = drained.max_instances - d.max_instances
    bill = f" (${abs(more * price):,.2f} an hour {'more' if more > 0 else 'less'})" if price is not None else ""
    fleet = f"{more:+d} instances at peak{bill}" if more else "the same fleet at peak"
    return _finding(
        "surge_survival",
        "warn",
        detail,
        f"--rule drain triggers at utilisation {drained.utilization_at_trigger:.0%} and sheds "
        f"{case.drain.outcome.shed_fraction:.1%}: {spared:.0f} points fewer for {fleet}",
    )


def peak_capacity(case: Case) -> Finding:
    peak, d = case.decision.at_peak, case.decision.derived
    detail = (
        f"{d.max_instances} instances carry about {_fleet_rps(case, d.max_instances):,.0f} rps; the peak is "
        f"{peak.offered_rps:,.0f}: {peak.shed_fraction:.1%} shed, first byte p95 {peak.p95_ms:,.0f} ms in steady state"
    )
    detail += "; relies on LEAST_OUTSTANDING_REQUESTS routing: no instance's arrivals are burstier than Poisson"
    if peak.meets_slo:
        return _finding("peak_capacity", "ok", detail)
    needed = max(1, math.ceil(round(peak.offered_rps / case.decision.limit_rps, 9)))
    return _finding("peak_capacity", "warn", detail, f"--sizing throughput asks for {needed} instances")


def scale_in_safety(case: Case) -> Finding:
    return fleet_findings.scale_in_safety(case.decision)


def fleet_reading(case: Case) -> Finding | None:
    return fleet_findings.fleet_reading(case.decision, case.price_usd_per_h)


def overshoot(case: Case) -> Finding | None:
    return fleet_findings.overshoot(case.decision, case.price_usd_per_h)


def metric_units(case: Case) -> Finding:
    d, conversion, trigger = case.decision.derived, case.decision.conversion, case.decision.trigger
    target = conversion.target
    if target is None or d.metric_ratio is None:
        return _finding(
            "metric_units",
            "stop",
            "no ratio between the 10 s Maximum the alarm reads and mean occupancy: thresholds are not emitted",
            "measure the ladder with CloudWatch reachable within 3 h and --measure-window-s 20 or more "
            "(a whole 10 s period must lie inside), or an open-loop ladder (--open-loop)",
        )
    if conversion.fit is not None:
        return _levels(case, conversion.fit)
    shown = f"threshold {trigger.c_max:.2f} mean occupancy x {d.metric_ratio:.3g} = {target:.2f} as 10 s Maximum"
    if target >= d.queue_max_depth:
        return _finding(
            "metric_units",
            "stop",
            f"{shown}, at or above the admission bound of {d.queue_max_depth}: the alarm can never fire",
            "--rule drain puts the trigger where the Maximum stays below the bound",
        )
    if conversion.source == "open_loop":
        return _finding("metric_units", "ok", f"{shown}; ratio measured under open arrivals{_width(case)}")
    expected = ""
    if d.queue_max_depth <= MODELLED_DEPTH:
        maximum = window_max(case.decision.instance, trigger.load_max_rps)
        expected = f". Under Poisson arrivals at the trigger load the chain expects a 10 s Maximum of {maximum:.1f}"
    return _finding(
        "metric_units",
        "warn",
        f"{shown}; ratio from the closed loop, where it is 1 by construction{_width(case)}{expected}",
        "measure an open-loop ladder and pass --open-loop",
    )


def _levels(case: Case, found: Fit) -> Finding:
    trigger = case.decision.trigger
    detail = (
        f"trigger at {trigger.c_max:.2f} mean occupancy of one instance; out when three 10 s Maxima reach "
        f"{found.out_level} in the busiest, in when three 60 s Maxima stay at or under {found.in_level}"
    )
    if case.decision.conversion.source == "open_loop":
        return _finding("metric_units", "ok", f"{detail}; scaled by the open-loop ladder{_width(case)}")
    return _finding(
        "metric_units",
        "ok",
        f"{detail}; expected by the model of the fleet ({case.decision.instance.model})",
        "an open-loop ladder (--open-loop) would replace the model of one instance by a measurement",
    )


def metric_scope(case: Case) -> Finding:
    scope = case.measured.metric_scope
    if scope == "variant_total":
        return _finding(
            "metric_scope",
            "stop",
            "with two instances the metric read the variant's total: a fixed target cannot follow the fleet",
            "do not apply this plan; scale on a per-instance metric of your own, or measure the scope again",
        )
    if scope == "unknown":
        return _finding(
            "metric_scope",
            "warn",
            "not seen whether the metric is per instance or a variant total; the target assumes per instance",
            "`make ttotal` records it while two instances run",
        )
    return _finding("metric_scope", "ok", "per instance, seen while two instances ran")


def q_max_confidence(case: Case) -> Finding:
    m = case.measured
    low, high = min(m.q_max_runs), max(m.q_max_runs)
    runs = (
        f"Q_max {m.q_max}, lowest of {len(m.q_max_runs)} runs" if len(m.q_max_runs) > 1 else f"Q_max {m.q_max}, one run"
    )
    if not m.bracketed:
        return _finding(
            "q_max_confidence",
            "warn",
            f"{runs}; a lower bound: no rung above it missed the SLO",
            "add higher rungs until one fails",
        )
    if high > (1 + SPREAD_LIMIT) * low:
        spread = f"{runs}; runs spread from {low} to {high}, {(high - low) / low:.0%}"
        return _finding("q_max_confidence", "warn", spread, "find what differs between the runs")
    return _finding("q_max_confidence", "ok", f"{runs}; bracketed by a rung that missed the SLO")


def t_total_confidence(case: Case) -> Finding:
    m = case.measured
    if m.t_total_assumed:
        detail = f"T_total {m.t_total_s:.0f} s is assumed, not measured"
        return _finding("t_total_confidence", "warn", detail, "`make ttotal` measures it")
    lag = "" if m.policy_lag_s is None else f" + {m.policy_lag_s:.0f} s policy lag bound = {m.surge_duration_s:.1f} s"
    runs = m.t_total_runs
    label = f"worst of {len(runs)} runs" if len(runs) > 1 else "a single run"
    detail = f"T_total {m.t_total_s:.1f} s{lag}, {label}"
    if m.policy_lag_s is None:
        return _finding(
            "t_total_confidence", "warn", f"{detail}; policy lag not known", "measure with the policy deployed"
        )
    if max(runs) > (1 + SPREAD_LIMIT) * min(runs):
        return _finding(
            "t_total_confidence",
            "warn",
            f"{detail}; runs spread from {min(runs):.0f} to {max(runs):.0f} s, {max(runs) / min(runs) - 1:.0%}",
            "the first scale-out of an image pulls it, later ones may hit a cache: plan for the slow one",
        )
    return _finding("t_total_confidence", "ok", detail)


def t_total_stages(case: Case) -> Finding | None:
    effect = case.stage_effect
    if effect is None:
        return None
    drain = ""
    if effect.drain_utilization is not None and effect.drain_utilization_now is not None:
        drain = f", drain trigger {effect.drain_utilization_now:.1%} → {effect.drain_utilization:.1%} utilisation"
    d = case.decision.derived
    return _finding(
        "t_total_stages",
        "ok",
        f"{effect.start} → {effect.end} takes {effect.seconds:.0f} s, {effect.share_pct:.0f} % of T_total; halved: "
        f"scale-in cooldown {d.scale_in_cooldown_s} → {effect.scale_in_cooldown_s} s, surge shed "
        f"{case.decision.outcome.shed_fraction:.1%} → {effect.shed_fraction:.1%}{drain}",
        effect.advice,
    )


def slo_budget(case: Case) -> Finding:
    w, slo = case.decision.derived.w_max_s, case.decision.ask.slo_ms / 1e3
    detail = f"a request can wait {w:.3f} s of its {slo:g} s: service p95 is {case.measured.service_p95_s * 1e3:.1f} ms"
    if w < 0.5 * slo:
        return _finding("slo_budget", "warn", detail, "service alone takes over half of the SLO: little room to queue")
    return _finding("slo_budget", "ok", detail)


def invocation_ceiling(case: Case) -> Finding:
    whole = case.measured.response_p95_at_q_max_ms
    longest_s = max(case.decision.ask.slo_ms, whole or 0.0) / 1e3
    detail = f"longest response {longest_s:.1f} s against the {case.ceiling_s:g} s invocation ceiling"
    if longest_s >= case.ceiling_s:
        return _finding(
            "invocation_ceiling", "stop", detail, "whole responses at Q_max are cut off: shorten texts or lower the SLO"
        )
    return _finding("invocation_ceiling", "ok", detail)


def queue_depth(case: Case) -> Finding:
    d, slo = case.decision.derived, case.decision.ask.slo_ms
    last_ms = case.measured.ladder.first_byte_ms(d.queue_max_depth)[1]
    wait_s = (last_ms - case.measured.first_byte_p95_at_1_ms) / 1e3
    detail = (
        f"admission at {d.queue_max_depth}: the last in waits {wait_s:.3f} s at p95, {d.w_max_s:.3f} s are affordable"
    )
    if last_ms > slo:
        return _finding(
            "queue_depth", "warn", detail, "the queue is deeper than the SLO allows: measure the ladder again"
        )
    return _finding("queue_depth", "ok", detail)


def first_chunk_alarm(case: Case) -> Finding:
    d, ask = case.decision.derived, case.decision.ask
    at_1 = case.measured.first_byte_p95_at_1_ms
    if ask.published_first_chunk_alarm:
        return _finding(
            "first_chunk_alarm",
            "warn",
            f"{at_1:.1f} ms is p95 at concurrency 1; the metric includes queueing: it fires as soon as anything waits",
            "leave out --first-chunk-alarm published",
        )
    return _finding(
        "first_chunk_alarm",
        "ok",
        f"{d.first_chunk_alarm_ms:.0f} ms, the first-byte p95 expected at the trigger load; the published "
        f"{at_1:.1f} ms (p95 at concurrency 1) would fire as soon as anything queues",
    )


def open_arrivals(case: Case) -> Finding:
    if case.measured.open_loop.points:
        return _finding("open_arrivals", "ok", "an open-loop run was used for the metric ratio")
    return _finding(
        "open_arrivals",
        "not_run",
        "Q_max comes from a closed loop; capacity under real arrivals is computed from it "
        f"({case.decision.instance.model}, Poisson arrivals), not measured",
        "an open-loop ladder or `make validate-load` confirms or refutes the plan",
    )


def fingerprint(case: Case) -> Finding:
    if not case.measured.mismatches:
        return _finding("fingerprint", "ok", "Q_max and T_total were measured on one deployment with one workload")
    listed = "; ".join(str(mismatch) for mismatch in case.measured.mismatches)
    return _finding(
        "fingerprint",
        "warn",
        f"measurements of different deployments were paired on request: {listed}",
        "measure both again on one deployment",
    )


def fleet_range(case: Case) -> Finding | None:
    d = case.decision.derived
    if d.min_instances < d.max_instances:
        return None
    return _finding(
        "fleet_range",
        "warn",
        f"min_instances and max_instances are both {d.max_instances}: the policies have nothing to add or remove",
        "scaling is not needed at this peak; plan for a higher one, or run a fixed fleet",
    )


CHECKS: tuple[Callable[[Case], Finding | None], ...] = (
    surge_survival,
    peak_capacity,
    fleet_range,
    scale_in_safety,
    metric_units,
    fleet_reading,
    overshoot,
    metric_scope,
    fingerprint,
    q_max_confidence,
    t_total_confidence,
    open_arrivals,
    t_total_stages,
    slo_budget,
    invocation_ceiling,
    queue_depth,
    first_chunk_alarm,
)


def _finding(name: str, verdict: FindingVerdict, detail: str, recommendation: str = "") -> Finding:
    return Finding(name=name, verdict=verdict, detail=detail, recommendation=recommendation)


def _fleet_rps(case: Case, instances: int) -> float:
    """What the fleet completes with every slot taken."""
    return instances * case.decision.derived.instance_capacity_rps


def _width(case: Case) -> str:
    ratios = case.measured.open_loop if case.measured.open_loop.points else case.measured.closed_loop
    if not ratios.wide:
        return ""
    values = [ratio for _, ratio in ratios.points]
    return f" (from {min(values):.2f} to {max(values):.2f} by rung, interpolated)"
