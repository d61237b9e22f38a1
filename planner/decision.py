"""Thresholds, fleet and surge under one rule and one sizing: the numbers of the plan, before anyone judges them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from planner import rule
from planner.artifacts.plan import Derived, Rule, Sizing, Surge
from planner.conversion import Ratios, RatioSource
from planner.errors import FactFails
from planner.fleet_fit import Fit, fit
from planner.fleet_reading import reading, server_of
from planner.instance import Instance, mean_occupancy
from planner.measured import Measured
from planner.sizing import Served, per_instance_limit_rps, serve, throughput_instances
from planner.surge import SurgeOutcome, drain_load_rps, finite, surge


@dataclass(frozen=True)
class Ask:
    """What the user wants; checked before it gets here."""

    slo_ms: float
    surge_ratio: float
    peak_rps: float
    trough_rps: float | None
    rule: Rule = "headroom"
    sizing: Sizing = "throughput"
    min_floor: int = 1
    published_first_chunk_alarm: bool = False


@dataclass(frozen=True)
class Trigger:
    """The scale-out and scale-in points of one instance, as occupancy and as load."""

    c_max: float
    c_min: float
    load_max_rps: float
    load_min_rps: float


@dataclass(frozen=True)
class Conversion:
    """The two thresholds in the alarm's units."""

    source: RatioSource
    target: float | None
    threshold: float | None
    fit: Fit | None = None
    """drain's levels for every fleet size; None under the published rule, which knows one instance."""


@dataclass(frozen=True)
class Decision:
    """Everything computed under one rule and sizing."""

    ask: Ask
    instance: Instance
    trigger: Trigger
    conversion: Conversion
    derived: Derived
    outcome: SurgeOutcome
    surge: Surge
    at_peak: Served
    limit_rps: float


def decide(measured: Measured, ask: Ask) -> Decision:
    """Run the chosen rule and sizing; FactFails when no load at all satisfies it."""
    instance = Instance(measured.ladder, measured.q_max, ask.slo_ms)
    duration_s = measured.surge_duration_s
    trigger = find_trigger(instance, ask, duration_s)
    limit_rps = per_instance_limit_rps(instance, trigger.load_max_rps)
    if limit_rps is None:
        raise FactFails(
            f"one instance carries no open arrivals at an SLO of {ask.slo_ms:g} ms: p95 or shedding fails at any load",
            "a longer SLO, or a faster instance measured again",
        )
    low, high = fleet(measured, ask, trigger, limit_rps)
    outcome = surge(instance, trigger.load_max_rps, trigger.c_max, ask.surge_ratio, duration_s)
    conversion = convert(measured, ask, instance, trigger, (low, high))
    emitted = measured.metric_scope != "variant_total"
    derived = Derived(
        q_max=measured.q_max,
        c_scale_max=trigger.c_max,
        c_scale_min=trigger.c_min,
        metric_ratio=None if conversion.target is None else conversion.target / trigger.c_max,
        metric_ratio_source=conversion.source,
        scaling_target_value=conversion.target if emitted else None,
        scale_in_threshold=conversion.threshold if emitted else None,
        w_max_s=rule.w_max_s(ask.slo_ms, measured.service_p95_s),
        queue_max_depth=measured.q_max,
        min_instances=low,
        max_instances=high,
        min_safe_instances=rule.min_safe_instances(rule.threshold_ratio(ask.surge_ratio)),
        scale_out_cooldown_s=rule.scale_out_cooldown_s(duration_s),
        scale_in_cooldown_s=rule.scale_in_cooldown_s(duration_s),
        utilization_at_trigger=trigger.load_max_rps / instance.capacity_rps,
        load_at_trigger_rps=trigger.load_max_rps,
        instance_capacity_rps=instance.capacity_rps,
        first_chunk_alarm_ms=first_chunk_alarm_ms(measured, ask, instance, trigger),
    )
    return Decision(
        ask=ask,
        instance=instance,
        trigger=trigger,
        conversion=conversion,
        derived=derived,
        outcome=outcome,
        surge=Surge(
            surge_ratio=ask.surge_ratio,
            duration_s=duration_s,
            shed_fraction=outcome.shed_fraction,
            slo_attainment=outcome.slo_attainment,
            time_to_saturation_s=finite(outcome.time_to_full_s, duration_s),
            p95_ms=outcome.p95_ms,
            model=instance.model,
        ),
        at_peak=serve(instance, high, ask.peak_rps),
        limit_rps=limit_rps,
    )


def find_trigger(instance: Instance, ask: Ask, duration_s: float) -> Trigger:
    """headroom: the published occupancies. drain: the largest load whose surge is survived, and its occupancy."""
    if ask.rule == "headroom":
        thresholds = rule.published_thresholds(instance.q_max, ask.surge_ratio)
        return Trigger(
            c_max=thresholds.c_scale_max,
            c_min=thresholds.c_scale_min,
            load_max_rps=rule.published_utilization(thresholds.c_scale_max) * instance.capacity_rps,
            load_min_rps=rule.published_utilization(thresholds.c_scale_min) * instance.capacity_rps,
        )
    load = drain_load_rps(instance, ask.surge_ratio, duration_s)
    if load is None:
        raise FactFails(
            f"no trigger survives a surge of x{ask.surge_ratio:g} for {duration_s:.0f} s within the SLO",
            "a smaller surge ratio, a longer SLO, or a shorter T_total",
        )
    low = load / rule.threshold_ratio(ask.surge_ratio)
    return Trigger(
        c_max=mean_occupancy(instance, load),
        c_min=mean_occupancy(instance, low),
        load_max_rps=load,
        load_min_rps=low,
    )


def fleet(measured: Measured, ask: Ask, trigger: Trigger, limit_rps: float) -> tuple[int, int]:
    """Instances for the trough and for the peak."""

    def needed(rate_rps: float) -> int:
        if ask.sizing == "published":
            return rule.published_instances(rate_rps, measured.service_mean_s, trigger.c_max)
        return throughput_instances(rate_rps, limit_rps)

    low = max(ask.min_floor, needed(ask.trough_rps) if ask.trough_rps is not None else 1)
    return low, max(low, needed(ask.peak_rps))


def convert(
    measured: Measured, ask: Ask, instance: Instance, trigger: Trigger, instances: tuple[int, int]
) -> Conversion:
    """headroom: occupancy x measured ratio. drain: what fleets of ``instances`` read, carried from one if measured."""
    if ask.rule == "headroom":
        return _by_ratio(measured.open_loop if measured.open_loop.points else measured.closed_loop, trigger)
    server = server_of(instance)
    found = fit(server, trigger.load_max_rps, *instances)
    ratio = measured.open_loop.at(trigger.c_max)
    if ratio is None:
        return Conversion("model", found.target, found.threshold, found)
    agreement = ratio * trigger.c_max / reading(server, 1, trigger.load_max_rps)
    found = found.scaled(agreement, instance.q_max)
    return Conversion("open_loop", found.target, found.threshold, found)


def first_chunk_alarm_ms(measured: Measured, ask: Ask, instance: Instance, trigger: Trigger) -> float:
    """Published: p95 at concurrency 1. Ours: p95 in steady state at the trigger load, whole ms, never past the SLO."""
    if ask.published_first_chunk_alarm:
        return measured.first_byte_p95_at_1_ms
    return min(ask.slo_ms, float(math.ceil(instance.p95_ms(instance.chain(trigger.load_max_rps).occupancy_steady))))


def other_choices(ask: Ask) -> list[Ask]:
    """The same request under every other rule and sizing."""
    rules: tuple[Rule, ...] = ("headroom", "drain")
    sizings: tuple[Sizing, ...] = ("throughput", "published")
    every = [replace(ask, rule=r, sizing=s) for r in rules for s in sizings]
    return [choice for choice in every if (choice.rule, choice.sizing) != (ask.rule, ask.sizing)]


def _by_ratio(ratios: Ratios, trigger: Trigger) -> Conversion:
    high, low = ratios.at(trigger.c_max), ratios.at(trigger.c_min)
    if high is None or low is None:
        return Conversion("unknown", None, None)
    return Conversion(ratios.source, round(trigger.c_max * high, 6), round(trigger.c_min * low, 6))
