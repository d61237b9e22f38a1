"""`python -m planner plan`: read the measurements, compute, write plan, Markdown and tfvars, print one screen."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from planner.artifacts.base import require_writable, write_atomically
from planner.artifacts.plan import Plan
from planner.artifacts.qmax import OpenLoop, Qmax
from planner.artifacts.ttotal import Ttotal
from planner.decision import Ask
from planner.errors import ExitCode, UsageError
from planner.markdown import markdown
from planner.measured import Measured, measured
from planner.pick import current, load_all, open_loops, pair
from planner.planning import CEILING_S, make_plan
from planner.soundness import bad_number, refuse
from planner.terminal import terminal
from planner.tfvars import tfvars


def main(argv: Sequence[str] | None = None) -> int:
    """Exit 0 with a plan (warnings included), 3 when the plan says stop."""
    args = parser().parse_args(argv)
    plan = planned(args, command=["python", "-m", "planner", "plan", *(sys.argv[2:] if argv is None else argv)])
    written = write(plan, Path(args.out), Path(args.tfvars) if args.tfvars else None)
    if args.json:
        print(plan.model_dump_json(indent=2))
    else:
        colour = sys.stdout.isatty()
        print(terminal(plan, width=shutil.get_terminal_size((100, 40)).columns, colour=colour))
    print("".join(f"\nwrote {path}" for path in written).lstrip("\n"), file=sys.stderr)
    return int(ExitCode.FACT_FAILS if plan.verdict == "stop" else ExitCode.DONE)


def parser() -> argparse.ArgumentParser:
    """Every option of the verb."""
    p = argparse.ArgumentParser(prog="python -m planner plan", description=__doc__)
    add_measurements(p)
    load = p.add_argument_group("traffic (one peak; a trough of the same kind)")
    load.add_argument("--peak-rps", type=float, help="requests a second at the peak")
    load.add_argument("--trough-rps", type=float, help="requests a second at the quietest hour")
    load.add_argument("--peak-streams", type=float, help="requests in flight at the peak, each served uncontended")
    load.add_argument("--trough-streams", type=float)
    how = p.add_argument_group("rule")
    how.add_argument("--surge-ratio", type=float, default=1.25, help="surge to survive, 1 to 1.5 (default 1.25)")
    how.add_argument("--slo-ms", type=float, help="must be the SLO the ladder was judged against, which is the default")
    how.add_argument("--rule", choices=("headroom", "drain"), default="headroom")
    how.add_argument("--sizing", choices=("throughput", "published"), default="throughput")
    how.add_argument("--min-floor", type=int, default=1, help="never fewer instances than this (default 1)")
    how.add_argument("--ceiling-s", type=float, default=CEILING_S, help="longest invocation (default 60)")
    how.add_argument("--first-chunk-alarm", choices=("derived", "published"), default="derived")
    out = p.add_argument_group("output")
    out.add_argument("--out", default="artifacts", help="directory of the plan (default artifacts)")
    out.add_argument("--tfvars", help="where to write the Terraform variables (default OUT/plan.auto.tfvars)")
    out.add_argument("--json", action="store_true", help="print the plan as JSON")
    return p


def add_measurements(p: argparse.ArgumentParser) -> None:
    """The options that say which measurements to use."""
    m = p.add_argument_group("measurements (the newest pair that agrees, unless named)")
    m.add_argument("--qmax", action="append", default=[], metavar="FILE", help="repeatable: the lowest counts")
    m.add_argument("--ttotal", action="append", default=[], metavar="FILE", help="repeatable: the slowest counts")
    m.add_argument("--open-loop", action="append", default=[], metavar="FILE", help="metric ratio under real arrivals")
    m.add_argument("--model", help="model name; finds the files, and must be theirs")
    m.add_argument("--artifacts", default="artifacts", metavar="DIR", help="where to look (default artifacts)")
    m.add_argument("--assume-t-total-s", type=float, metavar="S", help="plan without a T_total measurement")
    m.add_argument("--allow-config-mismatch", action="store_true", help="pair different deployments, and record it")


def load_measured(args: argparse.Namespace) -> Measured:
    """Load or find the artifacts and join them."""
    if args.assume_t_total_s is not None:
        refuse([b for b in [bad_number("--assume-t-total-s", args.assume_t_total_s)] if b], "give seconds above 0")
    qmaxes: Sequence[Qmax] = load_all(args.qmax, Qmax)
    ttotals: Sequence[Ttotal] = load_all(args.ttotal, Ttotal)
    opened = load_all(args.open_loop, OpenLoop)
    assumed = args.assume_t_total_s is not None
    directory = Path(args.artifacts)
    if not qmaxes or not (ttotals or assumed):
        if args.model is None:
            missing = " and ".join(flag for flag, given in (("--qmax", qmaxes), ("--ttotal", ttotals)) if not given)
            raise UsageError(f"{missing} not given", "name the files, or give --model to find them in --artifacts")
        qmaxes, ttotals = _found(directory, args, qmaxes, ttotals)
    if args.model is not None and qmaxes[0].model != args.model:
        raise UsageError(f"--model {args.model}, but the ladder measured {qmaxes[0].model}", "name that model's files")
    if not opened and not args.qmax:
        opened = open_loops(directory, qmaxes[0].model, qmaxes[0])
    return measured(
        qmaxes,
        ttotals,
        opened,
        assumed_t_total_s=args.assume_t_total_s,
        allow_mismatch=args.allow_config_mismatch,
    )


def planned(args: argparse.Namespace, command: Sequence[str]) -> Plan:
    """The plan for parsed options."""
    m = load_measured(args)
    peak, trough, streams = traffic(args, m)
    ask = Ask(
        slo_ms=m.qmax.method.slo_ms if args.slo_ms is None else args.slo_ms,
        surge_ratio=args.surge_ratio,
        peak_rps=peak,
        trough_rps=trough,
        rule=args.rule,
        sizing=args.sizing,
        min_floor=args.min_floor,
        published_first_chunk_alarm=args.first_chunk_alarm == "published",
    )
    return make_plan(m, ask, command=command, now=datetime.now(UTC), ceiling_s=args.ceiling_s, extra_inputs=streams)


def traffic(args: argparse.Namespace, m: Measured) -> tuple[float, float | None, dict[str, float | None]]:
    """Rates; streams become rates by Little's law with the uncontended response time S: lambda = streams / S."""
    given = [args.peak_rps is not None, args.peak_streams is not None]
    if sum(given) != 1:
        raise UsageError("give one of --peak-rps and --peak-streams", "for example --peak-rps 10 --trough-rps 1")
    if given[0]:
        if args.trough_streams is not None:
            raise UsageError("--peak-rps goes with --trough-rps", "give both as rates, or both as streams")
        return args.peak_rps, args.trough_rps, {}
    if args.trough_rps is not None:
        raise UsageError("--peak-streams goes with --trough-streams", "give both as rates, or both as streams")
    trough = None if args.trough_streams is None else args.trough_streams / m.service_mean_s
    return (
        args.peak_streams / m.service_mean_s,
        trough,
        {"peak_streams": args.peak_streams, "trough_streams": args.trough_streams},
    )


def write(plan: Plan, out: Path, tfvars_path: Path | None) -> list[Path]:
    """Plan, Markdown and tfvars; returns what was written."""
    stem = out / f"plan-{plan.model}"
    plan_path, markdown_path = Path(f"{stem}.json"), Path(f"{stem}.md")
    variables = tfvars_path or out / "plan.auto.tfvars"
    for folder in {out, variables.parent}:
        require_writable(folder)
    plan.save(plan_path)
    write_atomically(markdown_path, markdown(plan))
    write_atomically(variables, tfvars(plan_path))
    return [plan_path, markdown_path, variables]


def _found(
    directory: Path, args: argparse.Namespace, qmaxes: Sequence[Qmax], ttotals: Sequence[Ttotal]
) -> tuple[Sequence[Qmax], Sequence[Ttotal]]:
    if args.assume_t_total_s is None:
        qmaxes, ttotals, names = pair(directory, args.model, qmaxes, ttotals, allow_mismatch=args.allow_config_mismatch)
        print(f"planning from {names[0]} and {names[1]}", file=sys.stderr)
        return qmaxes, ttotals
    found = current(directory, Qmax, args.model)
    if not found:
        raise UsageError(
            f"{directory}: no qmax-{args.model}-*.json", "`make qmax` measures one, or name it with --qmax"
        )
    print(f"planning from {found[0][0]}", file=sys.stderr)
    return [found[0][1]], []
