"""`python -m planner simulate`: replay a traffic profile against scaling policies, or search for the cheapest one."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from planner.artifacts.base import write_atomically
from planner.artifacts.plan import Plan
from planner.artifacts.qmax import OpenLoop, Qmax
from planner.artifacts.simulation import Simulation
from planner.artifacts.ttotal import Ttotal
from planner.errors import ExitCode, UsageError, exit_status
from planner.simulate import contenders, profiles
from planner.simulate.compare import compare
from planner.simulate.contenders import Contest
from planner.simulate.fleet import FleetSpec
from planner.simulate.profiles import Profile
from planner.simulate.search import Limits, cheapest, grid_of, report, scheduled_actions
from planner.simulate.setup import Setup, from_measurements, from_plan
from planner.simulate.table import table
from planner.simulate.utilisation import UtilisationCurve, stated
from planner.soundness import LARGEST_FLEET

SHAPES = ("surge", "constant", "ramp", "daily")


def parser() -> argparse.ArgumentParser:
    """Every option of the verb."""
    p = argparse.ArgumentParser(prog="python -m planner simulate", description=__doc__)
    source = p.add_argument_group("endpoint")
    source.add_argument("--plan", type=Path, metavar="FILE", help="plan.json; its numbers are used as written")
    source.add_argument("--qmax", type=Path, action="append", default=[], metavar="FILE", help="the ladder (required)")
    source.add_argument("--ttotal", type=Path, action="append", default=[], metavar="FILE")
    source.add_argument("--open-loop", type=Path, action="append", default=[], metavar="FILE")
    source.add_argument("--t-total-s", type=float, help="start time of an instance; default: as measured")
    source.add_argument("--surge-ratio", type=float, help="default 1.25, or the plan's")
    source.add_argument("--allow-config-mismatch", action="store_true")
    source.add_argument("--service-cv", type=float, help="variability of one request's work; default: the ladder's")
    source.add_argument("--gpu-saturated-pct", type=float, help="GPU utilisation at full load, if not in the ladder")
    source.add_argument("--cpu-saturated-pct", type=float, help="CPU utilisation at full load, if not in the ladder")
    traffic = p.add_argument_group("traffic")
    traffic.add_argument("--profile", default="surge", help=f"{', '.join(SHAPES)} or a CSV file (default surge)")
    traffic.add_argument("--base-rps", type=float, help="surge and constant; default: --instances at their trigger")
    traffic.add_argument("--trough-rps", type=float, help="ramp and daily; default: a third of the peak")
    traffic.add_argument("--peak-rps", type=float, help="ramp and daily; default: --instances at their trigger")
    traffic.add_argument("--hold-s", type=float, default=180.0, help="before a surge, and each level of a ramp")
    traffic.add_argument("--surge-s", type=float, help="length of the surge; default: as long as the plan promises")
    traffic.add_argument("--after-s", type=float, default=300.0, help="after a surge")
    traffic.add_argument("--ramp-s", type=float, default=1800.0, help="length of a ramp's climb")
    traffic.add_argument("--duration-s", type=float, help="constant (default 3600) and daily (default 86400)")
    traffic.add_argument("--live-hold", action="store_true", help="let policies act before the surge begins too")
    traffic.add_argument("--seed", type=int, default=1)
    fleet = p.add_argument_group("fleet")
    fleet.add_argument(
        "--policies", default="", help=f"comma list of {', '.join(contenders.NAMES)}; default: all known"
    )
    fleet.add_argument("--instances", type=int, default=4, help="fleet that the default traffic puts at its trigger")
    fleet.add_argument("--min-instances", type=int, help="default: the plan's min_safe_instances")
    fleet.add_argument("--max-instances", type=int, help="without a plan of its own: default four times the peak")
    fleet.add_argument("--quota", type=int, help="account quota; a larger request is refused as a whole")
    fleet.add_argument("--routing", choices=("least_outstanding", "random"), default="least_outstanding")
    fleet.add_argument("--publish-delay-s", type=int, default=10, help="metric period's end to readable sample")
    fleet.add_argument("--idle-metric", choices=("zero", "missing"), default="zero", help="AWS does not document it")
    fleet.add_argument("--updates-overlap", action="store_true", help="a new count is accepted while Updating")
    fleet.add_argument("--kernel", choices=("auto", "exact", "batched"), default="auto")
    search = p.add_argument_group("policy search")
    search.add_argument("--optimise", choices=("cost",), help="find the cheapest target, floor and cooldown")
    search.add_argument("--max-shed", type=float, default=0.01, help="limit of the search, share of requests")
    search.add_argument("--min-attainment", type=float, default=0.95, help="limit of the search, share in SLO")
    search.add_argument("--profiles", default="surge,ramp", help="comma list the search must survive")
    out = p.add_argument_group("output")
    out.add_argument("--out", type=Path, default=Path("artifacts"))
    out.add_argument("--name", help="simulate-NAME.json; default: the profile's name")
    out.add_argument("--chart", type=Path, help="where the picture goes (.svg or .png); default beside the JSON")
    out.add_argument("--chart-policies", default="", help="comma list; default: every policy that was simulated")
    out.add_argument("--no-chart", action="store_true")
    out.add_argument("--json", action="store_true", help="print the JSON instead of the table")
    return p


def main(argv: Sequence[str] | None = None) -> int:
    """Compare policies, or search."""
    args = parser().parse_args(argv)
    _check(args)
    setup = _setup(args)
    if args.optimise:
        return search(args, setup)
    profile = shape(args, setup, args.profile)
    setup = _setup(args, profile.peak_rps)
    contest = contest_of(args, setup, profile)
    names = [name for name in args.policies.split(",") if name] or _known(contest)
    built = contenders.build(names, contest)
    runs = compare(built, profile, spec_of(args, setup, contest), setup.usd_per_h, _progress)
    result = Simulation(name=args.name or profile.name, inputs=inputs_of(args, setup, profile), runs=runs)
    path = args.out / f"simulate-{result.name}.json"
    write_atomically(path, result.model_dump_json(indent=1) + "\n")
    print(result.model_dump_json(indent=1) if args.json else f"{heading(setup, profile)}\n\n{table(runs, profile)}")
    written = [path]
    if not args.no_chart:
        from planner.simulate.chart import draw

        picture = args.chart or path.with_suffix(".svg")
        drawn = set(args.chart_policies.split(",")) if args.chart_policies else set(names)
        draw([run for run in runs if run.score.policy in drawn], profile, heading(setup, profile), picture)
        written.append(picture)
    print(f"wrote {', '.join(map(str, written))}", file=sys.stderr)
    return 0


def search(args: argparse.Namespace, setup: Setup) -> int:
    """Find the cheapest settings within the limits, print them and the cost of safety."""
    shapes = [shape(args, setup, name) for name in args.profiles.split(",")]
    setup = _setup(args, max(profile.peak_rps for profile in shapes))
    contests = [contest_of(args, setup, profile) for profile in shapes]
    specs = [spec_of(args, setup, contest) for contest in contests]
    limits = Limits(max_shed=args.max_shed, min_attainment=args.min_attainment)
    found = cheapest(contests, specs, grid_of(contests), limits, setup.usd_per_h, _progress)
    known = [contest for contest in contests if contest.profile.surge_s is None]
    result = {
        "limits": asdict(limits),
        "inputs": [inputs_of(args, setup, profile) for profile in shapes],
        **found.as_dict(),
        "scheduled_actions": {contest.profile.name: scheduled_actions(contest) for contest in known},
    }
    path = args.out / f"search-{args.name or '-'.join(profile.name for profile in shapes)}.json"
    write_atomically(path, json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1) if args.json else report(found, limits, contests))
    print(f"wrote {path}", file=sys.stderr)
    return int(ExitCode.DONE if found.best is not None else ExitCode.FACT_FAILS)


def shape(args: argparse.Namespace, setup: Setup, name: str) -> Profile:
    """The profile asked for, with defaults that put the plan's own fleet at its trigger."""
    at_trigger_rps = args.instances * setup.derived.load_at_trigger_rps
    peak_rps = args.peak_rps or at_trigger_rps
    trough_rps = peak_rps / 3 if args.trough_rps is None else args.trough_rps
    base_rps = args.base_rps or at_trigger_rps
    if name == "surge":
        surge_s = args.surge_s or math.ceil(setup.surge_s / 10) * 10
        return profiles.surge(base_rps, setup.surge_ratio, hold_s=args.hold_s, surge_s=surge_s, after_s=args.after_s)
    if name == "constant":
        return profiles.constant(base_rps, args.duration_s or 3600.0)
    if name == "ramp":
        return profiles.ramp(trough_rps, peak_rps, hold_s=args.hold_s, ramp_s=args.ramp_s)
    if name == "daily":
        return profiles.daily(trough_rps, peak_rps, args.duration_s or 86_400.0)
    if name.endswith(".csv"):
        return profiles.from_csv(Path(name))
    raise UsageError(f"unknown profile {name!r}", f"use {', '.join(SHAPES)} or the path of a .csv file")


def contest_of(args: argparse.Namespace, setup: Setup, profile: Profile) -> Contest:
    """Limits and curves every policy shares."""
    floor = int(args.min_instances or setup.derived.min_safe_instances or 1)
    needed: int = math.ceil(profile.peak_rps / min(rule.load_at_trigger_rps for rule in setup.rules.values()))
    ceiling = int(args.max_instances or max(4 * needed, floor))
    if ceiling < floor:
        raise UsageError(f"--max-instances {ceiling} is below the floor of {floor} instances", "raise it")
    if max(ceiling, needed) > 4 * LARGEST_FLEET:
        raise UsageError(f"{max(ceiling, needed)} instances: nobody simulates as many", "give a smaller load")
    return Contest(
        profile=profile,
        service=setup.service,
        t_total_s=setup.t_total_s,
        min_instances=floor,
        max_instances=ceiling,
        rules=setup.rules,
        gpu=_curve(setup, args.gpu_saturated_pct, setup.gpu),
        cpu=_curve(setup, args.cpu_saturated_pct, setup.cpu),
    )


def spec_of(args: argparse.Namespace, setup: Setup, contest: Contest) -> FleetSpec:
    """The endpoint under test; each contender brings its own starting fleet."""
    return FleetSpec(
        service=setup.service,
        slo_s=setup.slo_s,
        bound=setup.derived.queue_max_depth,
        t_total_s=setup.t_total_s,
        start_instances=contest.min_instances,
        min_instances=contest.min_instances,
        max_instances=contest.max_instances,
        quota=args.quota,
        routing=args.routing,
        publish_delay_s=args.publish_delay_s,
        idle_metric=args.idle_metric,
        updates_overlap=args.updates_overlap,
        scaling_from_s=0.0 if args.live_hold or contest.profile.surge_s is None else contest.profile.surge_s[0],
        gpu=contest.gpu,
        cpu=contest.cpu,
        kernel=args.kernel,
        seed=args.seed,
    )


def inputs_of(args: argparse.Namespace, setup: Setup, profile: Profile) -> dict[str, object]:
    """Everything the result depends on."""
    return {
        "profile": {"name": profile.name, "duration_s": profile.duration_s, "peak_rps": profile.peak_rps},
        "seed": args.seed,
        "service": setup.service.source,
        "capacity_rps": setup.service.capacity_rps,
        "slo_s": setup.slo_s,
        "surge_ratio": setup.surge_ratio,
        "t_total_s": setup.t_total_s,
        "admission_bound": setup.derived.queue_max_depth,
        "routing": args.routing,
        "publish_delay_s": args.publish_delay_s,
        "idle_metric": args.idle_metric,
        "updates_overlap": args.updates_overlap,
        "live_hold": args.live_hold,
        "usd_per_instance_h": setup.usd_per_h,
    }


def heading(setup: Setup, profile: Profile) -> str:
    """What was simulated, on one line."""
    low, high = min(profile.rates_rps), profile.peak_rps
    rates = f"{low:.1f} rps" if low == high else f"{low:.1f} to {high:.1f} rps"
    return (
        f"{profile.name}: {rates} for {profile.duration_s / 60:.0f} min; T_total {setup.t_total_s:.0f} s, "
        f"SLO {setup.slo_s:g} s, {setup.service.capacity_rps:.1f} rps an instance"
    )


def _known(contest: Contest) -> list[str]:
    missing = {name for name, curve in (("gpu", contest.gpu), ("cpu", contest.cpu)) if curve is None}
    unplanned = {"headroom", "drain"} - contest.rules.keys()
    return [name for name in contenders.NAMES if name not in missing | unplanned]


def _curve(setup: Setup, pct: float | None, ladder: UtilisationCurve | None) -> UtilisationCurve | None:
    return ladder if pct is None else stated(pct, setup.service.capacity_rps)


def _setup(args: argparse.Namespace, peak_rps: float | None = None) -> Setup:
    """As planned; without a plan file, planned here for the profile's peak, which its trigger load first decides."""
    qmaxes = [Qmax.load(path) for path in args.qmax]
    ttotals = [Ttotal.load(path) for path in args.ttotal]
    if args.plan:
        plan = Plan.load(args.plan)
        measured_s = [timing.t_total_s for timing in ttotals if timing.t_total_s is not None]
        planned_s = float(plan.inputs.get("t_total_s") or plan.surge.duration_s)
        start_s = args.t_total_s or max(measured_s, default=planned_s)
        return from_plan(plan, qmaxes, t_total_s=start_s, cv=args.service_cv)
    return from_measurements(
        qmaxes,
        ttotals,
        [OpenLoop.load(path) for path in args.open_loop],
        surge_ratio=args.surge_ratio or 1.25,
        peak_rps=peak_rps,
        min_floor=args.min_instances,
        t_total_s=args.t_total_s,
        allow_mismatch=args.allow_config_mismatch,
        cv=args.service_cv,
    )


def _check(args: argparse.Namespace) -> None:
    """Report every bad flag at once."""
    problems = [] if args.qmax else ["--qmax is missing: the ladder is the simulated instance"]
    if not args.plan and not args.ttotal and args.t_total_s is None:
        problems.append("pass --plan, or --ttotal, or --t-total-s")
    positive: list[str] = [
        "base_rps",
        "peak_rps",
        "surge_s",
        "hold_s",
        "ramp_s",
        "duration_s",
        "t_total_s",
        "instances",
    ]
    positive += ["min_instances", "max_instances", "quota", "gpu_saturated_pct", "cpu_saturated_pct", "surge_ratio"]
    for name in positive:
        value = getattr(args, name)
        if value is not None and not (math.isfinite(value) and value > 0):
            problems.append(f"--{name.replace('_', '-')} is {value}, expected a number above 0")
    if args.seed < 0:
        problems.append(f"--seed is {args.seed}, expected 0 or more")
    if args.plan and args.surge_ratio is not None:
        problems.append("--surge-ratio belongs to the plan; leave it out with --plan")
    if args.publish_delay_s < 0 or args.publish_delay_s % 10:
        problems.append(f"--publish-delay-s is {args.publish_delay_s}, expected a multiple of 10")
    if not 0 <= args.max_shed <= 1 or not 0 <= args.min_attainment <= 1:
        problems.append("--max-shed and --min-attainment are shares between 0 and 1")
    asked, drawn = (set(filter(None, text.split(","))) for text in (args.policies, args.chart_policies))
    if unknown := sorted((asked | drawn) - set(contenders.NAMES)):
        problems.append(f"unknown policies: {', '.join(unknown)}; choose from {', '.join(contenders.NAMES)}")
    if drawn and asked and not drawn <= asked:
        problems.append("--chart-policies names a policy that --policies leaves out")
    if problems:
        raise UsageError("; ".join(problems), "python -m planner simulate --help")


def _progress(name: str) -> None:
    print(f"simulating {name}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(exit_status(main))
