"""Measure T_total by stage: force one scale-out and time it until traffic is well again.

Needs a Q_max artifact of the same deployment and workload, with the rungs N, N/2 and 1 unless the probe measures its
own reference (--reference probe). Suspends scaling, pins the fleet
to one instance, probes at N, asks for one instance more, watches, and puts everything back.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from loadtest import corpus as corpora
from loadtest.corpus import Corpus
from loadtest.publish import stem
from planner.artifacts import records
from planner.artifacts.base import require_writable
from planner.artifacts.fingerprint import Fingerprint, Transport, mismatches
from planner.artifacts.qmax import Qmax, Quantiles
from planner.artifacts.ttotal import RunOutcome, Ttotal, TtotalRun
from planner.errors import ExitCode, UsageError, exit_status
from planner.prices import PRICE_DATE, usd_per_h
from scripts.aws import preflight
from scripts.aws.endpoint import LiveEndpoint, describe, fingerprint
from scripts.aws.freeze import Frozen, frozen
from scripts.aws.scaling import read_target
from scripts.aws.waiting import Clock, Progress
from scripts.cli import new_run_id, parser, print_json, provenance
from scripts.scaleout.chart import draw
from scripts.scaleout.metric_scope import scope
from scripts.scaleout.policy_lag import policy_lag
from scripts.scaleout.probe import Probe, closed_loop
from scripts.scaleout.run import ScaleOut, Settings
from scripts.scaleout.summary import text_summary

# Freezing, pinning and restoring around the runs.
OVERHEAD_S = 900.0
_EXIT: dict[RunOutcome, ExitCode] = {
    "measured": ExitCode.DONE,
    "no_capacity": ExitCode.AWS,
    "quota": ExitCode.AWS,
    "rollback": ExitCode.FACT_FAILS,
    "unhealthy": ExitCode.FACT_FAILS,
    "not_recovered": ExitCode.FACT_FAILS,
    "timeout": ExitCode.UNDECIDED,
}


@dataclass(frozen=True)
class Baseline:
    """What the ladder says about this deployment."""

    qmax: Qmax
    path: Path
    corpus: Corpus
    fingerprint: Fingerprint
    target_p95_ms: float | None
    """None when the probe measures its own reference."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, write the artifact and the chart, say what was found."""
    args = _flags().parse_args(argv)
    _check_flags(args)
    live = describe(args.endpoint, args.variant)
    baseline = find_baseline(args, live)
    probe = closed_loop(
        live,
        baseline.corpus,
        baseline.fingerprint,
        args.probe_concurrency,
        args.repeat,
        body_template=args.body_template,
        content_type=args.content_type,
    )
    if args.dry_run:
        print(dry_run(args, live, baseline))
        return 0
    require_writable(Path(args.out))
    run_id = new_run_id()
    clock = Clock()
    extra = max(0, 2 - live.current_instances)
    checks = preflight.run(live, extra_instances=extra, force=args.force, clock=clock)
    preflight.require(checks)
    runs = measure(args, live, baseline, probe, run_id, clock)
    made = artifact(args, argv, run_id, baseline, runs)
    path = save(args, made, probe)
    if args.json:
        print_json(made.model_dump(mode="json"))
    else:
        print(text_summary(made, path))
    return int(max((_EXIT[run.outcome] for run in runs), key=int))


def measure(
    args: argparse.Namespace, live: LiveEndpoint, baseline: Baseline, probe: Probe, run_id: str, clock: Clock
) -> list[TtotalRun]:
    """Every repeat inside one freeze; the first failure ends the series."""
    settings = Settings(
        concurrency=args.probe_concurrency,
        metric=baseline.qmax.method.slo_metric,
        target_p95_ms=baseline.target_p95_ms,
        factor=args.recovered_factor,
        baseline_s=args.baseline_s,
        hold_s=args.hold_s,
        poll_s=args.poll_s,
        max_wait_s=args.max_wait_s,
        metric_wait_s=args.metric_wait_s,
    )
    ttl_s = args.repeat * (_before_s(args) + args.max_wait_s) + OVERHEAD_S
    runs: list[TtotalRun] = []
    progress = Progress(clock)
    with frozen(live, run_id=run_id, force=args.force, ttl_s=ttl_s, clock=clock, progress=progress) as held:
        for number in range(args.repeat):
            if number:
                _back_to_one(held, runs[0].from_instances)
            runs.append(ScaleOut(held, probe, settings, number).measure())
            if runs[-1].outcome != "measured":
                break
    return runs


def _before_s(args: argparse.Namespace) -> float:
    """Seconds of probing before the scale-out."""
    return float(args.baseline_s * (2 if args.reference == "probe" else 1))


def _back_to_one(held: Frozen, instances: int) -> None:
    held.progress.note(f"back to {instances} instances for the next run")
    held.set_count(instances)


def find_baseline(args: argparse.Namespace, live: LiveEndpoint) -> Baseline:
    """The ladder's artifact, refused with every reason at once if it does not fit this deployment or lacks rungs."""
    path = Path(args.qmax) if args.qmax else _newest(args, live)
    qmax = Qmax.load(path)
    measured = qmax.fingerprint
    if measured is None:
        raise UsageError(f"{path}: has no fingerprint", "measure Q_max again (make qmax)")
    if args.transport not in (None, measured.transport):
        raise UsageError(
            f"{path} was measured over {measured.transport}, not over {args.transport}",
            f"make qmax ARGS='--transport {args.transport}', or leave --transport out",
        )
    before = measured.workload
    # The deployment first: the texts of a ladder from elsewhere may not even be here.
    _require_same(args, path, measured, fingerprint(live, before, measured.transport))
    if before.seed is None or before.response_format is None:
        raise UsageError(f"{path}: its workload is not fully known", "measure Q_max here (make qmax)")
    corpus = corpora.load(args.corpus or before.corpus)
    workload = corpus.workload(seed=before.seed, response_format=before.response_format, voice=before.voice)
    actual = fingerprint(live, workload, measured.transport)
    _require_same(args, path, measured, actual)
    target_ms = _target_ms(args, qmax, path) if args.reference == "ladder" else None
    return Baseline(qmax, path, corpus, actual, target_ms)


def _require_same(args: argparse.Namespace, path: Path, measured: Fingerprint, actual: Fingerprint) -> None:
    different = mismatches(measured, actual)
    if different and not args.allow_config_mismatch:
        listed = "; ".join(str(item) for item in different)
        raise UsageError(
            f"{path} was measured on another deployment or workload: {listed}",
            "measure Q_max again (make qmax), or pass --allow-config-mismatch",
        )


def _newest(args: argparse.Namespace, live: LiveEndpoint) -> Path:
    over = f"{args.transport}-" if args.transport else ""
    found = sorted(Path(args.out).glob(f"qmax-{args.model}-{over}*.json"), key=lambda path: path.stat().st_mtime)
    if not found:
        chosen = args.transport
        wanted, flag = (f" over {chosen}", f" ARGS='--transport {chosen}'") if chosen else ("", "")
        raise UsageError(
            f"no Q_max artifact of {args.model}{wanted} in {args.out}/ for endpoint {live.name}",
            f"make qmax{flag} first, or name one with --qmax",
        )
    return found[-1]


def _target_ms(args: argparse.Namespace, qmax: Qmax, path: Path) -> float:
    metric, concurrency = qmax.method.slo_metric, args.probe_concurrency
    by_concurrency: dict[int, Quantiles] = {}
    for rung in qmax.ladder:
        found = rung.ttfab_ms if metric == "ttfab" else rung.latency_ms
        if found is not None and rung.verdict != "invalid":
            by_concurrency[rung.concurrency] = found
    missing = [rung for rung in (1, concurrency // 2, concurrency) if rung not in by_concurrency]
    if missing:
        usable = [n for n in sorted(by_concurrency) if n > 1 and n % 2 == 0 and n // 2 in by_concurrency]
        choice = f" or pass --probe-concurrency {usable[-1]}" if usable and 1 in by_concurrency else ""
        rungs = ",".join(str(n) for n in sorted({1, concurrency // 2, concurrency, *by_concurrency}))
        raise UsageError(
            f"{path} has no usable rung {', '.join(map(str, missing))}; a probe at {concurrency} needs "
            f"1, {concurrency // 2} and {concurrency}",
            f"make qmax ARGS='--rungs {rungs}'{choice} or --reference probe",
        )
    return float(args.recovered_factor * by_concurrency[concurrency // 2].p95)


def artifact(
    args: argparse.Namespace, argv: Sequence[str] | None, run_id: str, baseline: Baseline, runs: list[TtotalRun]
) -> Ttotal:
    """The worst measured run decides; the spread is shown."""
    measured = [run.t_total_s for run in runs if run.t_total_s is not None]
    whole = len(measured) == len(runs)
    t_total_s = max(measured) if whole else None
    spread = 100 * (max(measured) - min(measured)) / min(measured) if whole and len(measured) > 1 else None
    readings = [reading for run in runs for reading in run.concurrency_metric_readings]
    return Ttotal(
        provenance=provenance("ttotal", argv, run_id, args.endpoint, args.variant),
        model=args.model,
        fingerprint=baseline.fingerprint,
        qmax_run_id=baseline.qmax.provenance.run_id,
        probe_concurrency=args.probe_concurrency,
        recovered_reference=args.reference,
        recovered_factor=args.recovered_factor,
        t_total_s=t_total_s,
        spread_pct=spread,
        policy_lag=policy_lag(args.endpoint, args.variant, t_total_s),
        metric_scope=scope(readings, args.probe_concurrency, 2),
        runs=runs,
    )


def save(args: argparse.Namespace, made: Ttotal, probe: Probe) -> Path:
    """Records, artifact and chart; a failed series never takes the place of a measured one."""
    assert made.fingerprint is not None
    name = stem("ttotal", args.model, made.fingerprint)
    if made.t_total_s is None:
        name = f"failed-{name}-{made.provenance.run_id}"
    out = Path(args.out)
    raw = out / f"{name}.requests.jsonl"
    path = out / f"{name}.json"
    raw.unlink(missing_ok=True)
    records.write(raw, [probe.anchor, *probe.records])
    digest = hashlib.sha256(raw.read_bytes()).hexdigest()
    made = made.model_copy(update={"records_file": raw.name, "records_sha256": digest})
    made.save(path)
    if any(run.durations for run in made.runs):
        draw(made, path.with_suffix(""))
    return path


def dry_run(args: argparse.Namespace, live: LiveEndpoint, baseline: Baseline) -> str:
    """What would be changed, for how long, and what that costs."""
    target = read_target(live.name, live.variant)
    typical_s = _before_s(args) + 260 + args.hold_s
    each_max_s = _before_s(args) + args.max_wait_s
    price = usd_per_h(live.instance_type)
    cost = (
        f"at most {args.repeat * each_max_s / 3600 * price:.2f} USD for the second instance "
        f"({price} USD/h, list price of {PRICE_DATE})"
        if price is not None
        else f"unknown: no price for {live.instance_type}"
    )
    suspend = (
        f"suspend scaling (suspended now: {target.suspended}), put back afterwards"
        if target
        else "nothing (no scalable target is registered)"
    )
    target_ms = baseline.target_p95_ms
    half = args.probe_concurrency // 2
    recovered = f"{target_ms:.0f} ms" if target_ms is not None else f"{args.recovered_factor:g} x that of {half} users"
    return "\n".join(
        [
            f"would measure {live.name}/{live.variant} ({live.instance_type}) against {baseline.path}:",
            f"  scaling:   {suspend}",
            f"  instances: {live.desired_instances} now, pinned to 1, {args.repeat} x (1 -> 2 -> 1), "
            f"then {live.desired_instances} again",
            f"  load:      {args.probe_concurrency} requests in flight throughout",
            f"  recovered: p95 at or under {recovered}, held {args.hold_s:.0f} s",
            f"  time:      about {args.repeat * typical_s / 60:.0f} min, at most {args.repeat * each_max_s / 60:.0f}",
            f"  cost:      {cost}",
            "nothing was changed",
        ]
    )


def _flags() -> argparse.ArgumentParser:
    flags = parser("ttotal", "Measure T_total, stage by stage, with one forced scale-out.")
    flags.add_argument("--model", required=True, help="model name in the artifacts' file names")
    flags.add_argument("--out", default="artifacts", help="directory of the artifacts")
    flags.add_argument("--qmax", help="Q_max artifact; the newest of the model in --out if left out")
    flags.add_argument("--transport", choices=get_args(Transport), help="that of the Q_max artifact if left out")
    flags.add_argument("--corpus", help="corpus file, if it is no longer where the ladder read it")
    flags.add_argument("--body-template", help="the ladder's --body-template, if it had one")
    flags.add_argument("--content-type", default="application/json", help="content type of the request")
    flags.add_argument("--probe-concurrency", type=int, default=10, help="requests in flight (N), even")
    flags.add_argument(
        "--reference",
        choices=("ladder", "probe"),
        default="ladder",
        help="p95 at N/2 that recovery is judged by: the ladder's, or one the probe measures just before",
    )
    flags.add_argument("--recovered-factor", type=float, default=1.25, help="recovered: p95 <= this x the reference")
    flags.add_argument("--repeat", type=int, default=1, help="scale-outs; the worst one counts")
    flags.add_argument("--max-wait-s", type=float, default=1800, help="give up on a scale-out after this")
    flags.add_argument("--baseline-s", type=float, default=30, help="probe this long before the scale-out")
    flags.add_argument("--hold-s", type=float, default=60, help="recovered means this long under the target")
    flags.add_argument("--poll-s", type=float, default=2, help="between looks at SageMaker and the logs")
    flags.add_argument("--metric-wait-s", type=float, default=60, help="wait this long for CloudWatch afterwards")
    flags.add_argument("--force", action="store_true", help="even with foreign traffic or several instances")
    flags.add_argument("--allow-config-mismatch", action="store_true", help="accept a Q_max of another deployment")
    flags.add_argument("--dry-run", action="store_true", help="say what would happen; change nothing")
    flags.add_argument("--json", action="store_true", help="print the artifact on stdout")
    return flags


def _check_flags(args: argparse.Namespace) -> None:
    faults = []
    if args.probe_concurrency < 2 or args.probe_concurrency % 2:
        faults.append(f"--probe-concurrency {args.probe_concurrency}: an even number from 2 on, N/2 must be a rung")
    if not 1 <= args.recovered_factor < 2:
        faults.append(f"--recovered-factor {args.recovered_factor:g}: from 1 to under 2, what twice the capacity gives")
    if args.repeat < 1:
        faults.append(f"--repeat {args.repeat}: at least 1")
    for name in ("max_wait_s", "baseline_s", "hold_s", "poll_s"):
        if not 0 < getattr(args, name) < math.inf:
            faults.append(f"--{name.replace('_', '-')} {getattr(args, name):g}: more than 0")
    if args.poll_s > args.max_wait_s:
        faults.append(f"--poll-s {args.poll_s:g} is longer than --max-wait-s {args.max_wait_s:g}")
    if faults:
        raise UsageError("; ".join(faults), "give each the range named, or leave it out")


if __name__ == "__main__":
    sys.exit(exit_status(main))
