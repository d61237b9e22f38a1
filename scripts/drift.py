"""Compare what is live with what was intended; changes nothing.

A clean account ends with ``preflight-ok`` and the next command to run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from planner.errors import exit_status
from scripts import terraform
from scripts.aws.endpoint import LiveEndpoint, describe
from scripts.aws.scaling import resource_id
from scripts.aws.waiting import Clock
from scripts.cli import parser, print_json
from scripts.deployment import settings
from scripts.guard import intent as intents
from scripts.guard import live as facts
from scripts.guard import policy
from scripts.guard.findings import Finding, document, exit_code, failed, text
from scripts.guard.intent import TERRAFORM_DIR, Intent
from scripts.guard.policy import Deployed

OK = "preflight-ok"


def main(argv: Sequence[str] | None = None) -> int:
    """Print every finding; exit 3 when one is an error."""
    args = _flags().parse_args(argv)
    live = describe(args.endpoint, args.variant)
    intent = intents.find(Path(args.artifacts), args.model, args.plan, Path(args.terraform_dir))
    directory = Path(args.terraform_dir)
    outputs = terraform.peek_outputs(directory)
    findings = [*look(live, intent, Clock()), *facts.against_terraform(live, settings.load(directory), outputs)]
    if intent.plan is not None:
        findings += facts.unmanaged_target(live, policy.read(live.name, live.variant).target, outputs)
    status = "drift" if failed(findings) else OK
    following = "" if failed(findings) else next_command(Path(args.artifacts), args.model, live, intent)
    if args.json:
        print_json(document(status, findings, following))
    else:
        print(text(findings))
        print(f"{status}; next: {following}" if following else status)
    return exit_code(findings)


def look(live: LiveEndpoint, intent: Intent, clock: Clock) -> list[Finding]:
    """Every finding, in the order a person would check."""
    deployed = policy.read(live.name, live.variant)
    return [
        *facts.endpoint(live),
        *facts.freeze(live, deployed.target, clock),
        *facts.bounds(live, deployed.target),
        *autoscaling(live, intent, deployed),
        *alarm_states(deployed),
        *facts.orphans(live),
    ]


def autoscaling(live: LiveEndpoint, intent: Intent, deployed: Deployed) -> Iterator[Finding]:
    """The plan against what scales the variant."""
    target = f"target {resource_id(live.name, live.variant)}"
    for name in deployed.others:
        yield Finding("warn", f"policy {name}", f"also scales {live.name}, and we did not create it")
    absent = policy.missing(live.name, live.variant, deployed)
    exists = len(absent) < 4
    if intent.plan is None or not (intent.handed_to_terraform or exists):
        if exists:
            found = resource_id(live.name, live.variant)
            fix = f"{facts.deregister(found)}; or keep it: {facts.import_target(found)}"
            yield Finding("error", target, "scales the endpoint, but no plan asked for it (left over)", fix)
        elif intent.plan is not None:
            yield Finding(
                "info", f"plan {intent.path}", "not applied yet: no autoscaling is deployed", "make apply-plan"
            )
        else:
            yield Finding("ok", target, "no autoscaling, and none was planned")
        if intent.plan is not None:
            yield from facts.against_plan(live, intent.plan, applied=exists)
        return
    yield from facts.against_plan(live, intent.plan, applied=exists)
    if not exists:
        yield Finding("warn", f"plan {intent.path}", "handed to Terraform but not applied", "make apply-plan")
        return
    for name in absent:
        yield Finding("error", name, "does not exist", "make apply-plan")
    differing = [f for f in policy.compare(live.name, live.variant, intent.plan.derived, deployed) if not f.equal]
    for field in differing:
        yield Finding(
            "error", field.resource, f"{field.name} is {field.deployed}, planned {field.planned}", "make apply-plan"
        )
    if not absent and not differing:
        yield Finding("ok", target, f"target, policies and alarm are as in {intent.path}")


def alarm_states(deployed: Deployed) -> Iterator[Finding]:
    """Alarms without data scale nothing."""
    own = [deployed.scale_in_alarm] if deployed.scale_in_alarm else []
    for alarm in [*own, *deployed.managed_alarms]:
        state = alarm.get("StateValue", "unknown")
        if state == "INSUFFICIENT_DATA":
            detail = "INSUFFICIENT_DATA: it scales nothing until the metric has data"
            yield Finding("warn", f"alarm {alarm['AlarmName']}", detail, "make validate")
        else:
            yield Finding("info", f"alarm {alarm['AlarmName']}", state)


def next_command(artifacts: Path, model: str, live: LiveEndpoint, intent: Intent) -> str:
    """The first step that has not been done."""
    if not list(artifacts.glob(f"qmax-{model}-*.json")):
        return "make qmax"
    if not list(artifacts.glob(f"ttotal-{model}-*.json")):
        return "make ttotal"
    if intent.plan is None:
        return "make plan"
    return "make validate" if policy.read(live.name, live.variant).target else "make apply-plan"


def _flags() -> argparse.ArgumentParser:
    flags = parser("drift", "Compare what is live with what was intended; changes nothing.")
    flags.add_argument("--model", required=True, help="model name in the artifacts' file names")
    flags.add_argument("--artifacts", default="artifacts", help="directory of the artifacts")
    flags.add_argument("--plan", help="plan to compare with; default: the one Terraform was given, else the newest")
    flags.add_argument("--terraform-dir", default=str(TERRAFORM_DIR), help="root module")
    flags.add_argument("--json", action="store_true", help="print the findings as JSON")
    return flags


if __name__ == "__main__":
    sys.exit(exit_status(main))
