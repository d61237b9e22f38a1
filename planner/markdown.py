"""The plan as Markdown, for a pull request."""

from __future__ import annotations

from planner import show
from planner.artifacts.plan import Plan

ORIGINS = """\
Two service times differ on purpose. **{first:.1f} ms** is the p95 of the first audio byte at concurrency 1: what a
listener waits for on an idle instance, and what the published first-chunk alarm uses. **{whole:.1f} ms** is the p95 of
the whole response at concurrency 1: how long a slot is held, so W_max = SLO − S_p95 uses it."""


def markdown(plan: Plan) -> str:
    """One document with findings, numbers and alternatives."""
    p = plan.provenance
    source = "AWS" if p.aws_endpoint_url is None else f"rehearsal at {p.aws_endpoint_url}"
    parts = [
        f"# Plan for {show.title(plan)}: {plan.verdict}",
        f"{show.asked(plan)}. Endpoint `{p.endpoint}`, variant `{p.variant}`, measured on {source}; run `{p.run_id}`.",
        _note(p.note),
        "## Findings",
        _table(
            ("finding", "verdict", "detail", "recommendation"),
            [(f.name, f.verdict, f.detail, f.recommendation) for f in plan.findings],
        ),
        "## Numbers",
        _table(
            ("number", "value", "formula", "inputs", "source"),
            [(f.name, show.with_unit(f), f.expression, show.inputs(f), f.source) for f in plan.formulas],
        ),
        origins(plan),
        "## Alternatives",
        _table(
            (
                "rule",
                "sizing",
                "trigger utilisation",
                "instances",
                "shed in the surge",
                "$/h at peak",
                "$/M characters",
            ),
            _alternatives(plan),
        ),
        f"Prices: on-demand list, {plan.cost.get('price_region')}, {plan.cost.get('price_date')}.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def origins(plan: Plan) -> str:
    """Where the two service times come from and which number uses which; nothing for a plan without formulas."""
    values = {f.name: f.value for f in plan.formulas}
    if not {"first_byte_p95_at_1_ms", "service_p95_ms"} <= values.keys():
        return ""
    return ORIGINS.format(first=values["first_byte_p95_at_1_ms"], whole=values["service_p95_ms"])


def _alternatives(plan: Plan) -> list[tuple[str, ...]]:
    chosen: tuple[str, ...] = (
        f"**{plan.rule}**",
        f"**{plan.sizing}**",
        f"{plan.derived.utilization_at_trigger:.1%}",
        f"{plan.derived.min_instances}–{plan.derived.max_instances}",
        f"{plan.surge.shed_fraction:.1%}",
        show.money(plan.cost.get("usd_per_h_at_max")),
        show.money(plan.cost.get("usd_per_million_chars"), 3),
    )
    others = [
        (
            a.rule,
            a.sizing,
            f"{a.derived.utilization_at_trigger:.1%}",
            f"{a.derived.min_instances}–{a.derived.max_instances}",
            f"{a.surge.shed_fraction:.1%}",
            show.money(a.usd_per_h_at_max),
            show.money(a.usd_per_million_chars, 3),
        )
        for a in plan.alternatives
    ]
    return [chosen, *others]


def _note(note: str | None) -> str:
    return f"> {note}" if note else ""


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
