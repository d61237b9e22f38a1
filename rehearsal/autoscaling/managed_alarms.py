"""The alarms target tracking makes and manages, and what a policy may say."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator

from rehearsal.aws.service import ApiError, Params
from rehearsal.cloudwatch.alarm_book import AlarmBook
from rehearsal.settings import Settings

HIGH_PERIODS = 3
"""Datapoints above the target before it scales out. For standard metrics this is AWS's; assumed for the others."""
LOW_MINUTES = 15
LOW_FRACTION = 0.9
"""Scale-in starts about 10 % below the target."""

_PREDEFINED = {
    "SageMakerVariantInvocationsPerInstance": ("InvocationsPerInstance", 60, "Sum"),
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": ("ConcurrentRequestsPerModel", 10, None),
}


def check(body: Params) -> None:
    """Refuse what AWS refuses."""
    tracking = body.get("TargetTrackingScalingPolicyConfiguration")
    step = body.get("StepScalingPolicyConfiguration")
    if body["PolicyType"] == "TargetTrackingScaling":
        if tracking is None or step is not None:
            raise _invalid("TargetTrackingScaling needs TargetTrackingScalingPolicyConfiguration and nothing else")
        _check_tracking(tracking)
    elif body["PolicyType"] == "StepScaling":
        if step is None or tracking is not None:
            raise _invalid("StepScaling needs StepScalingPolicyConfiguration and nothing else")
        _check_steps(step)
    else:
        raise _invalid(f"Policy type {body['PolicyType']} is not supported for sagemaker")


def create(alarms: AlarmBook, settings: Settings, body: Params) -> list[Params]:
    """Put the policy's alarms; the answer's Alarms."""
    made = []
    for asked in _wanted(settings, body):
        arn = alarms.put(asked)
        made.append({"AlarmName": asked["AlarmName"], "AlarmARN": arn})
    return made


def _wanted(settings: Settings, body: Params) -> Iterator[Params]:
    tracking = body["TargetTrackingScalingPolicyConfiguration"]
    target = float(tracking["TargetValue"])
    metric = _metric(settings, body)
    yield {
        **metric,
        "AlarmName": _name(body, "AlarmHigh"),
        "ComparisonOperator": "GreaterThanThreshold",
        "EvaluationPeriods": HIGH_PERIODS,
        "DatapointsToAlarm": HIGH_PERIODS,
        "Threshold": target,
    }
    if not tracking.get("DisableScaleIn"):
        yield {
            **metric,
            "AlarmName": _name(body, "AlarmLow"),
            "ComparisonOperator": "LessThanThreshold",
            "EvaluationPeriods": LOW_MINUTES * 60 // metric["Period"],
            "DatapointsToAlarm": LOW_MINUTES * 60 // metric["Period"],
            "Threshold": target * LOW_FRACTION,
        }


def _metric(settings: Settings, body: Params) -> Params:
    tracking = body["TargetTrackingScalingPolicyConfiguration"]
    shared: Params = {
        "AlarmDescription": f"DO NOT EDIT OR DELETE. For TargetTrackingScaling policy {body['PolicyARN']}.",
        "AlarmActions": [body["PolicyARN"]],
    }
    custom = tracking.get("CustomizedMetricSpecification")
    if custom:
        keys = ("Namespace", "MetricName", "Dimensions", "Statistic")
        return {**shared, "Period": custom.get("Period", 60), **{key: custom[key] for key in keys if key in custom}}
    name, period_s, statistic = _PREDEFINED[tracking["PredefinedMetricSpecification"]["PredefinedMetricType"]]
    _, endpoint, _, variant = body["ResourceId"].split("/")
    return {
        **shared,
        "Namespace": "AWS/SageMaker",
        "MetricName": name,
        "Dimensions": [{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": variant}],
        "Period": period_s,
        "Statistic": statistic or settings.alarm_statistic,
    }


def _name(body: Params, side: str) -> str:
    return f"TargetTracking-{body['ResourceId']}-{side}-{uuid.uuid4()}"


def _check_tracking(tracking: Params) -> None:
    predefined = tracking.get("PredefinedMetricSpecification")
    custom = tracking.get("CustomizedMetricSpecification")
    if (predefined is None) == (custom is None):
        raise _invalid("Exactly one of PredefinedMetricSpecification and CustomizedMetricSpecification is needed")
    if predefined and predefined["PredefinedMetricType"] not in _PREDEFINED:
        raise _invalid(f"Metric type {predefined['PredefinedMetricType']} is not supported for this resource")
    if custom and not {"Namespace", "MetricName", "Statistic"} <= custom.keys():
        raise _invalid("A customized metric needs Namespace, MetricName and Statistic; the rehearsal reads no Metrics")
    if tracking["TargetValue"] <= 0:
        raise _invalid("TargetValue must be greater than 0")


def _check_steps(step: Params) -> None:
    if step.get("AdjustmentType") is None:
        raise _invalid("AdjustmentType is required")
    steps = step.get("StepAdjustments") or []
    if not steps:
        raise _invalid("At least one StepAdjustment is required")
    bounds = sorted(
        (each.get("MetricIntervalLowerBound", -1e308), each.get("MetricIntervalUpperBound", 1e308)) for each in steps
    )
    for (_, high), (low, _) in itertools.pairwise(bounds):
        if high != low:
            raise _invalid("StepAdjustment intervals can't have gaps or overlap")


def _invalid(message: str) -> ApiError:
    return ApiError("ValidationException", message)
