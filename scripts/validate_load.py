"""Replay the surge the plan promises to survive, with autoscaling live, and score the plan's forecast.

Holds the fleet at the plan's trigger load with scaling suspended, lets scaling go as the surge begins, watches counts,
alarms and activities, and puts everything back. Exit 0: the plan was right; 3: it was wrong; 4: undecided.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from collections.abc import Sequence
from pathlib import Path

from planner.artifacts import records
from planner.artifacts.base import require_writable
from planner.artifacts.fingerprint import Fingerprint, mismatches
from planner.artifacts.plan import Plan
from planner.artifacts.qmax import Qmax
from planner.artifacts.validate import Validation
from planner.errors import ExitCode, UsageError, exit_status
from planner.pick import current
from planner.prices import usd_per_h
from scripts.aws import preflight
from scripts.aws.endpoint import LiveEndpoint, describe, fingerprint
from scripts.aws.freeze import frozen
from scripts.aws.waiting import Clock, Progress
from scripts.cli import new_run_id, parser, print_json, provenance
from scripts.guard import intent as intents
from scripts.guard import policy
from scripts.guard.intent import TERRAFORM_DIR
from scripts.loadproof.case import Case
from scripts.loadproof.conduct import Budget, Load, conduct
from scripts.loadproof.forecast import forecast
from scripts.loadproof.observe import Watch
from scripts.loadproof.result import validation
from scripts.loadproof.scenario import Scenario
from scripts.loadproof.show import dry_run, summary
from scripts.loadproof.workload import open_loop
from scripts.scaleout.policy_lag import policy_lag

_EXIT = {"right": ExitCode.DONE, "wrong": ExitCode.FACT_FAILS, "undecided": ExitCode.UNDECIDED}
RESTORE_S = 1800.0
"""Counts and scaling are put back within this; the freeze's expiry allows for it."""
QUIET_SHARE = 0.03
"""Of one instance's trigger load; low enough that a drain threshold of 1.5 is not reached for three minutes by two."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run, write the artifact, print the scores."""
    args = _flags().parse_args(argv)
    _check_flags(args)
    case = prepare(args)
    if args.dry_run:
        print(dry_run(case))
        return 0
    require_writable(Path(args.artifacts))
    run_id, clock = new_run_id(), Clock()
    extra = max(0, case.forecast.simulated.peak_instances - case.live.current_instances)
    preflight.require(preflight.run(case.live, extra_instances=extra, force=args.force, clock=clock))
    load = open_loop(case, corpus=args.corpus, body_template=args.body_template, content_type=args.content_type)
    scenario = case.scenario
    ttl_s = scenario.ends_s[-1] + RESTORE_S
    progress = Progress(clock)
    with frozen(
        case.live,
        run_id=run_id,
        pin_instances=scenario.instances,
        force=args.force,
        ttl_s=ttl_s,
        clock=clock,
        progress=progress,
    ) as held:
        started = clock.now()
        watch, conducted = conduct(
            held,
            load,
            scenario,
            case.budget,
            case.alarm_names,
            lambda at: Watch(case.live, at, clock, case.alarm_names),
        )
    origin = provenance("validate_load", argv, run_id, args.endpoint, args.variant)
    made = validation(case, load, watch, conducted, provenance=origin, started=started)
    path = save(args, made, load)
    if args.json:
        print_json(made.model_dump(mode="json"))
    else:
        print(summary(made, path))
    return int(_EXIT[made.verdict])


def prepare(args: argparse.Namespace) -> Case:
    """Everything that can be refused, before anything is changed."""
    live = describe(args.endpoint, args.variant)
    intent = intents.find(Path(args.artifacts), args.model, args.plan, Path(args.terraform_dir))
    if intent.plan is None:
        raise UsageError(f"no plan of {args.model} in {args.artifacts}/", "make plan, then make apply-plan")
    plan = intent.plan
    deployed = policy.read(live.name, live.variant)
    absent = policy.missing(live.name, live.variant, deployed)
    if absent:
        raise UsageError(f"autoscaling is not live: no {', no '.join(absent)}", "make apply-plan")
    assert deployed.target is not None
    price = usd_per_h(live.instance_type)
    if args.max_usd is not None and price is None:
        raise UsageError(f"--max-usd: no list price for {live.instance_type}", "use --max-minutes")
    qmax = _ladder(args, plan)
    identity = _identity(args, live, qmax)
    t_total_s = float(plan.inputs.get("t_total_s") or plan.surge.duration_s)
    lag = policy_lag(live.name, live.variant, t_total_s)
    scenario = _scenario(args, plan, lag.bound_s + t_total_s)
    if scenario.instances > deployed.target.max_capacity:
        raise UsageError(
            f"--instances {scenario.instances} is above the target's maximum {deployed.target.max_capacity}",
            "fewer --instances, or a plan for a higher peak",
        )
    names = [str(alarm["AlarmName"]) for alarm in deployed.managed_alarms]
    names += [str(deployed.scale_in_alarm["AlarmName"])] if deployed.scale_in_alarm else []
    return Case(
        plan=plan,
        qmax=qmax,
        live=live,
        identity=identity,
        scenario=scenario,
        forecast=forecast(plan, qmax, scenario, detection_bound_s=lag.bound_s, t_total_s=t_total_s),
        alarm_names=names,
        budget=Budget(args.max_minutes, args.max_usd, price),
    )


def save(args: argparse.Namespace, made: Validation, load: Load) -> Path:
    """Records beside the artifact."""
    out = Path(args.artifacts)
    raw, path = out / f"validate-{args.model}.requests.jsonl", out / f"validate-{args.model}.json"
    raw.unlink(missing_ok=True)
    records.write(raw, [load.anchor, *load.records])
    digest = hashlib.sha256(raw.read_bytes()).hexdigest()
    made.model_copy(update={"records_file": raw.name, "records_sha256": digest}).save(path)
    return path


def _scenario(args: argparse.Namespace, plan: Plan, detected_and_started_s: float) -> Scenario:
    derived = plan.derived
    instances = args.instances or derived.min_instances
    quiet_s = args.quiet_s if args.scale_in else 0.0
    return Scenario(
        instances=instances,
        base_rps=args.base_rps or instances * derived.load_at_trigger_rps,
        surge_ratio=plan.surge.surge_ratio,
        hold_s=args.hold_s,
        surge_s=args.surge_s or math.ceil(max(plan.surge.duration_s, detected_and_started_s)),
        after_s=args.after_s,
        quiet_s=quiet_s,
        quiet_rps=QUIET_SHARE * derived.load_at_trigger_rps if quiet_s else 0.0,
        seed=args.seed,
    )


def _ladder(args: argparse.Namespace, plan: Plan) -> Qmax:
    if args.qmax:
        return Qmax.load(args.qmax)
    wanted = plan.inputs.get("qmax_runs") or []
    found = current(Path(args.artifacts), Qmax, args.model)
    for _, qmax in found:
        if qmax.provenance.run_id in wanted:
            return qmax
    raise UsageError(
        f"{args.artifacts}: none of the ladders the plan was made from ({', '.join(wanted) or 'unnamed'})",
        "name it with --qmax",
    )


def _identity(args: argparse.Namespace, live: LiveEndpoint, qmax: Qmax) -> Fingerprint:
    measured = qmax.fingerprint
    if measured is None:
        raise UsageError("the ladder has no fingerprint", "measure Q_max again (make qmax)")
    actual = fingerprint(live, measured.workload, measured.transport)
    different = mismatches(measured, actual)
    if different and not args.allow_config_mismatch:
        listed = "; ".join(str(item) for item in different)
        raise UsageError(
            f"the plan was measured on another deployment: {listed}",
            "measure and plan again, or pass --allow-config-mismatch",
        )
    if measured.transport == "bidi":
        raise UsageError("the open loop does not speak bidi", "measure with --transport response-stream or invoke")
    return actual


def _flags() -> argparse.ArgumentParser:
    flags = parser("validate_load", "Replay the surge the plan promises to survive and score its forecast.")
    add = flags.add_argument
    add("--model", required=True, help="model name in the artifacts' file names")
    add("--artifacts", default="artifacts", help="directory of the artifacts")
    add("--plan", help="plan to test; default: the one Terraform was given, else the newest")
    add("--qmax", help="the ladder the plan was made from; default: found by its run id")
    add("--terraform-dir", default=str(TERRAFORM_DIR), help="root module")
    add("--instances", type=int, help="fleet at the start; default: the plan's minimum")
    add("--base-rps", type=float, help="load before the surge; default: the fleet at the plan's trigger")
    add("--hold-s", type=float, default=60, help="settle at the trigger this long")
    add("--surge-s", type=float, help="length of the surge; default: what the plan promises to survive")
    add("--after-s", type=float, default=30, help="back at the base load this long")
    add("--scale-in", action="store_true", help="then go quiet and wait for a scale-in")
    add("--quiet-s", type=float, default=360, help="how long, with --scale-in")
    add("--seed", type=int, default=1, help="of the arrivals")
    add("--max-minutes", type=float, default=30, help="stop after this long")
    add("--max-usd", type=float, help="stop when the instances have cost this much (list price)")
    add("--corpus", help="corpus file, if it is no longer where the ladder read it")
    add("--body-template", help="the ladder's --body-template, if it had one")
    add("--content-type", default="application/json", help="content type of the request")
    add("--force", action="store_true", help="even with foreign traffic or more instances than at the start")
    add("--allow-config-mismatch", action="store_true", help="test a plan that was measured on another deployment")
    add("--dry-run", action="store_true", help="say what would happen; change nothing")
    add("--json", action="store_true", help="print the artifact on stdout")
    return flags


def _check_flags(args: argparse.Namespace) -> None:
    faults = []
    for name in ("hold_s", "surge_s", "base_rps", "quiet_s", "max_minutes", "max_usd", "instances"):
        value = getattr(args, name)
        if value is not None and not (math.isfinite(value) and value > 0):
            faults.append(f"--{name.replace('_', '-')} {value:g}: more than 0")
    if args.seed < 0:
        faults.append(f"--seed {args.seed}: 0 or more")
    if args.after_s < 0:
        faults.append(f"--after-s {args.after_s:g}: 0 or more")
    if faults:
        raise UsageError("; ".join(faults), "give each the range named, or leave it out")


if __name__ == "__main__":
    sys.exit(exit_status(main))
