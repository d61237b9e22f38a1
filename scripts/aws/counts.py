"""Changing a variant's instance count and waiting until SageMaker has done it."""

from __future__ import annotations

from botocore.exceptions import ClientError

from planner.errors import AwsError
from scripts.aws.clients import aws_errors, control, error_code, error_message
from scripts.aws.endpoint import Counts, log_group, read_counts
from scripts.aws.waiting import Clock, Progress, persist

TYPICAL_CHANGE_S = 240.0
RETRY_LIMIT_S = 300.0


def request_count(endpoint: str, variant: str, desired: int) -> None:
    """Ask for ``desired`` instances; one call, no waiting."""
    with aws_errors(f"setting {endpoint}/{variant} to {desired} instances"):
        control("sagemaker").update_endpoint_weights_and_capacities(
            EndpointName=endpoint,
            DesiredWeightsAndCapacities=[{"VariantName": variant, "DesiredInstanceCount": desired}],
        )


def set_count(
    endpoint: str, variant: str, desired: int, *, clock: Clock, progress: Progress, limit_s: float = 1800
) -> Counts:
    """Bring the variant to ``desired`` running instances, waiting for an update in progress first."""
    started = clock.monotonic()
    while True:
        counts = persist(lambda: read_counts(endpoint, variant), clock, RETRY_LIMIT_S)
        elapsed_s = clock.monotonic() - started
        if counts.status == "Failed":
            raise AwsError(f"endpoint {endpoint} is Failed: {counts.failure_reason}", f"read {log_group(endpoint)}")
        if counts.settled and counts.desired == desired:
            progress.done()
            return counts
        if elapsed_s > limit_s:
            raise AwsError(_still(endpoint, variant, desired, counts, elapsed_s), f"look at {log_group(endpoint)}")
        if counts.status == "InService" and counts.desired != desired:
            persist(lambda: _request_when_free(endpoint, variant, desired), clock, RETRY_LIMIT_S)
        progress.show(_doing(endpoint, variant, desired, counts), elapsed_s, TYPICAL_CHANGE_S)
        clock.sleep(poll_s(elapsed_s))


def _doing(endpoint: str, variant: str, desired: int, counts: Counts) -> str:
    return f"{endpoint}/{variant} {counts.status}, {counts.current} of {desired} instances"


def _still(endpoint: str, variant: str, desired: int, counts: Counts, elapsed_s: float) -> str:
    reason = f": {counts.failure_reason}" if counts.failure_reason else ""
    return f"{_doing(endpoint, variant, desired, counts)} after {elapsed_s:.0f} s{reason}"


def poll_s(elapsed_s: float) -> float:
    """Quick at first, then easy on the API."""
    return 0.5 if elapsed_s < 10 else 2.0 if elapsed_s < 120 else 5.0


def _request_when_free(endpoint: str, variant: str, desired: int) -> None:
    try:
        request_count(endpoint, variant, desired)
    except AwsError as error:
        if not is_busy(error):
            raise


def is_busy(error: AwsError) -> bool:
    """SageMaker refuses a change because another one is still running."""
    cause = error.__cause__
    if not isinstance(cause, ClientError) or error_code(cause) not in {"ValidationException", "ResourceInUse"}:
        return False
    text = error_message(cause).lower()
    return "in-progress" in text or "in progress" in text or "updating" in text or "cannot update" in text
