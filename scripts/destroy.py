"""Take the endpoint down: autoscaling, then the endpoint. The weight cache and the registry stay unless --all."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner.errors import AwsError, exit_status
from planner.prices import PRICE_DATE
from scripts import terraform
from scripts.aws import journal, lock
from scripts.aws.clients import aws_errors, control
from scripts.aws.endpoint import LiveEndpoint, status_of
from scripts.aws.freeze import thaw
from scripts.aws.scaling import read_target
from scripts.aws.waiting import Clock
from scripts.cli import parser
from scripts.deploy import NOTHING_DEPLOYED
from scripts.deployment import guards, settings
from scripts.guard.intent import TERRAFORM_DIR
from scripts.terraform import Terraform

# S3 standard and ECR storage in us-east-1, USD per GB and month.
S3_USD_PER_GB_MONTH = 0.023
ECR_USD_PER_GB_MONTH = 0.10
DELETION_LIMIT_S = 900.0


def main(argv: Sequence[str] | None = None) -> int:
    """Thaw what a dead run left, destroy in order, say what stays."""
    flags = parser("destroy", "Take the endpoint down; what several endpoints share stays unless --all.")
    flags.add_argument("--all", action="store_true", help="the weight cache and the registry too")
    flags.add_argument("--terraform-dir", default=str(TERRAFORM_DIR), help="root module")
    flags.add_argument("--dry-run", action="store_true", help="list what would be destroyed; change nothing")
    args = flags.parse_args(argv)
    directory = Path(args.terraform_dir)
    tool = terraform.ready(directory)
    resources = tool.resources()
    live = guards.live_or_none(args.endpoint, args.variant)
    if args.dry_run:
        print("\n".join(sorted(name for name in resources if args.all or not _shared(name))) or "nothing is deployed")
        return 0
    if live is not None and guards.ENDPOINT_ADDRESS in resources:
        _release(live)
    chosen = settings.load(directory) | {"endpoint_name": args.endpoint, "variant_name": args.variant}
    outputs = tool.outputs()
    if any(not _shared(name) for name in resources):
        print("== autoscaling, then the endpoint", file=sys.stderr)
        tool.apply(chosen | NOTHING_DEPLOYED)
        _require_gone(args.endpoint, Clock())
    if args.all:
        _destroy_shared(tool, chosen)
    settings.remove(directory)
    print("everything is destroyed" if args.all else remains(outputs))
    return 0


def _shared(address: str) -> bool:
    return address.startswith(("module.model_cache.", "module.registry."))


def _release(live: LiveEndpoint) -> None:
    """A live measurement is refused; what a dead one left is un-suspended, its count left alone."""
    if lock.holder(live.name, live.variant):
        guards.refuse_frozen(live)
    left = journal.find(live, read_target(live.name, live.variant))
    if left is not None and left.frozen:
        print(f"== {live.name} was left frozen by {left.journal.who}: thawing it first", file=sys.stderr)
        thaw(live.name, left.journal.variant, live.desired_instances)


def _destroy_shared(tool: Terraform, chosen: dict[str, Any]) -> None:
    """Bucket and repository only go with their content once Terraform knows that they may."""
    print("== the weight cache and the registry", file=sys.stderr)
    forced = chosen | NOTHING_DEPLOYED | {"force_destroy": True}
    tool.apply(forced, "-target=module.model_cache", "-target=module.registry")
    tool.destroy(forced)


def _require_gone(name: str, clock: Clock) -> None:
    """An endpoint that is still there still bills."""
    started = clock.monotonic()
    while (status := status_of(name)) is not None:
        if status != "Deleting" or clock.monotonic() - started > DELETION_LIMIT_S:
            raise AwsError(f"endpoint {name} still exists ({status}) and bills", "read the output above, run it again")
        clock.sleep(2)


def remains(outputs: dict[str, Any]) -> str:
    """What several endpoints share, its size and what it costs."""
    if "bucket" not in outputs:
        return "nothing is left"
    stored_gb, images_gb = _bucket_gb(outputs["bucket"]), _repository_gb(outputs["repository_name"])
    month_usd = stored_gb * S3_USD_PER_GB_MONTH + images_gb * ECR_USD_PER_GB_MONTH
    return "\n".join(
        [
            "the endpoint and its autoscaling are gone; what stays:",
            f"  weights  s3://{outputs['bucket']} ({stored_gb:.2f} GB)",
            f"  images   {outputs['repository_url']} ({images_gb:.2f} GB)",
            f"  together about {month_usd:.2f} USD a month (list prices of {PRICE_DATE}); ALL=1 removes them",
        ]
    )


def _bucket_gb(bucket: str) -> float:
    with aws_errors(f"measuring s3://{bucket}"):
        pages = control("s3").get_paginator("list_object_versions").paginate(Bucket=bucket)
        return float(sum(item["Size"] for page in pages for item in page.get("Versions", []))) / 1e9


def _repository_gb(repository: str) -> float:
    with aws_errors(f"measuring {repository}"):
        pages = control("ecr").get_paginator("describe_images").paginate(repositoryName=repository)
        return float(sum(image.get("imageSizeInBytes", 0) for page in pages for image in page["imageDetails"])) / 1e9


if __name__ == "__main__":
    sys.exit(exit_status(main))
