"""The report's sections, in reading order: the answer, why, what was measured, what was tried, where it comes from."""

from __future__ import annotations

import json
from html import escape

from planner import show
from planner.artifacts.fingerprint import Fingerprint
from planner.artifacts.plan import Plan
from planner.artifacts.qmax import Qmax, Quantiles
from planner.artifacts.ttotal import Ttotal
from planner.artifacts.validate import Validation
from planner.markdown import origins
from planner.report import charts
from planner.report.collect import Evidence
from planner.report.html import badge, cards, download_link, figure, paragraph, section, table


def everything(e: Evidence) -> list[str]:
    """Every section that has something to show."""
    return [
        header(e),
        findings(e.plan) if e.plan else "",
        capacity(e.qmax) if e.qmax else "",
        delay(e.ttotal) if e.ttotal else "",
        forecast(e.plan, e.qmax) if e.plan and e.qmax and _planned_from(e.plan, e.qmax) else "",
        numbers(e.plan) if e.plan else "",
        open_loop(e),
        simulations(e),
        validation(e.validation) if e.validation else "",
        provenance(e),
    ]


def header(e: Evidence) -> str:
    """Title, verdict and the numbers an operator types."""
    title = f"<h1>Capacity report: {escape(e.model)}</h1>"
    plan = e.plan
    if plan is None:
        return title + paragraph("No plan yet: `make plan` turns the measurements below into one.", "soft")
    d = plan.derived
    items = [
        ("scale out above", show.number(d.scaling_target_value), "10 s Maximum, per instance"),
        ("scale in below", show.number(d.scale_in_threshold), "60 s Maximum, per instance"),
        ("instances", f"{d.min_instances} – {d.max_instances}", "trough to peak"),
        ("admit", f"{d.queue_max_depth}", "queued and executing; then 503"),
        (
            "in the surge",
            f"{plan.surge.shed_fraction:.1%} shed",
            f"x{plan.surge.surge_ratio:g} for {plan.surge.duration_s:.0f} s",
        ),
        ("at the peak", f"{show.money(plan.cost.get('usd_per_h_at_max'))}/h", _per_million(plan)),
    ]
    return title + f"<p>{badge(plan.verdict)} {escape(show.asked(plan))}</p>" + cards(items)


def findings(plan: Plan) -> str:
    """Worst first, as in the terminal."""
    items = "".join(
        f"<li>{badge(f.verdict)}<strong>{escape(f.name)}</strong><p>{escape(f.detail)}</p>"
        + (f'<p class="soft">→ {escape(f.recommendation)}</p>' if f.recommendation else "")
        + "</li>"
        for f in plan.findings
    )
    return section("Findings", f'<ul class="findings">{items}</ul>')


def capacity(qmax: Qmax) -> str:
    """The ladder."""
    limit = "no Q_max" if qmax.q_max is None else f"Q_max {qmax.q_max}"
    known = "bracketed by a rung that missed the SLO" if qmax.bracketed else "a lower bound"
    rows = [
        (
            r.concurrency,
            r.run,
            r.verdict,
            r.achieved_rps,
            *(_quantile(r.ttfab_ms, name) for name in ("p50", "p95", "p95_lower", "p95_upper", "p99")),
            _quantile(r.latency_ms, "p95"),
            r.ok,
            r.completed - r.ok,
            r.cloudwatch.concurrency_max if r.cloudwatch else None,
            ", ".join(r.reasons),
        )
        for r in qmax.ladder
    ]
    head = (
        "in flight", "run", "verdict", "rps", "p50 ms", "p95 ms", "p95 ≥ ms", "p95 ≤ ms", "p99 ms",
        "response p95 ms", "ok", "not ok", "10 s Maximum", "reasons",
    )  # fmt: skip
    notes = "".join(f"<li>{escape(note)}</li>" for note in qmax.notes)
    return section(
        "What one instance carries",
        paragraph(
            f"{limit}, {known}. Closed loop: N users, each with one request in flight, held {qmax.method.hold_s:g} s, "
            f"judged over the last {qmax.method.measure_window_s:g} s. Time to first byte counts audio, never headers. "
            "p95 ≥ and p95 ≤ are one-sided 95 % bounds on it."
        ),
        figure(
            charts.ladder(qmax), "First-byte quantiles with the SLO and Q_max; below, completed requests a second.", "l"
        ),
        table("The ladder, rung by rung", head, rows, "ladder.csv"),
        f"<ul>{notes}</ul>" if notes else "",
    )


def delay(ttotal: Ttotal) -> str:
    """T_total by stage."""
    if ttotal.t_total_s is None:
        return section("How long a new instance takes", paragraph(", ".join(run.outcome for run in ttotal.runs)))
    lag = ttotal.policy_lag
    extra = f" The policy may take another {lag.bound_s:.0f} s to notice ({lag.formula})." if lag else ""
    rows = [
        (run.run, d.start, d.end, d.seconds, d.share_pct)
        for run in ttotal.runs
        for d in run.durations
    ]  # fmt: skip
    return section(
        "How long a new instance takes",
        paragraph(
            f"T_total {ttotal.t_total_s:.1f} s from asking for capacity to recovered traffic, worst of "
            f"{len(ttotal.runs)} run(s).{extra}"
        ),
        figure(charts.stages(ttotal), "Stages of the slowest run. A stage nobody saw is missing, never zero.", "t"),
        table("Stages", ("run", "from", "to", "seconds", "share %"), rows, "stages.csv"),
    )


def forecast(plan: Plan, qmax: Qmax) -> str:
    """The surge at the trigger."""
    s = plan.surge
    full = (
        "the slots outlast it"
        if s.time_to_saturation_s is None
        else f"slots first full after {s.time_to_saturation_s:.1f} s"
    )
    return section(
        "The surge at the trigger",
        paragraph(
            f"Arrivals grow x{s.surge_ratio:g} the moment the fleet stands at its trigger, and no new instance serves "
            f"for {s.duration_s:.0f} s. Under --rule {plan.rule}: {s.shed_fraction:.1%} shed, {s.slo_attainment:.1%} "
            f"of all requests within the SLO, {full}. Computed exactly ({s.model}, Poisson arrivals), not simulated."
        ),
        figure(charts.surge(plan, qmax), "Expected occupancy and shedding of one instance, under both rules.", "s"),
    )


def numbers(plan: Plan) -> str:
    """Formulas and alternatives."""
    rows = [(f.name, show.with_unit(f), f.expression, show.inputs(f), f.source) for f in plan.formulas]
    chosen = (
        plan.rule,
        plan.sizing,
        plan.derived,
        plan.surge,
        plan.cost.get("usd_per_h_at_max"),
        plan.cost.get("usd_per_million_chars"),
    )
    others = [
        (a.rule, a.sizing, a.derived, a.surge, a.usd_per_h_at_max, a.usd_per_million_chars) for a in plan.alternatives
    ]
    choices = [
        (
            f"{rule}, {sizing}" + (" (this plan)" if number == 0 else ""),
            f"{d.utilization_at_trigger:.1%}",
            show.number(d.scaling_target_value),
            f"{d.min_instances}–{d.max_instances}",
            f"{surge.shed_fraction:.1%}",
            show.money(per_h),
            show.money(per_million, 3),
        )
        for number, (rule, sizing, d, surge, per_h, per_million) in enumerate([chosen, *others])
    ]
    return section(
        "Every number and its formula",
        table("Numbers", ("number", "value", "formula", "inputs", "source"), rows, "formulas.csv"),
        paragraph(text.replace("**", "")) if (text := origins(plan)) else "",
        "<h3>The other rule and sizing</h3>",
        table(
            "Alternatives",
            ("rule, sizing", "trigger", "target", "instances", "shed in surge", "$/h at peak", "$/M characters"),
            choices,
            "alternatives.csv",
        ),
        paragraph(f"Prices: on-demand list, {plan.cost.get('price_region')}, {plan.cost.get('price_date')}.", "soft"),
    )


def open_loop(e: Evidence) -> str:
    """Measured under Poisson arrivals."""
    if e.open_loop is None:
        return ""
    rows = [
        (
            r.offered_rps,
            r.achieved_rps,
            f"{r.shed_fraction:.1%}",
            _quantile(r.ttfab_ms, "p95"),
            r.in_flight_mean,
            r.concurrency_10s_max,
            r.metric_ratio,
            "client bound" if r.client_bound else "",
        )
        for r in e.open_loop.rates
    ]
    head = ("offered rps", "served rps", "shed", "p95 ms", "mean in flight", "10 s Maximum", "ratio", "note")
    return section(
        "Under real arrivals",
        paragraph(
            "Poisson arrivals, latency from the intended send time. The ratio converts thresholds to alarm units."
        ),
        figure(charts.open_loop(e.open_loop), "What the alarm reads against what is really in flight.", "o"),
        table("Open-loop rates", head, rows, "openloop.csv"),
    )


def simulations(e: Evidence) -> str:
    """Policies on the same arrivals."""
    parts = []
    for number, result in enumerate(e.simulations):
        rows = [
            (
                run.score.policy,
                run.score.setting,
                f"{run.score.slo_attainment:.2%}",
                f"{run.score.shed_fraction:.2%}",
                run.score.ttfab_p95_s,
                run.score.instance_h,
                run.score.usd,
                run.score.peak_instances,
                run.score.flaps,
            )
            for run in result.runs
        ]
        head = ("policy", "setting", "within SLO", "shed", "p95 s", "instance hours", "USD", "peak instances", "flaps")
        parts += [
            f"<h3>{escape(result.name)}</h3>",
            figure(charts.simulation(result), "The same arrivals for every policy.", f"m{number}"),
            table(f"Policies on {result.name}", head, rows, f"simulate-{result.name}.csv"),
        ]
    return section("Policies simulated on the same traffic", *parts) if parts else ""


def validation(v: Validation) -> str:
    """Forecast against observation, with scaling live."""
    scores = [(s.name, s.source, s.predicted, s.observed, s.tolerance, s.unit, s.verdict, s.detail) for s in v.scores]
    stretches = [
        (
            s.name,
            s.start_s,
            s.end_s,
            s.offered,
            _share(s.shed_fraction),
            _share(s.slo_attainment),
            _quantile(s.ttfab_ms, "p95"),
        )
        for s in v.stretches
    ]
    changes = [(a.at_s, a.description, a.status, a.cause) for a in v.activities]
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in v.reasons)
    price = "" if v.spent.usd is None else f", about ${v.spent.usd:.2f}"
    return section(
        "Plan against the live endpoint",
        f"<p>{badge(v.verdict)} the forecast, tried with {v.start_instances} instance(s) and arrivals at "
        f"{v.base_rps:.1f} a second grown x{v.surge_ratio:g} for {v.surge_s:.0f} s; "
        f"{v.spent.minutes:.1f} minutes{price}.</p>",
        f"<ul>{reasons}</ul>" if reasons else "",
        figure(charts.validation(v), "Instances while the surge was on.", "v"),
        table(
            "Forecast against observation",
            ("number", "forecast by", "predicted", "observed", "tolerance", "unit", "verdict", "detail"),
            scores,
            "validation.csv",
        ),
        table(
            "What the client saw",
            ("stretch", "from s", "to s", "offered", "shed", "within SLO", "p95 ms"),
            stretches,
            "stretches.csv",
        ),
        table("Scaling activities", ("at s", "what", "status", "cause"), changes),
    )


def provenance(e: Evidence) -> str:
    """Which run, which deployment, and the files themselves."""
    made = [a for a in (e.qmax, e.ttotal, e.plan, e.open_loop) if a is not None]
    rows = [
        (
            a.kind,
            a.provenance.run_id,
            f"{a.provenance.created_at:%Y-%m-%d %H:%M} UTC",
            a.provenance.endpoint,
            a.provenance.variant,
            a.provenance.region,
            "AWS" if a.provenance.aws_endpoint_url is None else f"rehearsal {a.provenance.aws_endpoint_url}",
            a.provenance.tool_version,
        )
        for a in made
    ]
    head = ("artifact", "run", "made", "endpoint", "variant", "region", "measured on", "version")
    notes = "".join(
        f"<p>{escape(note)}</p>" for note in dict.fromkeys(a.provenance.note for a in made if a.provenance.note)
    )
    prints = next((a.fingerprint for a in made if a.fingerprint is not None), None)
    files = "".join(
        f"<li>{download_link(path.name, path.read_text(encoding='utf-8'), 'application/json', path.name)}</li>"
        for path in e.files
    )
    return section(
        "Where this comes from",
        table("Runs", head, rows, "runs.csv"),
        notes,
        "<h3>Fingerprint</h3>" + table("What was measured", ("field", "value"), _leaves(prints)) if prints else "",
        f"<h3>Files</h3><ul>{files}</ul>",
    )


def _planned_from(plan: Plan, qmax: Qmax) -> bool:
    """False when the ladder was measured again after the plan: its forecast would mix the two."""
    return qmax.provenance.run_id in plan.inputs.get("qmax_runs", []) and "slo_ms" in plan.inputs


def _leaves(fingerprint: Fingerprint) -> list[tuple[str, str]]:
    fields = fingerprint.model_dump()
    workload = fields.pop("workload")
    flat = {**fields, **{f"workload.{name}": value for name, value in workload.items()}}
    return [(name, "not recorded" if value is None else _plain(value)) for name, value in flat.items()]


def _plain(value: object) -> str:
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def _share(value: float | None) -> str | None:
    return None if value is None else f"{value:.1%}"


def _quantile(quantiles: Quantiles | None, name: str) -> float | None:
    found: float | None = getattr(quantiles, name) if quantiles else None
    return found


def _per_million(plan: Plan) -> str:
    return f"{show.money(plan.cost.get('usd_per_million_chars'), 3)} per million characters"
