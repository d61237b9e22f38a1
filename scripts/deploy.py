"""Deploy: foundation, image, weights, endpoint. Run again after any failure; what is done is not done twice.

Terraform applies; afterwards SageMaker itself is asked whether the intended configuration is the live one.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner.errors import AwsError, UsageError, exit_status
from planner.prices import PRICE_DATE, usd_per_h
from scripts import terraform
from scripts.aws import preflight
from scripts.aws.endpoint import LiveEndpoint
from scripts.aws.waiting import Clock
from scripts.build_image import build
from scripts.cli import parser, print_json
from scripts.deployment import guards, names, settings, weights
from scripts.guard.intent import TERRAFORM_DIR
from scripts.terraform import Terraform

NOTHING_DEPLOYED: dict[str, Any] = {"image_digest": None, "plan_json": None}


def main(argv: Sequence[str] | None = None) -> int:
    """All steps, or only the plan."""
    args = _flags().parse_args(argv)
    directory = Path(args.terraform_dir)
    tool = terraform.ready(directory)
    resources = tool.resources()
    live = guards.live_or_none(args.endpoint, args.variant)
    if live is not None:
        guards.refuse_frozen(live)
        guards.refuse_foreign(live, resources)
        guards.untaint_healthy(tool, live, resources)
    chosen = _chosen(args, live, settings.load(directory))
    if args.plan_only:
        tool.plan(names.with_free_names(tool, chosen) if chosen.get("image_digest") else chosen | NOTHING_DEPLOYED)
        return 0
    preflight.require([preflight.skew(Clock())])
    outputs = _foundation(tool, chosen, resources)
    chosen["image_digest"] = args.image_digest or _image(args, outputs)
    if args.mount_model_data is not False:
        _say("weights")
        copied = weights.ensure(outputs["model_data_uri"], outputs["weights_project"])
        _say(f"weights {'copied to' if copied else 'already in'} {outputs['model_data_uri']}")
    chosen = names.with_free_names(tool, chosen)
    deployed = _endpoint(tool, args, chosen, live)
    _report(args, deployed, chosen)
    return 0


def _chosen(args: argparse.Namespace, live: LiveEndpoint | None, before: dict[str, Any]) -> dict[str, Any]:
    """The variables this deployment decides. A fleet keeps its live count when its configuration is replaced."""
    given = {
        "model_name": args.model,
        "instance_type": args.instance_type,
        "mount_model_data": args.mount_model_data,
        "container_environment": _environment(args.env) if args.env else None,
    }
    where = {"endpoint_name": args.endpoint, "variant_name": args.variant}
    same = before if before.get("endpoint_name") == args.endpoint else {}
    count = {"initial_instance_count": max(live.desired_instances, 1)} if live is not None else {}
    return same | where | count | {key: value for key, value in given.items() if value is not None}


def _environment(pairs: Sequence[str]) -> dict[str, str]:
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise UsageError(f"--env {', '.join(wrong)}: not KEY=VALUE", "for example --env ENGINE=kokoro")
    return dict(pair.split("=", 1) for pair in pairs)


def _foundation(tool: Terraform, chosen: dict[str, Any], resources: dict[str, bool]) -> dict[str, Any]:
    outputs = tool.outputs()
    if guards.ENDPOINT_ADDRESS in resources and "image_project" in outputs:
        return outputs
    _say("foundation: bucket, registry, builders")
    tool.apply(chosen | NOTHING_DEPLOYED)
    return tool.outputs()


def _image(args: argparse.Namespace, outputs: dict[str, Any]) -> str:
    _say("image")
    made = build(Path(args.root), outputs)
    _say(f"image {made.digest} {'built' if made.built else 'already in the registry'} ({made.tag})")
    return made.digest


def _endpoint(
    tool: Terraform, args: argparse.Namespace, chosen: dict[str, Any], live: LiveEndpoint | None
) -> LiveEndpoint:
    _say("endpoint (a new one typically takes 5 to 8 minutes)")
    instance_type = chosen.get("instance_type") or tool.outputs().get("instance_type")
    if live is None and instance_type:
        check = preflight.slot(instance_type, chosen.get("initial_instance_count", 1))
        preflight.require([check])
    before = settings.load(tool.directory)
    settings.save(tool.directory, chosen)
    try:
        tool.apply(chosen)
    except UsageError:
        settings.save(tool.directory, before)  # refused values must not come back with the next run
        raise
    except AwsError as error:
        raise guards.explain_failed_apply(error, args.endpoint, args.variant) from error
    return guards.require_live(args.endpoint, args.variant, tool.outputs()["endpoint_config_name"])


def _report(args: argparse.Namespace, live: LiveEndpoint, chosen: dict[str, Any]) -> None:
    price = usd_per_h(live.instance_type)
    cost = f"{price * live.current_instances:.2f} USD/h (list price of {PRICE_DATE})" if price else "price unknown"
    if args.json:
        print_json({"endpoint": live.name, "config": live.config_name, "settings": chosen, "usd_per_h": price})
        return
    print(f"{live.name} is InService: {live.current_instances} x {live.instance_type}, {cost}")
    print(f"configuration {live.config_name}, image {live.image_digest}")
    print("next: make qmax")


def _say(text: str) -> None:
    print(f"== {text}", file=sys.stderr, flush=True)


def _flags() -> argparse.ArgumentParser:
    flags = parser("deploy", "Deploy: foundation, image, weights, endpoint.")
    flags.add_argument("--model", help="short model name: names the image repository and the weights' folder")
    flags.add_argument("--instance-type", help="instance type of the variant")
    flags.add_argument("--image-digest", help="deploy this image instead of building the sources here")
    flags.add_argument("--env", action="append", metavar="KEY=VALUE", help="container environment, repeatable")
    flags.add_argument(
        "--mount-model-data", action=argparse.BooleanOptionalAction, default=None, help="mount the S3 weight cache"
    )
    flags.add_argument("--root", default=".", help="repository root, holds container/Dockerfile")
    flags.add_argument("--terraform-dir", default=str(TERRAFORM_DIR), help="root module")
    flags.add_argument("--plan-only", "--dry-run", action="store_true", help="show Terraform's plan; change nothing")
    flags.add_argument("--json", action="store_true", help="print the result as JSON")
    return flags


if __name__ == "__main__":
    sys.exit(exit_status(main))
