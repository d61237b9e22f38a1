"""What must be true of the live endpoint before Terraform changes it, and after."""

from __future__ import annotations

from planner.errors import AwsError, UsageError
from scripts.aws import journal, lock
from scripts.aws.endpoint import LiveEndpoint, describe, log_group, status_of
from scripts.aws.scaling import read_target
from scripts.terraform import Terraform

ENDPOINT_ADDRESS = "module.endpoint[0].aws_sagemaker_endpoint.this"
TARGET_ADDRESS = "module.autoscaling[0].aws_appautoscaling_target.this"


def live_or_none(name: str, variant: str) -> LiveEndpoint | None:
    """The endpoint, or None when there is none of that name or it is being deleted."""
    return None if status_of(name) in (None, "Deleting") else describe(name, variant)


def refuse_frozen(live: LiveEndpoint) -> None:
    """A measurement in progress, or one that died, must be dealt with first."""
    holder = lock.holder(live.name, live.variant)
    if holder:
        raise UsageError(f"{live.name} is being measured by {holder}", "wait until it ends, or stop it")
    left = journal.find(live, read_target(live.name, live.variant))
    if left and left.frozen:
        raise UsageError(f"{live.name} is frozen by {left.journal.who} (found in {left.source})", "make thaw")


def refuse_foreign(live: LiveEndpoint, resources: dict[str, bool]) -> None:
    """An endpoint of that name which this Terraform state does not manage."""
    if ENDPOINT_ADDRESS not in resources:
        raise UsageError(
            f"endpoint {live.name} exists, but this Terraform state does not manage it",
            f"choose another name (ENDPOINT=...), delete it, or import it: terraform -chdir=terraform import "
            f"'{ENDPOINT_ADDRESS}' {live.name}",
        )


def untaint_healthy(terraform: Terraform, live: LiveEndpoint, resources: dict[str, bool]) -> None:
    """A wait that ran out leaves a mark that would destroy a healthy endpoint on the next apply."""
    if resources.get(ENDPOINT_ADDRESS) and live.status == "InService":
        terraform.untaint(ENDPOINT_ADDRESS)


def require_live(name: str, variant: str, config_name: str) -> LiveEndpoint:
    """Terraform can succeed although SageMaker rolled the update back: ask SageMaker."""
    live = describe(name, variant)
    why = live.failure_reason or "no FailureReason"
    if live.config_name != config_name:
        raise AwsError(
            f"{name} runs configuration {live.config_name}, intended was {config_name}: SageMaker rolled back ({why})",
            f"read log group {log_group(name)}, fix the image or its environment, make deploy again",
        )
    if live.status != "InService":
        raise AwsError(f"{name} is {live.status}: {why}", f"read log group {log_group(name)}, then make deploy again")
    return live


def explain_failed_apply(error: AwsError, name: str, variant: str) -> AwsError:
    """Add what SageMaker says about the endpoint to what Terraform said."""
    live = live_or_none(name, variant)
    if live is None or (live.status == "InService" and not live.failure_reason):
        return error
    return AwsError(
        f"{error.message}; endpoint {name} is {live.status}: {live.failure_reason or 'no FailureReason'}",
        f"log group {log_group(name)}; then run the same command again: it goes on where it stopped",
    )
