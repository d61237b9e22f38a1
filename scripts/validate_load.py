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
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from loadtest import corpus as corpora
from loadtest.flags import ACCEPT, CEILING_S
from loadtest.job import Job
from loadtest.openloop import OpenLoop, lateness_p99_ms
from loadtest.request_body import RequestBody, template
from planner.artifacts import records
from planner.artifacts.fingerprint import Fingerprint, mismatches
from planner.artifacts.plan import Plan
from planner.artifacts.qmax import Qmax
from planner.artifacts.validate import Spent, Validation
from planner.errors import ExitCode, UsageError, exit_status
from planner.pick import current
from planner.prices import usd_per_h
from scripts.aws.endpoint import LiveEndpoint, describe, fingerprint
from scripts.aws.freeze import frozen
from scripts.aws.waiting import Clock, Progress
from scripts.cli import new_run_id, parser, print_json, provenance
from scripts.guard import intent as intents
from scripts.guard import policy
from scripts.guard.intent import TERRAFORM_DIR
from scripts.loadproof.client_side import stretch
from scripts.loadproof.conduct import Budget, Conducted, Load, conduct
from scripts.loadproof.forecast import Forecast, forecast
from scripts.loadproof.judge import Judgement, Observed, judge, text
from scripts.loadproof.observe import Watch, seen
from scripts.loadproof.scenario import STRETCHES, Scenario
from scripts.scaleout.policy_lag import policy_lag

_EXIT = {"right": ExitCode.DONE, "wrong": ExitCode.FACT_FAILS, "undecided": ExitCode.UNDECIDED}
RESTORE_S = 1800.0
"""Counts and scaling are put back within this; the freeze's expiry allows for it."""
QUIET_SHARE = 0.2
"""Of the load at the scale-in threshold; low enough that a Poisson peak does not reach it."""


@dataclass(frozen=True)
class Case:
    """What is tested: the plan, its ladder, the deployment, and how it goes."""

    plan: Plan
    qmax: Qmax
    live: LiveEndpoint
    identity: Fingerprint
    scenario: Scenario
    forecast: Forecast
    alarm_names: list[str]
    budget: Budget


def main(argv: Sequence[str] | None = None) -> int:
    """Run, write the artifact, print the scores."""
    args = _flags().parse_args(argv)
    _check_flags(args)
    case = prepare(args)
    if args.dry_run:
        print(dry_run(case))
        return 0
    run_id, clock = new_run_id(), Clock()
    load = open_loop(args, case)
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
    made = artifact(args, argv, run_id, case, load, watch, conducted, started)
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
    qmax = _ladder(args, plan)
    identity = _identity(args, live, qmax)
    scenario = _scenario(args, plan)
    if scenario.instances > deployed.target.max_capacity:
        raise UsageError(
            f"--instances {scenario.instances} is above the target's maximum {deployed.target.max_capacity}",
            "fewer --instances, or a plan for a higher peak",
        )
    t_total_s = float(plan.inputs.get("t_total_s") or plan.surge.duration_s)
    lag = policy_lag(live.name, live.variant, t_total_s)
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
        budget=Budget(args.max_minutes, args.max_usd, usd_per_h(live.instance_type)),
    )


def open_loop(args: argparse.Namespace, case: Case) -> OpenLoop:
    """The ladder's workload at the scenario's times."""
    workload = case.identity.workload
    response_format = workload.response_format or ""
    if args.body_template is None and response_format not in ACCEPT:
        raise UsageError(
            f"the ladder asked for {response_format or 'an unknown format'} with a request body of its own",
            "pass the same --body-template (and --content-type) here",
        )
    body = RequestBody(workload.voice, response_format, template(args.body_template, args.content_type))
    corpus = corpora.load(args.corpus or workload.corpus)
    in_flight = case.plan.derived.queue_max_depth * case.scenario.instances
    job = Job(
        id=0,
        run=0,
        rung=0,
        users=in_flight,
        endpoint=case.live.name,
        variant=case.live.variant,
        api=case.identity.transport,
        client="lean",
        content_type=args.content_type,
        accept=ACCEPT.get(response_format, response_format),
        timeout_s=CEILING_S,
        seed=case.scenario.seed,
        bodies=[body.render(text).decode() for text in corpus.texts],
        chars=[len(text) for text in corpus.texts],
    )
    return OpenLoop(job, warm_connections=in_flight)


def artifact(
    args: argparse.Namespace,
    argv: Sequence[str] | None,
    run_id: str,
    case: Case,
    load: Load,
    watch: Watch,
    conducted: Conducted,
    started: datetime,
) -> Validation:
    """Join the client's records with what was watched, and judge."""
    scenario, qmax = case.scenario, case.qmax
    changes = seen(watch.fleet, scenario.instances, scenario.surge_begins_s, scenario.ends_s[2])
    ends_s = (0.0, *(min(end_s, conducted.lasted_s) for end_s in scenario.ends_s))
    parts = [
        stretch(
            name,
            load.records,
            load.started_ns,
            (begin_s, end_s),
            slo_ms=qmax.method.slo_ms,
            metric=qmax.method.slo_metric,
        )
        for name, begin_s, end_s in zip(STRETCHES, ends_s, ends_s[1:], strict=False)
        if end_s > begin_s
    ]
    surge_ends_s = ends_s[2]
    exposed = stretch(
        "surge until new capacity",
        load.records,
        load.started_ns,
        (scenario.surge_begins_s, min(changes.in_service_s or surge_ends_s, surge_ends_s)),
        slo_ms=qmax.method.slo_ms,
        metric=qmax.method.slo_metric,
    )
    surge = next((part for part in parts if part.name == "surge"), exposed)
    cut_short = conducted.stopped_by if conducted.lasted_s < scenario.surge_ends_s else None
    observed = Observed(
        surge=surge,
        exposed=exposed,
        detection_s=_since(changes.scaled_out_s, scenario.surge_begins_s),
        scale_out_s=_since(changes.in_service_s, changes.scaled_out_s),
        scale_in_s=_since(changes.scaled_in_s, scenario.ends_s[2]),
        surge_lasted_s=max(0.0, surge_ends_s - scenario.surge_begins_s),
        quiet_lasted_s=max(0.0, ends_s[4] - scenario.ends_s[2]) if scenario.quiet_s else 0.0,
        late_p99_ms=lateness_p99_ms(load.records),
        stopped_by=cut_short,
    )
    judged: Judgement = judge(case.forecast, observed)
    return Validation(
        provenance=provenance("validate_load", argv, run_id, args.endpoint, args.variant),
        model=args.model,
        fingerprint=case.identity,
        plan_run_id=case.plan.provenance.run_id,
        qmax_run_id=qmax.provenance.run_id,
        started_at=started,
        start_instances=scenario.instances,
        base_rps=scenario.base_rps,
        surge_ratio=scenario.surge_ratio,
        surge_s=scenario.surge_s,
        seed=scenario.seed,
        verdict=judged.verdict,
        reasons=judged.reasons,
        scores=judged.scores,
        stretches=[*parts, exposed],
        fleet=watch.fleet,
        alarms=watch.alarm_changes,
        activities=conducted.activities,
        detection_s=observed.detection_s,
        scale_out_s=observed.scale_out_s,
        client_late_p99_ms=observed.late_p99_ms,
        spent=Spent(
            minutes=conducted.lasted_s / 60,
            usd=case.budget.usd(watch.instance_s),
            stopped_by=conducted.stopped_by,
        ),
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


def summary(made: Validation, path: Path) -> str:
    """Verdict, scores, what the fleet did."""
    counts = " -> ".join(f"{p.current}/{p.desired} at {p.at_s:.0f} s" for p in made.fleet)
    reasons = "".join(f"\n  {reason}" for reason in made.reasons)
    spent = f"{made.spent.minutes:.1f} min"
    spent += "" if made.spent.usd is None else f", about {made.spent.usd:.2f} USD"
    return "\n".join(
        [
            f"the plan was {made.verdict.upper()}{reasons}" if made.verdict != "undecided" else f"UNDECIDED{reasons}",
            "",
            text(made.scores),
            "",
            f"instances (running/asked for): {counts}",
            f"spent: {spent}; wrote {path}",
        ]
    )


def dry_run(case: Case) -> str:
    """What would be sent and changed, and what is forecast."""
    s, f = case.scenario, case.forecast
    minutes = s.ends_s[-1] / 60
    usd = case.budget.usd(s.ends_s[-1] * f.simulated.peak_instances)
    cost = "unknown" if usd is None else f"at most about {usd:.2f} USD"
    return "\n".join(
        [
            f"would test the plan of run {case.plan.provenance.run_id} on {case.live.name}/{case.live.variant}:",
            f"  fleet:    {case.live.desired_instances} now, pinned to {s.instances}, put back afterwards",
            f"  load:     {s.base_rps:.1f} rps for {s.hold_s:.0f} s, x{s.surge_ratio:g} for {s.surge_s:.0f} s, "
            f"{s.base_rps:.1f} rps for {s.after_s:.0f} s"
            + (f", {s.quiet_rps:.2f} rps for {s.quiet_s:.0f} s" if s.quiet_s else ""),
            "  scaling:  suspended until the surge begins, then live",
            f"  forecast: shed {f.shed_fraction:.1%}, {f.slo_attainment:.1%} within the SLO (plan); "
            f"shed {f.simulated.surge_shed_fraction or 0:.1%} (simulator)",
            f"  cost:     {minutes:.1f} min, {cost}",
            "nothing was changed",
        ]
    )


def _scenario(args: argparse.Namespace, plan: Plan) -> Scenario:
    derived = plan.derived
    instances = args.instances or derived.min_instances
    quiet_s = args.quiet_s if args.scale_in else 0.0
    return Scenario(
        instances=instances,
        base_rps=args.base_rps or instances * derived.load_at_trigger_rps,
        surge_ratio=args.surge_ratio or plan.surge.surge_ratio,
        hold_s=args.hold_s,
        surge_s=args.surge_s or math.ceil(plan.surge.duration_s),
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


def _since(later_s: float | None, earlier_s: float | None) -> float | None:
    return None if later_s is None or earlier_s is None else round(later_s - earlier_s, 2)


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
    add("--surge-ratio", type=float, help="default: the plan's")
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
    for name in ("hold_s", "surge_s", "base_rps", "surge_ratio", "quiet_s", "max_minutes", "max_usd", "instances"):
        value = getattr(args, name)
        if value is not None and not (math.isfinite(value) and value > 0):
            faults.append(f"--{name.replace('_', '-')} {value:g}: more than 0")
    if args.after_s < 0:
        faults.append(f"--after-s {args.after_s:g}: 0 or more")
    if faults:
        raise UsageError("; ".join(faults), "fix the flags")


if __name__ == "__main__":
    sys.exit(exit_status(main))
