"""Application Auto Scaling through stock boto3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.rehearsal.conftest import ENDPOINT, VARIANT, Up, until

pytestmark = pytest.mark.e2e
TARGET: dict[str, Any] = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": f"endpoint/{ENDPOINT}/variant/{VARIANT}",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
HIGH_RESOLUTION = "SageMakerVariantConcurrentRequestsPerModelHighResolution"


def tracking(**more: Any) -> dict[str, Any]:
    configuration = {
        "TargetValue": 37.5,
        "PredefinedMetricSpecification": {"PredefinedMetricType": HIGH_RESOLUTION},
        "DisableScaleIn": True,
        **more,
    }
    return {
        **TARGET,
        "PolicyName": "out",
        "PolicyType": "TargetTrackingScaling",
        "TargetTrackingScalingPolicyConfiguration": configuration,
    }


@pytest.fixture
def scaling(seeded: Up) -> Iterator[Any]:
    client = seeded.client("application-autoscaling")
    client.register_scalable_target(**TARGET, MinCapacity=1, MaxCapacity=4, Tags={"team": "speech"})
    yield client
    if client.describe_scalable_targets(**TARGET_FILTER)["ScalableTargets"]:
        client.deregister_scalable_target(**TARGET)


TARGET_FILTER = {"ServiceNamespace": "sagemaker", "ResourceIds": [TARGET["ResourceId"]]}


def only_target(scaling: Any) -> dict[str, Any]:
    [found] = scaling.describe_scalable_targets(**TARGET_FILTER)["ScalableTargets"]
    return found


def test_changes_merge(scaling: Any) -> None:
    before = only_target(scaling)
    scaling.register_scalable_target(**TARGET, SuspendedState={"DynamicScalingInSuspended": True})
    scaling.register_scalable_target(**TARGET, SuspendedState={"ScheduledScalingSuspended": True})
    scaling.register_scalable_target(**TARGET, MaxCapacity=6)
    after = only_target(scaling)
    assert (after["MinCapacity"], after["MaxCapacity"]) == (1, 6)
    assert after["SuspendedState"] == {
        "DynamicScalingInSuspended": True,
        "DynamicScalingOutSuspended": False,
        "ScheduledScalingSuspended": True,
    }
    assert (after["ScalableTargetARN"], after["RoleARN"]) == (before["ScalableTargetARN"], before["RoleARN"])
    assert scaling.list_tags_for_resource(ResourceARN=after["ScalableTargetARN"])["Tags"] == {"team": "speech"}


def test_a_tracking_policy_has_a_managed_alarm(seeded: Up, scaling: Any) -> None:
    answer = scaling.put_scaling_policy(**tracking())
    [made] = answer["Alarms"]
    cloudwatch = seeded.client("cloudwatch")
    [alarm] = cloudwatch.describe_alarms(AlarmNames=[made["AlarmName"]])["MetricAlarms"]
    assert (alarm["Period"], alarm["EvaluationPeriods"], alarm["DatapointsToAlarm"]) == (10, 3, 3)
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (37.5, "GreaterThanThreshold")
    assert alarm["AlarmActions"] == [answer["PolicyARN"]]
    scaling.delete_scaling_policy(**{key: tracking()[key] for key in (*TARGET, "PolicyName")})
    assert cloudwatch.describe_alarms(AlarmNames=[made["AlarmName"]])["MetricAlarms"] == []


def test_scale_in_has_an_alarm_of_its_own(seeded: Up, scaling: Any) -> None:
    names = [alarm["AlarmName"] for alarm in scaling.put_scaling_policy(**tracking(DisableScaleIn=False))["Alarms"]]
    alarms = seeded.client("cloudwatch").describe_alarms(AlarmNames=names)["MetricAlarms"]
    [low] = [alarm for alarm in alarms if "AlarmLow" in alarm["AlarmName"]]
    assert low["Threshold"] == pytest.approx(33.75)
    assert low["Period"] * low["EvaluationPeriods"] == 900


def test_changing_bounds_keeps_policies_and_deregistering_takes_them(scaling: Any) -> None:
    arn = scaling.put_scaling_policy(**tracking())["PolicyARN"]
    scaling.register_scalable_target(**TARGET, MinCapacity=1, MaxCapacity=9)
    assert [each["PolicyARN"] for each in policies(scaling)] == [arn]
    assert scaling.put_scaling_policy(**tracking(TargetValue=20.0))["PolicyARN"] == arn
    scaling.deregister_scalable_target(**TARGET)
    assert policies(scaling) == []


def policies(scaling: Any) -> list[dict[str, Any]]:
    return scaling.describe_scaling_policies(ServiceNamespace="sagemaker", ResourceId=TARGET["ResourceId"])[
        "ScalingPolicies"
    ]


def successful(scaling: Any) -> dict[str, Any] | None:
    activities = scaling.describe_scaling_activities(ServiceNamespace="sagemaker")["ScalingActivities"]
    return next((each for each in activities if each["StatusCode"] == "Successful"), None)


STEP = {"AdjustmentType": "ChangeInCapacity", "StepAdjustments": [{"ScalingAdjustment": -1}]}
GAP = [
    {"MetricIntervalUpperBound": -5.0, "ScalingAdjustment": -2},
    {"MetricIntervalLowerBound": -4.0, "ScalingAdjustment": -1},
]


@pytest.mark.parametrize(
    ("call", "arguments", "code", "message"),
    [
        ("register_scalable_target", {"MinCapacity": 5, "MaxCapacity": 2}, "ValidationException", "less than minimum"),
        ("register_scalable_target", {"MinCapacity": 0}, "ValidationException", "at least 1"),
        (
            "register_scalable_target",
            {"ResourceId": "endpoint/nowhere/variant/primary", "MinCapacity": 1, "MaxCapacity": 2},
            "ValidationException",
            "doesn't exist",
        ),
        ("register_scalable_target", {"ResourceId": "endpoint/x"}, "ValidationException", "Unsupported resource ID"),
        (
            "put_scaling_policy",
            {"PolicyName": "p", "PolicyType": "StepScaling", "ResourceId": "endpoint/x/variant/y"},
            "ObjectNotFoundException",
            "No scalable target",
        ),
        ("put_scaling_policy", {"PolicyName": "p", "PolicyType": "TargetTrackingScaling"}, "ValidationException", ""),
        (
            "put_scaling_policy",
            {
                "PolicyName": "p",
                "PolicyType": "StepScaling",
                "StepScalingPolicyConfiguration": {**STEP, "StepAdjustments": GAP},
            },
            "ValidationException",
            "gaps or overlap",
        ),
        ("delete_scaling_policy", {"PolicyName": "nothing"}, "ObjectNotFoundException", "No scaling policy"),
        (
            "put_scheduled_action",
            {"ScheduledActionName": "s", "Schedule": "sometimes"},
            "ValidationException",
            "syntax",
        ),
    ],
)
def test_refusals(scaling: Any, call: str, arguments: dict[str, Any], code: str, message: str) -> None:
    with pytest.raises(ClientError) as caught:
        getattr(scaling, call)(**{**TARGET, **arguments})
    assert caught.value.response["Error"]["Code"] == code
    assert message in caught.value.response["Error"]["Message"]


def test_load_scales_out_and_quiet_scales_in(seeded: Up, scaling: Any) -> None:
    """One 10 s period each: a step policy on an alarm of its own, the whole way from requests to instances."""
    step = {
        "AdjustmentType": "ChangeInCapacity",
        "StepAdjustments": [{"MetricIntervalLowerBound": 0.0, "ScalingAdjustment": 1}],
        "Cooldown": 300,
    }
    policy = scaling.put_scaling_policy(
        **TARGET, PolicyName="step", PolicyType="StepScaling", StepScalingPolicyConfiguration=step
    )
    cloudwatch = seeded.client("cloudwatch")
    cloudwatch.put_metric_alarm(
        AlarmName="busy",
        Namespace="AWS/SageMaker",
        MetricName="ConcurrentRequestsPerModel",
        Dimensions=[{"Name": "EndpointName", "Value": ENDPOINT}, {"Name": "VariantName", "Value": VARIANT}],
        Statistic="Maximum",
        Period=10,
        EvaluationPeriods=1,
        Threshold=3,
        ComparisonOperator="GreaterThanOrEqualToThreshold",
        AlarmActions=[policy["PolicyARN"]],
    )
    runtime = seeded.client("sagemaker-runtime")
    playing = [
        runtime.invoke_endpoint_with_response_stream(EndpointName=ENDPOINT, Body=b'{"pieces": 200, "gap_s": 0.1}')
        for _ in range(4)
    ]
    until(lambda: len(seeded.instances()) == 2, timeout_s=25)
    seeded.in_service()
    for answer in playing:
        answer["Body"].close()
    activity = until(lambda: successful(scaling))
    assert "alarm busy in state ALARM triggered policy step" in activity["Cause"]
    changes = cloudwatch.describe_alarm_history(AlarmName="busy", HistoryItemType="StateUpdate")["AlarmHistoryItems"]
    assert any(change["HistorySummary"].endswith("to ALARM") for change in changes)
    cloudwatch.delete_alarms(AlarmNames=["busy"])
    scaling.register_scalable_target(**TARGET, MinCapacity=1, MaxCapacity=1)
    until(lambda: len(seeded.instances()) == 1)
    seeded.in_service()
