"""Every derived number with its expression and inputs, so that a reader can check it by hand."""

from __future__ import annotations

from planner import rule
from planner.artifacts.plan import Formula
from planner.cost import Cost
from planner.decision import Decision
from planner.fleet_fit import Fit
from planner.instance import SHED_LIMIT, steady_limit_rps
from planner.measured import Measured

PUBLISHED = "published rule"
CHAIN = "flow-equivalent server (Chandy, Herzog, Woo 1975) with admission"
POOLED = "busiest instance of a fleet under least-outstanding routing"

Inputs = dict[str, float | int | str | None]


def formulas(measured: Measured, decision: Decision, cost: Cost) -> list[Formula]:
    """In the order a reader meets the numbers."""
    return [
        *_measured(measured, decision),
        *_thresholds(decision),
        *_units(decision),
        *_bounds(measured, decision),
        *_fleet(measured, decision),
        *_surge(decision),
        *_cost(decision, cost),
    ]


def _measured(m: Measured, decision: Decision) -> list[Formula]:
    d = decision.derived
    return [
        _of(
            "q_max",
            "min over runs of the highest passing rung",
            {"runs": _listed(m.q_max_runs)},
            d.q_max,
            "requests",
            "ladder",
        ),
        _of(
            "t_total_with_policy_s",
            "T_total + policy lag bound",
            {"t_total_s": m.t_total_s, "policy_lag_s": m.policy_lag_s},
            m.surge_duration_s,
            "s",
            "ttotal",
        ),
        _of(
            "first_byte_p95_at_1_ms",
            "p95 of the first audio byte at concurrency 1",
            {},
            m.first_byte_p95_at_1_ms,
            "ms",
            "ladder; used by the published first-chunk alarm, which watches first bytes",
        ),
        _of(
            "service_p95_ms",
            "p95 of the whole response at concurrency 1",
            {},
            m.service_p95_s * 1e3,
            "ms",
            "ladder; used by W_max, because a slot is held until the last byte",
        ),
        _of("instance_capacity_rps", "X(Q_max)", {"q_max": d.q_max}, d.instance_capacity_rps, "rps", "ladder"),
    ]


def _thresholds(decision: Decision) -> list[Formula]:
    d, ask, trigger = decision.derived, decision.ask, decision.trigger
    h = rule.headroom(ask.surge_ratio)
    ratio = rule.threshold_ratio(ask.surge_ratio)
    safe = _of(
        "min_safe_instances",
        "ceil(r / (r - 1)), r = (1 - h) / (1 - 2h)",
        {"h": h, "r": ratio},
        d.min_safe_instances,
        "instances",
        PUBLISHED,
    )
    if ask.rule == "headroom":
        return [
            _of("h", "surge_ratio - 1", {"surge_ratio": ask.surge_ratio}, h, "", PUBLISHED),
            _of("c_scale_max", "(1 - h) Q_max", {"h": h, "q_max": d.q_max}, d.c_scale_max, "requests", PUBLISHED),
            _of("c_scale_min", "(1 - 2h) Q_max", {"h": h, "q_max": d.q_max}, d.c_scale_min, "requests", PUBLISHED),
            _of(
                "utilization_at_trigger",
                "C / (1 + C), C = c_scale_max",
                {"c_scale_max": d.c_scale_max},
                d.utilization_at_trigger,
                "",
                f"{PUBLISHED}: M/M/1 occupancy inverted",
            ),
            _of(
                "load_at_trigger_rps",
                "utilization_at_trigger x X(Q_max)",
                {"utilization_at_trigger": d.utilization_at_trigger, "capacity_rps": d.instance_capacity_rps},
                d.load_at_trigger_rps,
                "rps",
                PUBLISHED,
            ),
            safe,
        ]
    return [
        _of(
            "load_at_trigger_rps",
            "largest lambda: surge sheds <= 1 %, p95 <= SLO until T",
            {"surge_ratio": ask.surge_ratio, "duration_s": decision.surge.duration_s, "shed_limit": SHED_LIMIT},
            d.load_at_trigger_rps,
            "rps",
            CHAIN,
        ),
        _of(
            "utilization_at_trigger",
            "load_at_trigger_rps / X(Q_max)",
            {"load_at_trigger_rps": d.load_at_trigger_rps, "capacity_rps": d.instance_capacity_rps},
            d.utilization_at_trigger,
            "",
            "utilisation law",
        ),
        _of(
            "c_scale_max",
            "L(load_at_trigger_rps)",
            {"load_at_trigger_rps": d.load_at_trigger_rps},
            d.c_scale_max,
            "requests",
            CHAIN,
        ),
        _of(
            "c_scale_min",
            "L(load_at_trigger_rps / r), r = (1 - h) / (1 - 2h)",
            {"load_at_trigger_rps": trigger.load_max_rps, "r": ratio},
            d.c_scale_min,
            "requests",
            CHAIN,
        ),
        safe,
    ]


def _units(decision: Decision) -> list[Formula]:
    d, conversion, trigger = decision.derived, decision.conversion, decision.trigger
    if conversion.fit is not None:
        return _levels(decision, conversion.fit)
    source = {
        "closed_loop": "ladder: 10 s Maximum over N in flight",
        "open_loop": "open-loop ladder: 10 s Maximum over mean in flight",
    }.get(conversion.source, "not measured")
    low = None if conversion.threshold is None else conversion.threshold / trigger.c_min
    return [
        _of("metric_ratio", "10 s Maximum / mean occupancy", {"at": d.c_scale_max}, d.metric_ratio, "", source),
        _of(
            "scaling_target_value",
            "c_scale_max x metric_ratio",
            {"c_scale_max": d.c_scale_max, "metric_ratio": d.metric_ratio},
            d.scaling_target_value,
            "10 s max",
            source,
        ),
        _of(
            "scale_in_threshold",
            "c_scale_min x metric_ratio there",
            {"c_scale_min": d.c_scale_min, "metric_ratio": low},
            d.scale_in_threshold,
            "60 s max",
            source,
        ),
    ]


def _levels(decision: Decision, found: Fit) -> list[Formula]:
    d = decision.derived
    measured = ", scaled by the open-loop ladder" if decision.conversion.source == "open_loop" else ""
    source = f"{POOLED}{measured}"
    fleets: Inputs = {"n_from": d.min_instances, "n_to": found.covered_to}
    return [
        _of(
            "scaling_target_value",
            "k - 0.1; k = most that 80 % of 10 s reach at the trigger load, any n",
            {"k": found.out_level, "load_at_trigger_rps": d.load_at_trigger_rps, **fleets},
            d.scaling_target_value,
            "10 s max",
            source,
        ),
        _of(
            "scale_in_threshold",
            "j + 0.5; j < k, and 99 % of 3 min exceed j at (n - 1) / n of that load",
            {"j": found.in_level, "load_at_trigger_rps": d.load_at_trigger_rps, **fleets},
            d.scale_in_threshold,
            "60 s max",
            source,
        ),
        _of(
            "metric_ratio",
            "target / c_scale_max",
            {"target": found.target, "c_scale_max": d.c_scale_max},
            d.metric_ratio,
            "",
            source,
        ),
    ]


def _bounds(m: Measured, decision: Decision) -> list[Formula]:
    d, ask, t = decision.derived, decision.ask, m.surge_duration_s
    if ask.published_first_chunk_alarm:
        alarm = _of("first_chunk_alarm_ms", "first_byte_p95_at_1_ms", {}, d.first_chunk_alarm_ms, "ms", PUBLISHED)
    else:
        alarm = _of(
            "first_chunk_alarm_ms",
            "min(SLO, steady p95 first byte at load_at_trigger)",
            {"slo_ms": ask.slo_ms, "load_at_trigger_rps": d.load_at_trigger_rps},
            d.first_chunk_alarm_ms,
            "ms",
            f"{CHAIN}, first-byte times of the ladder",
        )
    return [
        _of(
            "w_max_s",
            "SLO - S_p95",
            {"slo_s": ask.slo_ms / 1e3, "service_p95_s": m.service_p95_s},
            d.w_max_s,
            "s",
            PUBLISHED,
        ),
        _of("queue_max_depth", "Q_max", {"q_max": d.q_max}, d.queue_max_depth, "requests", PUBLISHED),
        _of("scale_out_cooldown_s", "clamp(T / 2, 10, 30)", {"T": t}, d.scale_out_cooldown_s, "s", PUBLISHED),
        _of("scale_in_cooldown_s", "max(300, 3 T) floored to 10 s", {"T": t}, d.scale_in_cooldown_s, "s", PUBLISHED),
        alarm,
    ]


def _fleet(m: Measured, decision: Decision) -> list[Formula]:
    d, ask = decision.derived, decision.ask
    if ask.sizing == "published":
        expression, source = "max(floor, ceil(lambda S / c_scale_max))", PUBLISHED
        shared: Inputs = {"service_mean_s": m.service_mean_s, "c_scale_max": d.c_scale_max}
    else:
        expression, source = "max(floor, ceil(lambda / min(lambda_slo, load_at_trigger)))", CHAIN
        shared = {
            "lambda_slo": steady_limit_rps(decision.instance),
            "load_at_trigger_rps": d.load_at_trigger_rps,
        }
    return [
        _of(
            "min_instances",
            expression if ask.trough_rps is not None else "floor",
            {"lambda": ask.trough_rps, "floor": ask.min_floor, **shared},
            d.min_instances,
            "instances",
            source,
        ),
        _of(
            "max_instances",
            expression,
            {"lambda": ask.peak_rps, "floor": d.min_instances, **shared},
            d.max_instances,
            "instances",
            source,
        ),
    ]


def _surge(decision: Decision) -> list[Formula]:
    s, d = decision.surge, decision.derived
    start: Inputs = {
        "lambda": d.load_at_trigger_rps * s.surge_ratio,
        "start_occupancy": d.c_scale_max,
        "duration_s": s.duration_s,
    }
    return [
        _of("surge_shed_fraction", "time average of P(n = Q_max)", start, s.shed_fraction, "", f"{CHAIN}, PASTA"),
        _of(
            "surge_slo_attainment",
            "(1 - shed) P(first byte <= SLO | admitted)",
            start,
            s.slo_attainment,
            "",
            f"{CHAIN}, first-byte times of the ladder",
        ),
    ]


def _cost(decision: Decision, cost: Cost) -> list[Formula]:
    d = decision.derived
    price = f"list price {cost['price_region']}, {cost['price_date']}"
    return [
        _of(
            "usd_per_h_at_max",
            "price x max_instances",
            {"price_usd_per_h": cost["usd_per_instance_h"], "max_instances": d.max_instances},
            cost["usd_per_h_at_max"],
            "USD/h",
            price,
        ),
        _of(
            "usd_per_million_chars",
            "usd_per_h_at_max / (served_rps x 3600 x chars) x 10^6",
            {
                "usd_per_h_at_max": cost["usd_per_h_at_max"],
                "served_rps": cost["served_rps_at_peak"],
                "chars": cost["chars_per_request"],
            },
            cost["usd_per_million_chars"],
            "USD",
            f"{price}; characters really served at the peak",
        ),
    ]


def _of(name: str, expression: str, inputs: Inputs, value: float | int | str | None, unit: str, source: str) -> Formula:
    return Formula(name=name, expression=expression, inputs=inputs, value=value, unit=unit, source=source)


def _listed(values: tuple[int, ...]) -> str:
    return ", ".join(str(value) for value in values)
