"""The plan on one screen: the worst finding first, then every number with its formula, then the alternatives."""

from __future__ import annotations

import textwrap

from planner import show
from planner.artifacts.plan import Finding, Plan

COLOURS = {"stop": "31;1", "warn": "33;1", "ok": "32", "not_run": "2"}
LABELS = {"stop": "STOP", "warn": "WARN", "ok": "ok", "not_run": "not run"}
WIDTH_MIN, WIDTH_MAX = 80, 132
# Costs stand with the alternatives.
ELSEWHERE = {"h", "usd_per_h_at_max", "usd_per_million_chars"}


def terminal(plan: Plan, *, width: int = 100, colour: bool = False) -> str:
    """The report as text that ends without a newline."""
    width = min(max(width, WIDTH_MIN), WIDTH_MAX)
    paint = _Painter(colour)
    head = [
        f"{show.title(plan)}",
        show.asked(plan),
        f"{paint(plan.verdict)} {_headline(plan)}",
    ]
    blocks = [head, _findings(plan, width, paint), _numbers(plan, width), _alternatives(plan)]
    return "\n\n".join("\n".join(block) for block in blocks)


class _Painter:
    """Colours a verdict, or leaves it alone."""

    def __init__(self, colour: bool) -> None:
        self.colour = colour

    def __call__(self, verdict: str, width: int = 0) -> str:
        label = LABELS[verdict].ljust(width)
        return f"\x1b[{COLOURS[verdict]}m{label}\x1b[0m" if self.colour else label


def _headline(plan: Plan) -> str:
    d = plan.derived
    if plan.verdict == "stop" or not plan.feasible:
        return "Terraform refuses this plan"
    return (
        f"scale out above {show.number(d.scaling_target_value)} (10 s max), in below "
        f"{show.number(d.scale_in_threshold)} (60 s max)\n     {d.min_instances} to {d.max_instances} instances; "
        f"admit {d.queue_max_depth}; {show.money(plan.cost.get('usd_per_h_at_max'))}/h at peak"
    )


def _findings(plan: Plan, width: int, paint: _Painter) -> list[str]:
    lines: list[str] = []
    for finding in (f for f in plan.findings if f.verdict in ("stop", "warn")):
        lines += _finding(finding, width, paint)
    for verdict in ("not_run", "ok"):
        names = ", ".join(f.name for f in plan.findings if f.verdict == verdict)
        if names:
            lines += _wrapped(f"  {paint(verdict, 8)}", names, width)
    stages = next((f for f in plan.findings if f.name == "t_total_stages"), None)
    if stages is not None:
        lines += _wrapped(f"  {'T_total'.ljust(8)}", stages.detail, width)
        lines += _wrapped(" " * 10, f"→ {stages.recommendation}", width)
    return lines


def _finding(finding: Finding, width: int, paint: _Painter) -> list[str]:
    lines = _wrapped(f"  {paint(finding.verdict, 8)}", f"{finding.name}: {finding.detail}", width)
    if finding.recommendation:
        lines += _wrapped(" " * 10, f"→ {finding.recommendation}", width)
    return lines


def _wrapped(first: str, text: str, width: int) -> list[str]:
    """Wrap text behind a ten-column margin; ``first`` may hold colour codes that take no columns."""
    wrapped = textwrap.wrap(text, width - 10)
    return [f"{first}{wrapped[0]}", *(f"{' ' * 10}{line}" for line in wrapped[1:])]


def _numbers(plan: Plan, width: int) -> list[str]:
    rows = [(f.name, show.with_unit(f), f.expression) for f in plan.formulas if f.name not in ELSEWHERE]
    name = max(len(row[0]) for row in rows)
    value = max(len(row[1]) for row in rows)
    room = width - name - value - 6
    return [f"  {n.ljust(name)}  {v.rjust(value)}  {_cut(e, room)}" for n, v, e in rows]


def _alternatives(plan: Plan) -> list[str]:
    header = ("rule", "sizing", "trigger", "target", "instances", "shed in surge", "$/h at peak", "$/M chars")
    this = (
        plan.rule,
        plan.sizing,
        f"{plan.derived.utilization_at_trigger:.1%}",
        show.number(plan.derived.scaling_target_value),
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
            show.number(a.derived.scaling_target_value),
            f"{a.derived.min_instances}–{a.derived.max_instances}",
            f"{a.surge.shed_fraction:.1%}",
            show.money(a.usd_per_h_at_max),
            show.money(a.usd_per_million_chars, 3),
        )
        for a in plan.alternatives
    ]
    rows = [header, this, *others]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    marks = ["  ", "> ", *("  " for _ in others)]
    return [
        mark + "  ".join(c.ljust(w) if i < 2 else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True)))
        for mark, row in zip(marks, rows, strict=True)
    ]


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else text[: max(room - 1, 1)] + "…"
