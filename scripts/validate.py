"""Compare the deployed policy with the plan, field by field, and check that its metric and alarms are alive.

Read-only. The live load test is scripts/validate_load.py.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path

from planner.artifacts.plan import Plan
from planner.errors import UsageError, exit_status
from scripts.aws.cloudwatch import metric
from scripts.aws.endpoint import LiveEndpoint, describe
from scripts.aws.waiting import Clock
from scripts.cli import parser, print_json
from scripts.guard import intent as intents
from scripts.guard import live as facts
from scripts.guard import policy
from scripts.guard.findings import Finding, document, exit_code, failed, text
from scripts.guard.intent import TERRAFORM_DIR
from scripts.guard.policy import METRIC, Deployed

METRIC_WINDOW_S = 900.0


def main(argv: Sequence[str] | None = None) -> int:
    """Print every field; exit 3 when one differs or nothing would ever scale."""
    args = _flags().parse_args(argv)
    live = describe(args.endpoint, args.variant)
    intent = intents.find(Path(args.artifacts), args.model, args.plan, Path(args.terraform_dir))
    if intent.plan is None:
        raise UsageError(f"no plan of {args.model} in {args.artifacts}/", "make plan, then make apply-plan")
    findings = look(live, intent.plan, Clock())
    status = "differs" if failed(findings) else "as planned"
    following = "" if failed(findings) else "make validate-load"
    if args.json:
        print_json(document(status, findings, following))
    else:
        print(f"{live.name}/{live.variant} against {intent.path}")
        print(text(findings))
        print(f"{status}; next: {following}" if following else status)
    return exit_code(findings)


def look(live: LiveEndpoint, plan: Plan, clock: Clock) -> list[Finding]:
    """Fields, then life signs."""
    deployed = policy.read(live.name, live.variant)
    return [
        *facts.against_plan(live, plan, applied=True),
        *fields(live, plan, deployed),
        *metric_alive(live, clock),
        *alarms_alive(deployed),
    ]


def fields(live: LiveEndpoint, plan: Plan, deployed: Deployed) -> Iterator[Finding]:
    """Every number as planned and as deployed."""
    for name in policy.missing(live.name, live.variant, deployed):
        yield Finding("error", name, "does not exist", "make apply-plan")
    for field in policy.compare(live.name, live.variant, plan.derived, deployed):
        if field.equal:
            yield Finding("ok", field.resource, f"{field.name} {field.deployed}")
        else:
            detail = f"{field.name} is {field.deployed}, planned {field.planned}"
            yield Finding("error", field.resource, detail, "make apply-plan")


def metric_alive(live: LiveEndpoint, clock: Clock) -> Iterator[Finding]:
    """A policy on a metric without data never fires, and nothing else says so."""
    now = clock.now()
    start = now - timedelta(seconds=METRIC_WINDOW_S)
    readings = metric(METRIC, live.name, live.variant, "Maximum", 10, start, now)
    name = f"metric {METRIC}"
    if readings:
        at, value = readings[-1]
        yield Finding("ok", name, f"{len(readings)} readings in 15 min, last {value:g} at {at:%H:%M:%SZ}")
    else:
        detail = f"no reading in 15 min for EndpointName {live.name}, VariantName {live.variant}"
        yield Finding("error", name, detail, "send a few requests and look again; check the endpoint and variant names")


def alarms_alive(deployed: Deployed) -> Iterator[Finding]:
    """Every scaling alarm has left INSUFFICIENT_DATA."""
    if deployed.scale_out is not None and not deployed.managed_alarms:
        yield Finding("error", f"policy {deployed.scale_out['PolicyName']}", "has no alarm", "make apply-plan")
    own = [deployed.scale_in_alarm] if deployed.scale_in_alarm else []
    for alarm in [*own, *deployed.managed_alarms]:
        state = alarm.get("StateValue", "unknown")
        name = f"alarm {alarm['AlarmName']}"
        if state == "INSUFFICIENT_DATA":
            fix = "send a few requests for a minute and look again"
            yield Finding("error", name, "INSUFFICIENT_DATA: it would scale nothing", fix)
        else:
            yield Finding("ok", name, state)


def _flags() -> argparse.ArgumentParser:
    flags = parser("validate", "Compare the deployed policy with the plan; changes nothing.")
    flags.add_argument("--model", required=True, help="model name in the artifacts' file names")
    flags.add_argument("--artifacts", default="artifacts", help="directory of the artifacts")
    flags.add_argument("--plan", help="plan to compare with; default: the one Terraform was given, else the newest")
    flags.add_argument("--terraform-dir", default=str(TERRAFORM_DIR), help="root module")
    flags.add_argument("--json", action="store_true", help="print the findings as JSON")
    return flags


if __name__ == "__main__":
    sys.exit(exit_status(main))
