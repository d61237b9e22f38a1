"""Checks that qmax, ttotal and deploy share; each says what it saw and how to fix it."""

from __future__ import annotations

import email.utils
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import Literal

from botocore.exceptions import ClientError

from planner.errors import AwsError, UsageError
from scripts.aws import journal, lock
from scripts.aws.clients import aws_errors, control, error_code
from scripts.aws.cloudwatch import metric
from scripts.aws.endpoint import LiveEndpoint, require_in_service
from scripts.aws.scaling import read_target
from scripts.aws.waiting import Clock, Progress

Verdict = Literal["ok", "warn", "fail"]
SKEW_LIMIT_S = 60.0
TRAFFIC_WINDOW_S = 180.0
TRAFFIC_MINIMUM_S = 20.0
PERIOD_S = 10


@dataclass(frozen=True)
class Check:
    """One look at the account before anything is changed."""

    name: str
    verdict: Verdict
    detail: str
    fix: str = ""


@dataclass(frozen=True)
class Quota:
    """How many instances of a type the account may run for endpoints."""

    name: str
    code: str
    limit: float


def require(checks: list[Check]) -> None:
    """Raise one error that lists every failed check; a quota alone is AWS's refusal, not a wrong flag."""
    failed = [check for check in checks if check.verdict == "fail"]
    if failed:
        kind = AwsError if all(check.name == "quota" for check in failed) else UsageError
        raise kind(
            "; ".join(f"{check.name}: {check.detail}" for check in failed),
            "; ".join(check.fix for check in failed if check.fix),
        )


def run(live: LiveEndpoint, *, extra_instances: int, force: bool = False, clock: Clock | None = None) -> list[Check]:
    """Every check for a measurement that needs ``extra_instances`` more than are running."""
    clock = clock or Clock()
    held = unlocked(live)
    if held.verdict == "fail":
        return [held]
    return [
        held,
        in_service(live),
        slot(live.instance_type, extra_instances),
        traffic(live, clock, force=force),
        skew(clock),
    ]


def in_service(live: LiveEndpoint) -> Check:
    """InService and not changing its count."""
    require_in_service(live)
    return Check("endpoint", "ok", f"{live.name} InService, {live.current_instances} x {live.instance_type}")


def unlocked(live: LiveEndpoint) -> Check:
    """No other run holds or left the endpoint frozen."""
    held = lock.holder(live.name, live.variant)
    if held:
        return Check("lock", "fail", f"{live.name} is in use by {held}", "wait until it ends")
    left = journal.find(live, read_target(live.name, live.variant))
    if left and left.frozen:
        return Check("lock", "fail", f"left frozen by {left.journal.who} ({left.source})", "make thaw")
    return Check("lock", "ok", "nobody else is using it")


def quota(instance_type: str) -> Quota | None:
    """The account's quota for endpoint instances of this type; None = Service Quotas does not list it."""
    wanted = f"{instance_type} for endpoint usage"
    with aws_errors("reading Service Quotas"):
        for operation in ("list_service_quotas", "list_aws_default_service_quotas"):
            try:
                for page in control("service-quotas").get_paginator(operation).paginate(ServiceCode="sagemaker"):
                    for item in page["Quotas"]:
                        if item["QuotaName"] == wanted:
                            return Quota(item["QuotaName"], item["QuotaCode"], float(item["Value"]))
            except ClientError as error:
                if error_code(error) not in {"NoSuchResourceException", "UnknownOperationException"}:
                    raise
    return None


def instances_in_use(instance_type: str) -> int:
    """Instances of this type that the account's endpoints run or have asked for."""
    total = 0
    with aws_errors("counting endpoint instances"):
        sagemaker = control("sagemaker")
        for page in sagemaker.get_paginator("list_endpoints").paginate():
            for item in page["Endpoints"]:
                endpoint = sagemaker.describe_endpoint(EndpointName=item["EndpointName"])
                config = sagemaker.describe_endpoint_config(EndpointConfigName=endpoint["EndpointConfigName"])
                types = {v["VariantName"]: v.get("InstanceType") for v in config["ProductionVariants"]}
                for variant in endpoint.get("ProductionVariants", []):
                    if types.get(variant["VariantName"]) == instance_type:
                        total += max(variant.get("DesiredInstanceCount", 0), variant.get("CurrentInstanceCount", 0))
    return total


def slot(instance_type: str, extra: int) -> Check:
    """The quota leaves room for ``extra`` more instances."""
    limit = quota(instance_type)
    if limit is None:
        return Check("quota", "warn", f"Service Quotas lists none for {instance_type}; not checked")
    used = instances_in_use(instance_type)
    detail = f"{limit.name} ({limit.code}) is {limit.limit:.0f}, {used} in use, {extra} more needed"
    if used + extra > limit.limit:
        fix = f"aws service-quotas request-service-quota-increase --service-code sagemaker --quota-code {limit.code} "
        return Check("quota", "fail", detail, fix + f"--desired-value {used + extra}")
    return Check("quota", "ok", detail)


def foreign_requests(live: LiveEndpoint, clock: Clock, *, wait: bool = True) -> float:
    """Highest concurrency seen lately that was not our own load; ``wait`` until there is enough to judge."""
    now = clock.now()
    start = now - timedelta(seconds=TRAFFIC_WINDOW_S)
    ours_until = journal.traffic_end(live)
    if ours_until is not None:
        # The period in which our load ended still holds its requests.
        start = max(start, ours_until + timedelta(seconds=PERIOD_S))
        missing_s = TRAFFIC_MINIMUM_S - (now - start).total_seconds()
        if wait and missing_s > 0:
            Progress(clock).note(f"waiting {missing_s:.0f} s to tell other traffic from our own last run")
            clock.sleep(missing_s)
    readings = metric("ConcurrentRequestsPerModel", live.name, live.variant, "Maximum", PERIOD_S, start, clock.now())
    return max((value for at, value in readings if at >= start), default=0.0)


def traffic(live: LiveEndpoint, clock: Clock, *, force: bool) -> Check:
    """Nobody else is using the endpoint."""
    seen = foreign_requests(live, clock, wait=not force)
    if seen == 0:
        return Check("traffic", "ok", "no requests but ours in the last three minutes")
    detail = f"{live.name} is serving somebody else: up to {seen:.0f} requests at a time in the last three minutes"
    if force:
        return Check("traffic", "warn", detail)
    return Check(
        "traffic", "fail", detail, "stop that traffic, or pass --force to measure and throttle it all the same"
    )


def skew(clock: Clock) -> Check:
    """This machine's clock against AWS's Date header: stages are stamped by both."""
    with aws_errors("asking AWS for the time"):
        answer = control("sts").get_caller_identity()
    header = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    if header is None:
        return Check("clock", "warn", "AWS sent no Date header; skew not checked")
    off_s = (clock.now() - email.utils.parsedate_to_datetime(header).astimezone(UTC)).total_seconds()
    detail = f"this machine is {off_s:+.1f} s off AWS's clock"
    if abs(off_s) > SKEW_LIMIT_S:
        return Check("clock", "fail", detail, "synchronise the clock (chronyc makestep, timedatectl set-ntp true)")
    return Check("clock", "ok", detail)
