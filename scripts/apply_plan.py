"""Create autoscaling from a plan: the same as ``terraform apply -var-file=plan.auto.tfvars``, with checks around it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from planner.artifacts.plan import Plan
from planner.errors import AwsError, FactFails, UsageError, exit_status
from scripts import terraform
from scripts.aws import preflight
from scripts.aws.endpoint import LiveEndpoint, describe, require_in_service
from scripts.aws.scaling import resource_id
from scripts.cli import parser
from scripts.deployment import guards, names, settings
from scripts.guard import intent, policy
from scripts.guard.intent import TERRAFORM_DIR, TFVARS
from scripts.guard.live import deregister, import_target
from scripts.terraform import Terraform


def main(argv: Sequence[str] | None = None) -> int:
    """Check, apply, look whether it is there."""
    args = _flags().parse_args(argv)
    directory = Path(args.terraform_dir)
    path = Path(args.plan).resolve() if args.plan else intent.tfvars_plan(directory)
    if path is None:
        raise UsageError(f"{directory / TFVARS} does not exist", "make plan writes it; or pass --plan")
    plan = Plan.load(path)
    refuse_unfit(plan, path)
    live = describe(args.endpoint, args.variant)
    guards.refuse_frozen(live)
    require_in_service(live)
    tool = terraform.ready(directory)
    resources = tool.resources()
    guards.refuse_foreign(live, resources)
    refuse_left_over(live, resources)
    preflight.require([_room(live, plan)])
    given = {"initial_instance_count": live.desired_instances, "plan_json": str(path)}
    chosen = names.with_free_names(tool, settings.load(directory) | given)
    if args.dry_run:
        tool.plan(chosen)
        return 0
    settings.save(directory, {key: value for key, value in chosen.items() if key != "plan_json"})
    _apply(tool, args, chosen)
    verify(args.endpoint, args.variant, plan)
    print(f"{args.endpoint} scales as in {path}; next: make validate")
    return 0


def refuse_unfit(plan: Plan, path: Path) -> None:
    """The same gate as Terraform's, before it starts."""
    stops = [finding for finding in plan.findings if finding.verdict == "stop"]
    if plan.verdict == "stop" or not plan.feasible:
        reasons = "; ".join(f"{finding.name}: {finding.detail}" for finding in stops) or "it is not feasible"
        raise FactFails(f"{path} must not be applied: {reasons}", "; ".join(f.recommendation for f in stops))


def refuse_left_over(live: LiveEndpoint, resources: dict[str, bool]) -> None:
    """A target that exists outside this state makes the first apply fail half-way."""
    deployed = policy.read(live.name, live.variant)
    if deployed.target is not None and guards.TARGET_ADDRESS not in resources:
        found = resource_id(live.name, live.variant)
        raise UsageError(
            f"scalable target {found} exists, but this Terraform state does not manage it",
            f"{deregister(found)}; or {import_target(found)}",
        )


def verify(endpoint: str, variant: str, plan: Plan) -> None:
    """Terraform said done; Application Auto Scaling must hold the plan's numbers, and the policy must have alarms."""
    deployed = policy.read(endpoint, variant)
    faults = [f"{name} does not exist" for name in policy.missing(endpoint, variant, deployed)]
    faults += [
        f"{field.resource}: {field.name} is {field.deployed}, planned {field.planned}"
        for field in policy.compare(endpoint, variant, plan.derived, deployed)
        if not field.equal
    ]
    if deployed.scale_out is not None and not deployed.managed_alarms:
        faults.append(f"policy {endpoint}-scale-out has no alarm: it would never fire")
    if faults:
        raise AwsError("applied, but " + "; ".join(faults), "make drift")


def _apply(tool: Terraform, args: argparse.Namespace, chosen: dict[str, object]) -> None:
    try:
        tool.apply(chosen)
    except AwsError as error:
        raise guards.explain_failed_apply(error, args.endpoint, args.variant) from error
    guards.require_live(args.endpoint, args.variant, tool.outputs()["endpoint_config_name"])


def _room(live: LiveEndpoint, plan: Plan) -> preflight.Check:
    """A quota below the plan's maximum would look like slow scaling."""
    return preflight.slot(live.instance_type, max(0, plan.derived.max_instances - live.desired_instances))


def _flags() -> argparse.ArgumentParser:
    flags = parser("apply_plan", "Create autoscaling from the plan.")
    flags.add_argument("--plan", help=f"plan to apply; default: the one in {TFVARS}")
    flags.add_argument("--terraform-dir", default=str(TERRAFORM_DIR), help="root module")
    flags.add_argument("--dry-run", action="store_true", help="show Terraform's plan; change nothing")
    return flags


if __name__ == "__main__":
    sys.exit(exit_status(main))
