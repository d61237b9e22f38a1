"""`python -m planner sweep`: every combination of peaks, surges and T_total as one table, a plan a line."""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import get_args

from planner.artifacts.plan import Rule
from planner.cli import add_measurements, load_measured
from planner.cost import price_usd_per_h
from planner.decision import Ask
from planner.errors import UsageError
from planner.measured import Measured
from planner.planning import CEILING_S, attempt, check_ask


@dataclass(frozen=True)
class Row:
    """One what-if plan; the numbers are None when the rule has no answer."""

    rule: Rule
    peak_rps: float
    surge_ratio: float
    t_total_s: float
    max_instances: int | None
    trigger_utilization: float | None
    scaling_target_value: float | None
    scale_in_cooldown_s: int | None
    shed_fraction: float | None
    usd_per_h_at_max: float | None


def rows(
    measured: Measured,
    peaks_rps: Sequence[float],
    surges: Sequence[float],
    t_totals_s: Sequence[float],
    rules: Sequence[Rule],
) -> Iterator[Row]:
    """The grid, rule by rule. ``t_totals_s`` include the policy's lag."""
    price = price_usd_per_h(measured)
    for rule, t_total_s, surge, peak in itertools.product(rules, t_totals_s, surges, peaks_rps):
        what_if = replace(measured, t_total_s=t_total_s, policy_lag_s=0.0)
        ask = Ask(measured.qmax.method.slo_ms, surge, peak, None, rule)
        check_ask(what_if, ask, CEILING_S)
        yield _row(what_if, ask, price)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the grid as aligned text or JSON lines."""
    p = argparse.ArgumentParser(prog="python -m planner sweep", description=__doc__)
    add_measurements(p)
    p.add_argument("--peak-rps", type=numbers("--peak-rps"), required=True, metavar="X,Y,…")
    p.add_argument("--surge-ratio", type=numbers("--surge-ratio"), default=[1.25], metavar="X,Y,…")
    p.add_argument(
        "--t-total-s", type=numbers("--t-total-s"), metavar="X,Y,…", help="with policy lag (default: as measured)"
    )
    p.add_argument("--rule", action="append", choices=get_args(Rule), help="repeatable (default both)")
    p.add_argument("--json", action="store_true", help="one JSON object a line")
    args = p.parse_args(sys.argv[2:] if argv is None else argv)
    m = load_measured(args)
    totals = args.t_total_s or [m.surge_duration_s]
    # All of it before the first line: an error must not follow half a table.
    found = list(rows(m, args.peak_rps, args.surge_ratio, totals, args.rule or get_args(Rule)))
    for line in as_json(found) if args.json else as_text(found):
        print(line)
    return 0


def numbers(flag: str) -> Callable[[str], list[float]]:
    """What reads this flag: a comma-separated list of positive numbers."""

    def read(text: str) -> list[float]:
        try:
            values = [float(part) for part in text.split(",")]
        except ValueError:
            raise UsageError(f"{flag} {text}: not a list of numbers", "separate them with commas: 10,20,50") from None
        if not all(math.isfinite(value) and value > 0 for value in values):
            raise UsageError(f"{flag} {text}: every number must be above 0", "for example 10,20,50")
        return values

    return read


def as_json(found: Sequence[Row]) -> Iterator[str]:
    """JSON lines."""
    return (json.dumps(asdict(row)) for row in found)


def as_text(found: Sequence[Row]) -> Iterator[str]:
    """Aligned columns under a header."""
    yield "rule      peak rps  surge   T_total s  instances  trigger  target   cooldown s  shed    $/h"
    for r in found:
        if r.max_instances is None:
            yield f"{r.rule:8}  {r.peak_rps:8g}  {r.surge_ratio:5g}   {r.t_total_s:9.1f}  no trigger survives"
            continue
        target = "–" if r.scaling_target_value is None else f"{r.scaling_target_value:.2f}"
        dollars = "–" if r.usd_per_h_at_max is None else f"{r.usd_per_h_at_max:,.2f}"
        yield (
            f"{r.rule:8}  {r.peak_rps:8g}  {r.surge_ratio:5g}   {r.t_total_s:9.1f}  {r.max_instances:9d}  "
            f"{r.trigger_utilization:7.1%}  {target:>6}   {r.scale_in_cooldown_s:10d}  {r.shed_fraction:5.1%}  "
            f"{dollars}"
        )


def _row(measured: Measured, ask: Ask, price: float | None) -> Row:
    decision = attempt(measured, ask)
    d = decision.derived if decision else None
    return Row(
        rule=ask.rule,
        peak_rps=ask.peak_rps,
        surge_ratio=ask.surge_ratio,
        t_total_s=measured.t_total_s,
        max_instances=d.max_instances if d else None,
        trigger_utilization=d.utilization_at_trigger if d else None,
        scaling_target_value=d.scaling_target_value if d else None,
        scale_in_cooldown_s=d.scale_in_cooldown_s if d else None,
        shed_fraction=decision.surge.shed_fraction if decision else None,
        usd_per_h_at_max=price * d.max_instances if d and price is not None else None,
    )
