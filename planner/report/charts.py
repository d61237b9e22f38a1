"""What each chart of the report shows, in terms of the artifacts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from planner.artifacts.plan import Plan
from planner.artifacts.qmax import OpenLoop, Qmax
from planner.artifacts.simulation import Simulation
from planner.artifacts.ttotal import Ttotal
from planner.artifacts.validate import Validation
from planner.instance import Instance
from planner.ladder import from_artifacts, usable
from planner.queueing import mean, timeline
from planner.report.svg import Chart, Line, Part, Rule, line_chart, stacked_bar

WIDE, NARROW = 720, 372
POINTS = 160

Drawing = Callable[[int, str], str]
"""Draws itself at a width, with ids of its own."""


def ladder(qmax: Qmax) -> list[Drawing]:
    """First-byte quantiles and throughput against concurrency."""
    whole = qmax.method.slo_metric == "latency"
    what = "Whole response" if whole else "Time to first byte"
    judged = [(r, q) for r in qmax.ladder if (q := r.latency_ms if whole else r.ttfab_ms) is not None]
    valid = [(r, q) for r, q in judged if usable(r)]
    lines = []
    for style, (name, label) in enumerate((("p50", "p50"), ("p95", "p95"), ("p99", "p99")), 1):
        points = [(float(r.concurrency), value) for r, q in valid if (value := getattr(q, name)) is not None]
        if points:
            lines.append(Line(label, sorted(points), style))
    slo = qmax.method.slo_ms
    rules = [Rule(f"SLO {slo:,.0f} ms", y=slo)]
    if qmax.q_max is not None:
        rules.append(Rule(f"Q_max {qmax.q_max}", x=float(qmax.q_max)))
    words = "; ".join(f"{r.concurrency} in flight: p95 {q.p95:,.0f} ms" for r, q in valid)
    first = Chart(
        f"{what} against concurrency",
        f"{words}. SLO {slo:,.0f} ms.",
        "requests in flight",
        f"{what.lower()}, ms",
        lines,
        rules,
        crosses=[(float(r.concurrency), q.p95) for r, q in judged if r.verdict == "invalid"],
    )
    throughput = sorted((float(r.concurrency), r.achieved_rps or 0.0) for r, _ in valid)
    second = Chart(
        "Throughput against concurrency",
        "; ".join(f"{x:.0f} in flight: {y:.1f} a second" for x, y in throughput) + ".",
        "requests in flight",
        "completed a second",
        [Line("completed", throughput, 1)],
        height=200,
    )
    return [drawn(first), drawn(second)]


def stages(ttotal: Ttotal) -> list[Drawing]:
    """T_total of the slowest run, stage by stage."""
    measured = [run for run in ttotal.runs if run.t_total_s is not None and run.durations]
    if not measured:
        return []
    run = max(measured, key=lambda r: r.t_total_s or 0.0)
    parts = [Part(f"{d.start} → {d.end}", d.seconds) for d in run.durations]
    words = "; ".join(f"{part.label} {part.value:.1f} s" for part in parts)
    return [lambda width, uid: stacked_bar("T_total by stage", f"{words}.", parts, width, uid)]


def surge(plan: Plan, qmax: Qmax) -> list[Drawing]:
    """Occupancy and shedding after the trigger, under the chosen rule and under the other one."""
    instance = Instance(from_artifacts([qmax]), plan.derived.q_max, float(plan.inputs["slo_ms"]))
    cases = [(plan.rule, plan.derived.load_at_trigger_rps, plan.derived.c_scale_max)]
    other = next((a for a in plan.alternatives if a.rule != plan.rule), None)
    if other is not None:
        cases.append((other.rule, other.derived.load_at_trigger_rps, other.derived.c_scale_max))
    occupied, shed = [], []
    for style, (name, load, start) in enumerate(sorted(cases), 1):
        chain = instance.chain(load * plan.surge.surge_ratio)
        seen = timeline(chain, chain.start_at(start), plan.surge.duration_s, POINTS)
        label = f"--rule {name}"
        occupied.append(Line(label, [(t, mean(occupancy)) for t, occupancy in seen], style, mark=False))
        shed.append(Line(label, [(t, max(float(o[-1]), 0.0)) for t, o in seen], style, mark=False))
    ends = "; ".join(f"{line.label} reaches {line.points[-1][1]:.1f}" for line in occupied)
    sheds = "; ".join(f"{line.label} ends at {line.points[-1][1]:.1%}" for line in shed)
    ratio = plan.surge.surge_ratio
    return [
        drawn(
            Chart(
                f"Requests in one instance after arrivals grow x{ratio:g} at the trigger",
                f"{ends}; admission at {plan.derived.queue_max_depth}.",
                "seconds since the trigger",
                "requests present, mean",
                occupied,
                [Rule(f"admission {plan.derived.queue_max_depth}", y=float(plan.derived.queue_max_depth))],
                y_max=1.15 * plan.derived.queue_max_depth,
            )
        ),
        drawn(
            Chart(
                "Share of arrivals shed at each moment",
                f"{sheds}.",
                "seconds since the trigger",
                "shed",
                shed,
                height=220,
                percent=True,
                y_max=max(0.02, *(y for line in shed for _, y in line.points)),
            )
        ),
    ]


def open_loop(measured: OpenLoop) -> list[Drawing]:
    """What the alarm reads against what is really in flight."""
    rates = [rate for rate in measured.rates if rate.concurrency_10s_max is not None]
    if not rates:
        return []
    seen = sorted((rate.offered_rps, rate.in_flight_mean) for rate in rates)
    read = sorted((rate.offered_rps, rate.concurrency_10s_max or 0.0) for rate in rates)
    chart = Chart(
        "10 s Maximum and mean in flight against offered rate",
        "; ".join(f"{r.offered_rps:g} a second: ratio {r.metric_ratio or 0:.2f}" for r in rates) + ".",
        "offered requests a second",
        "requests",
        [Line("mean in flight", seen, 1), Line("10 s Maximum", read, 2)],
    )
    return [drawn(chart)]


def simulation(result: Simulation) -> list[Drawing]:
    """Instances in service over time, policy by policy on the same arrivals."""
    if not result.runs or not result.runs[0].timeline.end_s:
        return []
    offered = result.runs[0].timeline
    load = Chart(
        f"Offered load, {result.name}",
        f"From {min(offered.offered_rps):.1f} to {max(offered.offered_rps):.1f} requests a second.",
        "minutes",
        "requests a second",
        [Line("offered", _minutes(offered.end_s, offered.offered_rps), 1, mark=False)],
        height=190,
    )
    fleet = Chart(
        f"Instances in service, {result.name}",
        "; ".join(f"{run.score.policy} peaks at {run.score.peak_instances}" for run in result.runs) + ".",
        "minutes",
        "instances in service",
        [
            Line(run.score.policy, _minutes(run.timeline.end_s, run.timeline.in_service), style, False, stepped=True)
            for style, run in zip(_styles(), result.runs, strict=False)
        ],
    )
    return [drawn(load), drawn(fleet)]


def validation(result: Validation) -> list[Drawing]:
    """Desired and serving instances while the load was on."""
    if len(result.fleet) < 2:
        return []
    chart = Chart(
        "Instances during the live surge",
        f"From {result.start_instances} to {max(point.current for point in result.fleet)} instances.",
        "seconds since the load began",
        "instances",
        [
            Line("desired", [(p.at_s, float(p.desired)) for p in result.fleet], 2, mark=False, stepped=True),
            Line("in service", [(p.at_s, float(p.current)) for p in result.fleet], 1, mark=False, stepped=True),
        ],
        height=200,
    )
    return [drawn(chart)]


def drawn(chart: Chart) -> Drawing:
    """Ready to be drawn at any width."""
    return lambda width, uid: line_chart(chart, width, uid)


def _minutes(end_s: list[float], values: list[float] | list[int]) -> list[tuple[float, float]]:
    return [(t / 60, float(value)) for t, value in zip(end_s, values, strict=True)]


def _styles() -> Iterator[int]:
    while True:
        yield from range(1, 9)
