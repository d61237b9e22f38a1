"""What the thresholds do in fleets of every size the plan allows: judgements that need the fleet's reading."""

from __future__ import annotations

import math

from planner import rule
from planner.artifacts.plan import Finding, FindingVerdict
from planner.decision import Decision
from planner.fleet_fit import FIRES, Fit, fires_from_rps, flaps_below, settled, sizes
from planner.fleet_reading import Server, level, reading, server_of
from planner.show import number

MINUTE_S = 60.0
"""The scale-in alarm's period; a longer one reads more."""
LONG_H = 24.0
"""A surplus that takes longer than this to give back is named."""


def fleet_reading(decision: Decision, price_usd_per_h: float | None) -> Finding | None:
    """At which load scale-out fires, by fleet size."""
    d, found = decision.derived, decision.conversion.fit
    if d.scaling_target_value is None:
        return None
    if found is None:
        return _one_instance_target(decision)
    server, capacity = server_of(decision.instance), d.instance_capacity_rps
    loads = ", ".join(
        f"{fires_from_rps(server, n, found.out_level) / capacity:.0%} with {n}"
        for n in _shown(d.min_instances, found.covered_to or d.min_instances)
    )
    detail = (
        f"the busiest of n instances reads less the larger n is; {number(d.scaling_target_value)} fires from a load of "
        f"{loads}"
    )
    if found.covered_to is None:
        return _finding(
            "fleet_reading",
            "warn",
            f"at the trigger load no fleet of {d.min_instances} or more reads {found.out_level}: {detail}. The surge "
            "is survived only by a fleet that stands at the trigger or below by itself",
            "scale on a schedule or on requests per instance; compare them in `planner simulate`",
        )
    if found.covered_to < d.max_instances:
        return _finding(
            "fleet_reading",
            "warn",
            f"no one target serves {d.min_instances} to {d.max_instances} instances: beyond {found.covered_to} a fleet "
            f"at the trigger load reads less than {found.out_level} and fires too late. Survival of the surge is "
            f"promised for {d.min_instances} to {found.covered_to} instances; {detail}",
            f"split the traffic over endpoints of at most {found.covered_to} instances",
        )
    covered = f"fires at the trigger load or earlier with {d.min_instances} to {d.max_instances} instances: {detail}"
    early = _early(decision, found, server, price_usd_per_h)
    if not early:
        return _finding("fleet_reading", "ok", covered)
    return _finding("fleet_reading", "warn", f"{covered}{early}", _narrower(decision, found))


def overshoot(decision: Decision, price_usd_per_h: float | None) -> Finding | None:
    """What one saturated reading asks for, and how long the surplus stays."""
    d = decision.derived
    target = d.scaling_target_value
    if target is None or d.max_instances == d.min_instances:
        return None
    factor = d.queue_max_depth / target
    enough = max(d.min_instances, math.ceil(round(d.max_instances / factor, 9)))
    detail = (
        f"one reading of {d.queue_max_depth} (slots full) asks for {factor:.1f} times the fleet: {enough} or more "
        f"instances go straight to max_instances {d.max_instances}"
    )
    surplus = d.max_instances - enough
    hours = surplus * d.scale_in_cooldown_s / 3600
    bill = ""
    if price_usd_per_h is not None:
        bill = (
            f", ${price_usd_per_h * hours * (surplus + 1) / 2:,.0f} for the surplus "
            f"(${price_usd_per_h * d.max_instances:,.0f} an hour at first)"
        )
    detail = f"{detail}; back to {enough}, one instance every {d.scale_in_cooldown_s} s, takes {hours:,.0f} h{bill}"
    if hours <= LONG_H:
        return _finding("overshoot", "ok", detail)
    return _finding(
        "overshoot",
        "warn",
        detail,
        "max_instances, sized for the peak, is the bound: plan with the peak you would pay for",
    )


def scale_in_safety(decision: Decision) -> Finding:
    """Whether taking one instance away leaves the rest under the trigger."""
    d = decision.derived
    if d.min_safe_instances is None:
        return _finding(
            "scale_in_safety",
            "stop",
            "a surge ratio of 1 puts scale-out and scale-in at the same threshold: the fleet would flap",
            "plan for a surge ratio above 1",
        )
    found = decision.conversion.fit
    return _published_scale_in(decision, d.min_safe_instances) if found is None else _fitted_scale_in(decision, found)


def _published_scale_in(decision: Decision, min_safe: int) -> Finding:
    d, trigger = decision.derived, decision.trigger
    ratio = rule.threshold_ratio(decision.ask.surge_ratio)
    need = math.ceil(round(1 / (1 - trigger.load_min_rps / trigger.load_max_rps), 9))
    detail = (
        f"min_instances {d.min_instances}, and the threshold ratio {ratio:.2f} asks for {min_safe}; by load, the rest "
        f"of a fleet stays under the trigger when one leaves from {need} instances on"
    )
    loaded = _scales_in_under_load(decision)
    if not loaded and d.min_instances >= max(need, min_safe):
        return _finding("scale_in_safety", "ok", detail)
    return _finding(
        "scale_in_safety",
        "warn",
        f"{detail}{loaded}",
        f"below {max(need, min_safe)} instances a scale-in may put the rest past the trigger and flap: raise "
        f"--min-floor to {min_safe} at least{', and plan with --rule drain' if loaded else ', or accept it at night'}",
    )


def _scales_in_under_load(decision: Decision) -> str:
    """From which size on a fleet at the trigger load reads less than the scale-in threshold."""
    d, server = decision.derived, server_of(decision.instance)
    threshold, load_rps = d.scale_in_threshold, d.load_at_trigger_rps
    if threshold is None:
        return ""
    for instances in sizes(2, max(d.max_instances, 2)):
        reads = reading(server, instances, load_rps, MINUTE_S)
        if instances <= d.max_instances and reads < threshold:
            return (
                f". From {instances} instances on the threshold of {threshold:g} lies above what a fleet reads at the "
                f"trigger load ({reads:.0f} as 60 s Maximum with {instances}, "
                f"{reading(server, d.max_instances, load_rps, MINUTE_S):.0f} with {d.max_instances}): it scales in "
                f"under {d.utilization_at_trigger:.0%} load"
            )
    return ""


def _fitted_scale_in(decision: Decision, found: Fit) -> Finding:
    d = decision.derived
    quiet_from = flaps_below(server_of(decision.instance), found, d.min_instances, d.max_instances)
    promised = found.covered_to or d.max_instances
    detail = (
        f"no fleet of {max(d.min_instances + 1, 2)} to {promised} stays at or under {found.in_level} for three minutes "
        "at a load that one instance less could not take below the trigger"
    )
    if quiet_from == d.min_instances:
        return _finding("scale_in_safety", "ok", detail)
    return _finding(
        "scale_in_safety",
        "warn",
        f"{detail}; up to {quiet_from} instances it may fire scale-out again, at most every {d.scale_in_cooldown_s} s",
        "accept it, nothing is shed; a higher --min-floor has it less often",
    )


def _one_instance_target(decision: Decision) -> Finding:
    """The published rule's target, against what fleets read at its trigger load."""
    d, server = decision.derived, server_of(decision.instance)
    target = d.scaling_target_value or 0.0
    shown = _shown(d.min_instances, d.max_instances)
    reads = {n: reading(server, n, d.load_at_trigger_rps) for n in shown}
    listed = ", ".join(f"{value:.0f} with {n}" for n, value in reads.items())
    detail = f"at the trigger load a fleet's 10 s Maximum is {listed}"
    late = next((n for n, value in reads.items() if value < target), None)
    if late is None:
        return _finding("fleet_reading", "ok", f"{detail}; the target is {number(target)}")
    where = "at every size" if late == shown[0] else f"from {late} instances on"
    return _finding(
        "fleet_reading",
        "warn",
        f"{detail}: a target of {number(target)} fires past the trigger {where}",
        "--rule drain converts its thresholds for every fleet size",
    )


def _early(decision: Decision, found: Fit, server: Server, price_usd_per_h: float | None) -> str:
    """What small fleets pay for a target that large ones need."""
    d = decision.derived
    middle = max(d.min_instances, round(math.sqrt(d.min_instances * d.max_instances)))
    rates = sorted({decision.ask.trough_rps or d.min_instances * d.load_at_trigger_rps, middle * d.load_at_trigger_rps})
    costs = []
    for rate_rps in rates:
        planned = max(d.min_instances, math.ceil(round(rate_rps / d.load_at_trigger_rps, 9)))
        kept = settled(server, rate_rps, planned, d.max_instances, found.out_level)
        if kept > planned:
            bill = "" if price_usd_per_h is None else f" (${price_usd_per_h * (kept - planned):,.2f} an hour)"
            costs.append(f"{rate_rps:,.0f} rps keep {kept} instances instead of {planned}{bill}")
    return f". Small fleets pay for it: {', '.join(costs)}" if costs else ""


def _narrower(decision: Decision, found: Fit) -> str:
    """The largest fleet that a higher target would serve."""
    d, server = decision.derived, server_of(decision.instance)
    low, high = d.min_instances, d.max_instances
    if level(server, low, d.load_at_trigger_rps, FIRES) <= found.out_level:
        return "a higher --min-floor leaves fewer sizes to serve"
    while high - low > 1:
        middle = (low + high) // 2
        if level(server, middle, d.load_at_trigger_rps, FIRES) > found.out_level:
            low = middle
        else:
            high = middle
    return f"a peak that {low} instances carry ({low * d.load_at_trigger_rps:,.0f} rps) would allow a higher target"


def _shown(low: int, high: int) -> list[int]:
    """Both ends and the size half-way in ratio."""
    return sorted({low, round(math.sqrt(low * high)), high})


def _finding(name: str, verdict: FindingVerdict, detail: str, recommendation: str = "") -> Finding:
    return Finding(name=name, verdict=verdict, detail=detail, recommendation=recommendation)
