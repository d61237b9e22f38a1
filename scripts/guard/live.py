"""Facts about the live endpoint that need no plan: status, freezes left behind, orphans."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.artifacts.fingerprint import ADMISSION_BOUND_ENV
from planner.artifacts.plan import Plan
from scripts.aws import journal, lock
from scripts.aws.clients import aws_errors, control
from scripts.aws.endpoint import LiveEndpoint, log_group
from scripts.aws.scaling import DIMENSION, NAMESPACE, Suspended, Target, resource_id
from scripts.aws.waiting import Clock
from scripts.guard.findings import Finding

THAW = "make thaw"


def endpoint(live: LiveEndpoint) -> Iterator[Finding]:
    """Status and counts."""
    name = f"endpoint {live.name}"
    if live.status == "Failed":
        yield Finding("error", name, f"Failed: {live.failure_reason}", f"read {log_group(live.name)}, then make deploy")
    elif live.status != "InService":
        yield Finding("warn", name, f"{live.status}; look again when it is InService")
    elif live.current_instances != live.desired_instances:
        yield Finding("info", name, f"changing from {live.current_instances} to {live.desired_instances} instances")
    else:
        yield Finding("ok", name, f"InService, {live.current_instances} x {live.instance_type}")
    if live.failure_reason and live.status == "InService":
        yield Finding("warn", name, f"its last update failed: {live.failure_reason}", f"read {log_group(live.name)}")


def freeze(live: LiveEndpoint, target: Target | None, clock: Clock) -> Iterator[Finding]:
    """A run that holds the endpoint, a journal or tag left behind, scaling left suspended."""
    holder = lock.holder(live.name, live.variant)
    if holder is not None:
        yield Finding("info", f"freeze of {live.name}", f"{holder} is measuring right now; it restores by itself")
        return
    left = journal.find(live, target)
    if left is not None and not left.frozen:
        detail = f"a journal without effect from {left.journal.who} ({left.source})"
        yield Finding("info", f"freeze of {live.name}", detail, THAW)
    elif left is not None:
        elsewhere = left.journal.host != journal.this_host() and left.journal.expires_at > clock.now()
        state = "another machine may still be measuring" if elsewhere else "its run ended without restoring"
        detail = (
            f"frozen by {left.journal.who}; {state}; found in {left.source}; before: "
            f"{left.journal.desired_instances} instances, suspended: {left.journal.suspended_state or 'no target'}"
        )
        yield Finding("warn" if elsewhere else "error", f"freeze of {live.name}", detail, THAW)
    elif target is not None and target.suspended != Suspended():
        detail = f"suspended: {target.suspended}, and no freeze explains it"
        yield Finding("error", f"target {resource_id(live.name, live.variant)}", detail, THAW)


def bounds(live: LiveEndpoint, target: Target | None) -> Iterator[Finding]:
    """The count within the target's minimum and maximum."""
    if target is None:
        return
    name = f"target {resource_id(live.name, live.variant)}"
    if not target.min_capacity <= live.desired_instances <= target.max_capacity:
        yield Finding(
            "error",
            name,
            f"{live.desired_instances} instances, outside {target.min_capacity} to {target.max_capacity}",
            "make apply-plan",
        )


def orphans(live: LiveEndpoint) -> Iterator[Finding]:
    """Targets whose endpoint or variant is gone: ours are errors, other people's are information."""
    own = resource_id(live.name, live.variant)
    for target in _all_targets():
        found = target["ResourceId"]
        if found == own or target["ScalableDimension"] != DIMENSION:
            continue
        name = found.split("/")[1]
        if name == live.name:
            detail = f"scales variant {found.split('/')[3]}, which {live.name} does not have or we do not manage"
            yield Finding("error", f"target {found}", detail, deregister(found))
        elif not _exists(name):
            yield Finding("info", f"target {found}", "somebody's: its endpoint does not exist", deregister(found))


def deregister(found: str) -> str:
    """The command that removes a target and its policies."""
    return (
        f"aws application-autoscaling deregister-scalable-target --service-namespace {NAMESPACE} "
        f"--scalable-dimension {DIMENSION} --resource-id {found}"
    )


def import_target(found: str) -> str:
    """The command that hands a target to Terraform."""
    address = "module.autoscaling[0].aws_appautoscaling_target.this"
    return f"terraform -chdir=terraform import '{address}' {NAMESPACE}/{found}/{DIMENSION}"


def against_plan(live: LiveEndpoint, plan: Plan, *, applied: bool) -> Iterator[Finding]:
    """Instance type, image and queue bound of the live container."""
    name = f"endpoint {live.name}"
    measured = plan.fingerprint
    if measured is not None and measured.instance_type != live.instance_type:
        detail = f"runs on {live.instance_type}, the plan was measured on {measured.instance_type}"
        yield Finding("error", name, detail, "make qmax ttotal plan, then make apply-plan")
    if measured is not None and measured.image_digest != live.image_digest:
        detail = f"runs image {live.image_digest}, the plan was measured on {measured.image_digest}"
        yield Finding("error", name, detail, "make qmax ttotal plan, then make apply-plan")
    bound = live.environment.get(ADMISSION_BOUND_ENV)
    wanted = str(plan.derived.queue_max_depth)
    if applied and bound != wanted:
        detail = f"{ADMISSION_BOUND_ENV} is {bound or 'not set'} in the live container, planned {wanted}"
        yield Finding("error", name, detail, "make apply-plan")


def against_terraform(
    live: LiveEndpoint, settings: dict[str, Any], outputs: dict[str, Any] | None
) -> Iterator[Finding]:
    """What the last deployment decided, and the configuration Terraform left behind."""
    name = f"endpoint {live.name}"
    if settings.get("endpoint_name") == live.name:
        wanted = {"image_digest": live.image_digest, "instance_type": live.instance_type}
        for key, found in wanted.items():
            if settings.get(key) not in (None, found):
                yield Finding("error", name, f"{key} is {found}, deployed was {settings[key]}", "make deploy")
    if outputs is None or outputs.get("endpoint_name") != live.name:
        return
    intended = outputs.get("endpoint_config_name")
    if intended is not None and intended != live.config_name:
        detail = f"runs configuration {live.config_name}, Terraform left {intended}: rolled back or changed by hand"
        yield Finding("error", name, detail, "make deploy")


def unmanaged_target(live: LiveEndpoint, target: Target | None, outputs: dict[str, Any] | None) -> Iterator[Finding]:
    """A target that Terraform's state of this endpoint does not have: applying a plan would refuse it."""
    if target is None or outputs is None or outputs.get("endpoint_name") != live.name:
        return
    if outputs.get("scaling_resource_id") is None:
        found = resource_id(live.name, live.variant)
        detail = "scales the endpoint, but Terraform does not manage it (left over): make apply-plan refuses it"
        yield Finding("error", f"target {found}", detail, f"{deregister(found)}; or keep it: {import_target(found)}")


def _all_targets() -> list[dict[str, Any]]:
    with aws_errors("listing scalable targets"):
        pages = control("application-autoscaling").get_paginator("describe_scalable_targets")
        return [target for page in pages.paginate(ServiceNamespace=NAMESPACE) for target in page["ScalableTargets"]]


def _exists(name: str) -> bool:
    with aws_errors("listing endpoints"):
        pages = control("sagemaker").get_paginator("list_endpoints").paginate(NameContains=name)
        return any(item["EndpointName"] == name for page in pages for item in page["Endpoints"])
