"""Measurements and a request in, a plan out. Pure: the clock and the command line are passed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal, cast

from planner import rule
from planner.artifacts.base import Provenance
from planner.artifacts.plan import Alternative, Finding, Plan, Stage, StageEffect
from planner.cost import cost
from planner.decision import Ask, Decision, decide, other_choices
from planner.errors import FactFails
from planner.findings import Case, findings
from planner.formulas import formulas
from planner.measured import Measured
from planner.soundness import LARGEST_FLEET, bad_number, refuse
from planner.surge import drain_load_rps, surge

CEILING_S = 60.0
"""SageMaker cuts an invocation after 60 s."""

ADVICE = {
    "instance_logging": "allocation and image pull: a smaller image, SageMaker's image cache (from the second "
    "scale-out on), warm capacity (a higher --min-floor)",
    "container_started": "container start: a smaller image, fewer processes before the server",
    "framework_init": "start-up: import only what serves",
    "weights_ready": "weights: smaller or quantised weights, uncompressed model data, no initialisation before loading",
    "warmup_done": "warm-up: fewer and shorter warm-up texts",
    "in_service": "health checks: answer /ping as soon as the warm-up is done",
    "first_traffic": "routing: nothing here to tune",
    "traffic_recovered": "backlog: a lower trigger or a shorter queue leaves less to drain",
}
"""What shortens the stage that ends with this event."""


def check_ask(measured: Measured, ask: Ask, ceiling_s: float) -> None:
    """UsageError with every reason why this request cannot be planned."""
    problems = [
        bad_number(name, value)
        for name, value in (
            ("--peak-rps", ask.peak_rps),
            ("--slo-ms", ask.slo_ms),
            ("--surge-ratio", ask.surge_ratio),
            ("--ceiling-s", ceiling_s),
            ("T_total", measured.t_total_s),
        )
    ]
    if ask.min_floor < 1:
        problems.append(f"--min-floor {ask.min_floor}: a real-time variant cannot go below 1 instance")
    needed = max(ask.min_floor, ask.peak_rps / max(measured.ladder.rates_rps(measured.q_max)))
    if needed > LARGEST_FLEET:
        problems.append(f"{needed:.3g} instances or more: beyond the {LARGEST_FLEET} this planner computes")
    if ask.trough_rps is not None:
        problems.append(bad_number("--trough-rps", ask.trough_rps))
        if ask.trough_rps > ask.peak_rps:
            problems.append(f"peak {ask.peak_rps:g} rps is under the trough {ask.trough_rps:g} rps")
    if not 1.0 <= ask.surge_ratio < rule.SURGE_LIMIT:
        problems.append(
            f"--surge-ratio {ask.surge_ratio:g} is outside 1 to {rule.SURGE_LIMIT:g} (exclusive): from 1.5 on the "
            f"scale-in threshold (1 - 2h) Q_max is zero or negative"
        )
    measured_slo = measured.qmax.method.slo_ms
    if ask.slo_ms != measured_slo:
        problems.append(
            f"SLO {ask.slo_ms:g} ms, but the ladder judged its rungs against {measured_slo:g} ms: "
            f"`make qmax SLO_MS={ask.slo_ms:g}` measures Q_max for it"
        )
    if ask.slo_ms / 1e3 <= measured.service_p95_s:
        problems.append(
            f"SLO {ask.slo_ms:g} ms is not above the service time p95 of {measured.service_p95_s * 1e3:.1f} ms: "
            f"even an idle instance misses it"
        )
    if ask.slo_ms / 1e3 > ceiling_s:
        problems.append(f"SLO {ask.slo_ms:g} ms is past the invocation ceiling of {ceiling_s:g} s")
    found = [problem for problem in problems if problem]
    flags = found and all(problem.startswith("--") for problem in found)
    refuse(found, "correct the flag" if flags else "change the request or measure again")


def make_plan(
    measured: Measured,
    ask: Ask,
    *,
    command: Sequence[str],
    now: datetime,
    ceiling_s: float = CEILING_S,
    extra_inputs: dict[str, Any] | None = None,
) -> Plan:
    """The whole plan: the chosen numbers, what they mean, and the alternatives."""
    check_ask(measured, ask, ceiling_s)
    decision = decide(measured, ask)
    drain = decision if ask.rule == "drain" else attempt(measured, replace(ask, rule="drain"))
    price = cost(measured, decision)
    effect = stage_effect(measured, decision)
    judged = findings(
        Case(
            measured=measured,
            decision=decision,
            drain=drain,
            cost=price,
            ceiling_s=ceiling_s,
            stage_effect=effect,
        )
    )
    inputs = _inputs(measured, ask, ceiling_s) | (extra_inputs or {})
    return Plan(
        provenance=_provenance(measured, inputs, command, now),
        model=measured.qmax.model,
        fingerprint=measured.fingerprint,
        inputs=inputs,
        rule=ask.rule,
        sizing=ask.sizing,
        derived=decision.derived,
        surge=decision.surge,
        findings=judged,
        alternatives=[_alternative(measured, other) for other in _others(measured, ask)],
        formulas=formulas(measured, decision, price),
        metric_scope=cast(Literal["per_instance", "variant_total", "unknown"], measured.metric_scope),
        feasible=feasible(decision, judged),
        verdict=verdict(judged),
        cost=price,
        stages=[Stage(**stage.model_dump()) for stage in measured.stages],
        stage_effect=effect,
    )


def attempt(measured: Measured, ask: Ask) -> Decision | None:
    """A decision that may turn out impossible."""
    try:
        return decide(measured, ask)
    except FactFails:
        return None


def verdict(judged: Sequence[Finding]) -> Literal["ok", "warn", "stop"]:
    """The worst finding; one that was not run leaves the plan a warning."""
    verdicts = {finding.verdict for finding in judged}
    if "stop" in verdicts:
        return "stop"
    return "warn" if verdicts & {"warn", "not_run"} else "ok"


def feasible(decision: Decision, judged: Sequence[Finding]) -> bool:
    """No stop, and both thresholds are in the units the alarm reads."""
    units = decision.derived.scaling_target_value is not None and decision.derived.scale_in_threshold is not None
    return units and verdict(judged) != "stop"


def stage_effect(measured: Measured, decision: Decision) -> StageEffect | None:
    """The dominant stage of T_total, and the thresholds if it took half as long."""
    if not measured.stages or measured.t_total_assumed:
        return None
    longest = max(measured.stages, key=lambda stage: stage.seconds)
    ask, instance = decision.ask, decision.instance
    duration_s = measured.surge_duration_s - longest.seconds / 2
    shorter = surge(instance, decision.trigger.load_max_rps, decision.trigger.c_max, ask.surge_ratio, duration_s)
    then = drain_load_rps(instance, ask.surge_ratio, duration_s)
    today = drain_load_rps(instance, ask.surge_ratio, measured.surge_duration_s)
    return StageEffect(
        start=longest.start,
        end=longest.end,
        seconds=longest.seconds,
        share_pct=longest.share_pct,
        advice=ADVICE.get(longest.end, "look at what happens between these two events"),
        t_total_s=measured.t_total_s - longest.seconds / 2,
        scale_out_cooldown_s=rule.scale_out_cooldown_s(duration_s),
        scale_in_cooldown_s=rule.scale_in_cooldown_s(duration_s),
        shed_fraction=shorter.shed_fraction,
        drain_utilization=None if then is None else then / instance.capacity_rps,
        drain_utilization_now=None if today is None else today / instance.capacity_rps,
    )


def tool_version() -> str:
    """Version of the installed distribution."""
    try:
        return version("headroom")
    except PackageNotFoundError:
        return "not installed"


def _others(measured: Measured, ask: Ask) -> list[Decision]:
    return [found for choice in other_choices(ask) if (found := attempt(measured, choice)) is not None]


def _alternative(measured: Measured, other: Decision) -> Alternative:
    price = cost(measured, other)
    return Alternative(
        rule=other.ask.rule,
        sizing=other.ask.sizing,
        derived=other.derived,
        surge=other.surge,
        usd_per_h_at_max=cast("float | None", price["usd_per_h_at_max"]),
        usd_per_million_chars=cast("float | None", price["usd_per_million_chars"]),
    )


def _inputs(measured: Measured, ask: Ask, ceiling_s: float) -> dict[str, Any]:
    return {
        "slo_ms": ask.slo_ms,
        "slo_metric": measured.qmax.method.slo_metric,
        "surge_ratio": ask.surge_ratio,
        "peak_rps": ask.peak_rps,
        "trough_rps": ask.trough_rps,
        "rule": ask.rule,
        "sizing": ask.sizing,
        "min_floor": ask.min_floor,
        "ceiling_s": ceiling_s,
        "service_mean_s": measured.service_mean_s,
        "service_p95_s": measured.service_p95_s,
        "t_total_s": measured.t_total_s,
        "t_total_assumed": measured.t_total_assumed,
        "policy_lag_s": measured.policy_lag_s,
        "first_chunk_alarm": "published" if ask.published_first_chunk_alarm else "derived",
        "config_mismatches": [str(mismatch) for mismatch in measured.mismatches],
        **measured.sources,
    }


def _provenance(measured: Measured, inputs: dict[str, Any], command: Sequence[str], now: datetime) -> Provenance:
    source = measured.qmax.provenance
    return Provenance(
        tool_version=tool_version(),
        command=list(command),
        run_id=_run_id(inputs, measured),
        created_at=now,
        region=source.region,
        endpoint=source.endpoint,
        variant=source.variant,
        aws_endpoint_url=source.aws_endpoint_url,
        note=source.note,
    )


def _run_id(inputs: dict[str, Any], measured: Measured) -> str:
    """The same inputs are the same run, whenever it is repeated."""
    identity = json.dumps([inputs, measured.qmax.model, tool_version()], sort_keys=True, default=str)
    return hashlib.sha256(identity.encode()).hexdigest()[:12]
