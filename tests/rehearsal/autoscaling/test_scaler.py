"""Policies acting on alarms: cooldowns, suspension, bounds, priorities. Endpoints and clock are stand-ins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from moto.cloudwatch.models import cloudwatch_backends

from rehearsal.autoscaling.registry import Registry
from rehearsal.autoscaling.scaler import Scaler
from rehearsal.aws.service import ApiError
from rehearsal.cloudwatch.alarm_book import AlarmBook
from rehearsal.cloudwatch.alarms import Evaluator
from rehearsal.cloudwatch.store import Datapoint, MetricStore, metric_id
from rehearsal.settings import ACCOUNT, Settings

T0 = 1_800_000_001.5
TARGET: dict[str, Any] = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/speech/variant/primary",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
DIMENSIONS = [{"Name": "EndpointName", "Value": "speech"}, {"Name": "VariantName", "Value": "primary"}]
CONCURRENCY = metric_id("AWS/SageMaker", "ConcurrentRequestsPerModel", DIMENSIONS)


@dataclass
class OneFleet:
    """Endpoints that hold one fleet; a change is an update until ``settle``."""

    desired: int = 1
    refuses: bool = False
    asked: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.endpoint = SimpleNamespace(status="InService", failure_reason=None, fleet=lambda _: self)
        self.all = {"speech": self.endpoint}

    def set_desired(self, _endpoint: str, _variant: str, desired: int) -> None:
        if self.refuses:
            raise ApiError("ResourceLimitExceeded", "the quota is 1")
        self.desired = desired
        self.asked.append(desired)
        self.endpoint.status = "Updating"

    def settle(self) -> None:
        self.endpoint.status = "InService"


class Bench:
    """Feeds a concurrency reading every 10 s and lets the scaler look after each."""

    def __init__(self) -> None:
        self.now = T0
        cloudwatch_backends[ACCOUNT]["us-east-1"].alarms.clear()
        self.fleet = OneFleet()
        self.store = MetricStore(clock=lambda: self.now)
        book = AlarmBook("us-east-1")
        self.registry = Registry(Settings(), book, lambda *_: True)
        self.api = self.registry.operations()
        endpoints: Any = self.fleet
        self.scaler = Scaler(self.registry, endpoints, Evaluator(self.store, book), clock=lambda: self.now)

    def register(self, low: int = 1, high: int = 10) -> None:
        self.api["RegisterScalableTarget"]({**TARGET, "MinCapacity": low, "MaxCapacity": high})

    def suspend(self, **flags: bool) -> None:
        self.api["RegisterScalableTarget"]({**TARGET, "SuspendedState": flags})

    def track(self, target: float = 10.0, **more: Any) -> None:
        configuration = {
            "TargetValue": target,
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"
            },
            "DisableScaleIn": True,
            "ScaleOutCooldown": 30,
            **more,
        }
        self.api["PutScalingPolicy"](
            {
                **TARGET,
                "PolicyName": "out",
                "PolicyType": "TargetTrackingScaling",
                "TargetTrackingScalingPolicyConfiguration": configuration,
            }
        )

    def step_in(self, threshold: float, missing: str = "breaching", cooldown_s: int = 300) -> None:
        answer = self.api["PutScalingPolicy"](
            {
                **TARGET,
                "PolicyName": "in",
                "PolicyType": "StepScaling",
                "StepScalingPolicyConfiguration": {
                    "AdjustmentType": "ChangeInCapacity",
                    "StepAdjustments": [{"MetricIntervalUpperBound": 0.0, "ScalingAdjustment": -1}],
                    "Cooldown": cooldown_s,
                },
            }
        )
        cloudwatch_backends[ACCOUNT]["us-east-1"].put_metric_alarm(
            name="in",
            namespace="AWS/SageMaker",
            metric_name="ConcurrentRequestsPerModel",
            comparison_operator="LessThanThreshold",
            evaluation_periods=3,
            period=60,
            threshold=threshold,
            statistic="Maximum",
            description="",
            dimensions=DIMENSIONS,
            alarm_actions=[answer["PolicyARN"]],
            treat_missing_data=missing,
        )

    def run(self, seconds: int, reading: float | None) -> None:
        for _ in range(seconds // 10):
            self.now += 10
            if reading is not None:
                start = self.now // 10 * 10 - 10
                self.store.put(CONCURRENCY, Datapoint.of(start, {reading: 1.0}, high_resolution=True))
            self.scaler.step()

    @property
    def activities(self) -> list[dict[str, Any]]:
        return self.api["DescribeScalingActivities"]({"ServiceNamespace": "sagemaker"})["ScalingActivities"]


@pytest.fixture
def bench() -> Iterator[Bench]:
    yield Bench()
    cloudwatch_backends[ACCOUNT]["us-east-1"].alarms.clear()


def test_tracking_scales_out_after_three_readings(bench: Bench) -> None:
    bench.register()
    bench.track(target=10)
    bench.run(20, reading=25)
    assert bench.fleet.asked == []
    bench.run(10, reading=25)
    assert bench.fleet.asked == [3]
    [activity] = bench.activities
    assert activity["StatusCode"] == "InProgress"
    assert "triggered policy out" in activity["Cause"]
    bench.fleet.settle()
    bench.scaler.step()
    assert bench.activities[0]["StatusCode"] == "Successful"


def test_never_above_the_maximum(bench: Bench) -> None:
    bench.register(high=2)
    bench.track(target=10)
    bench.run(60, reading=95)
    assert bench.fleet.asked == [2]


def test_a_cooldown_counts_what_was_asked_for(bench: Bench) -> None:
    bench.register()
    bench.track(target=10, ScaleOutCooldown=60)
    bench.run(30, reading=20)
    assert bench.fleet.asked == [2]
    bench.fleet.settle()
    bench.run(50, reading=20)
    assert bench.fleet.asked == [2]
    bench.run(10, reading=20)
    assert bench.fleet.asked == [2, 4]


def test_a_larger_breach_scales_out_within_the_cooldown(bench: Bench) -> None:
    bench.register()
    bench.track(target=10, ScaleOutCooldown=300)
    bench.run(30, reading=20)
    bench.fleet.settle()
    bench.run(10, reading=45)
    assert bench.fleet.asked == [2, 5]


def test_nothing_happens_while_the_endpoint_is_updating(bench: Bench) -> None:
    bench.register()
    bench.track(target=10, ScaleOutCooldown=10)
    bench.run(30, reading=20)
    bench.run(60, reading=80)
    assert bench.fleet.asked == [2]
    bench.fleet.settle()
    bench.run(10, reading=20)
    assert bench.fleet.asked == [2, 4]


def test_suspension_stops_scaling_out_and_lifting_it_lets_it_go_on(bench: Bench) -> None:
    bench.register()
    bench.track(target=10)
    bench.suspend(DynamicScalingOutSuspended=True)
    bench.run(60, reading=30)
    assert bench.fleet.asked == []
    bench.suspend(DynamicScalingOutSuspended=False)
    bench.run(10, reading=30)
    assert bench.fleet.asked == [3]


def test_tracking_without_scale_in_never_scales_in(bench: Bench) -> None:
    bench.register()
    bench.fleet.desired = 4
    bench.track(target=10)
    bench.run(1200, reading=0)
    assert bench.fleet.asked == []


def test_tracking_scales_in_after_fifteen_minutes(bench: Bench) -> None:
    bench.register()
    bench.fleet.desired = 4
    bench.track(target=10, DisableScaleIn=False, ScaleInCooldown=60)
    bench.run(890, reading=4)
    assert bench.fleet.asked == []
    bench.run(10, reading=4)
    assert bench.fleet.asked == [2]


@pytest.mark.parametrize("reading", [3.0, None], ids=["quiet", "no data"])
def test_an_idle_fleet_scales_in_one_by_one_to_the_minimum(bench: Bench, reading: float | None) -> None:
    bench.register(low=2)
    bench.fleet.desired = 4
    bench.step_in(threshold=5, cooldown_s=120)
    bench.run(60, reading=reading)
    for _ in range(12):
        bench.fleet.settle()
        bench.run(60, reading=reading)
    assert bench.fleet.asked == [3, 2]


def test_a_scale_in_waits_for_its_cooldown(bench: Bench) -> None:
    bench.register()
    bench.fleet.desired = 4
    bench.step_in(threshold=5, missing="notBreaching", cooldown_s=300)
    bench.run(300, reading=1)
    bench.fleet.settle()
    assert bench.fleet.asked == [3]
    bench.run(100, reading=1)
    assert bench.fleet.asked == [3]
    bench.run(120, reading=1)
    assert bench.fleet.asked == [3, 2]


def test_missing_data_as_missing_never_scales_in(bench: Bench) -> None:
    bench.register()
    bench.fleet.desired = 4
    bench.step_in(threshold=5, missing="missing")
    bench.run(600, reading=None)
    assert bench.fleet.asked == []


def test_scaling_out_wins_over_scaling_in(bench: Bench) -> None:
    bench.register()
    bench.fleet.desired = 2
    bench.track(target=1)
    bench.step_in(threshold=50)
    bench.suspend(DynamicScalingOutSuspended=True, DynamicScalingInSuspended=True)
    bench.run(300, reading=2)
    bench.suspend(DynamicScalingOutSuspended=False, DynamicScalingInSuspended=False)
    bench.run(60, reading=2)
    assert bench.fleet.asked == [4]


@pytest.mark.parametrize(("low", "high", "expected"), [(3, 5, [3]), (1, 1, [1]), (1, 5, [])])
def test_new_bounds_pull_the_count_in(bench: Bench, low: int, high: int, expected: list[int]) -> None:
    bench.fleet.desired = 2
    bench.register(low, high)
    bench.scaler.step()
    assert bench.fleet.asked == expected


def test_a_refused_change_is_a_failed_activity(bench: Bench) -> None:
    bench.register()
    bench.track(target=10)
    bench.fleet.refuses = True
    bench.run(30, reading=30)
    assert bench.activities[0]["StatusCode"] == "Failed"
    assert "the quota is 1" in bench.activities[0]["StatusMessage"]


def test_a_scheduled_action_moves_the_bounds(bench: Bench) -> None:
    bench.register(1, 5)
    bench.api["PutScheduledAction"](
        {
            **TARGET,
            "ScheduledActionName": "morning",
            "Schedule": "rate(1 minute)",
            "ScalableTargetAction": {"MinCapacity": 3, "MaxCapacity": 6},
        }
    )
    [item] = bench.registry.scheduled.values()
    item.due_s = bench.now + 15
    bench.run(10, reading=None)
    assert bench.fleet.asked == []
    bench.run(10, reading=None)
    assert bench.fleet.asked == [3]
    [target] = bench.api["DescribeScalableTargets"](TARGET)["ScalableTargets"]
    assert (target["MinCapacity"], target["MaxCapacity"]) == (3, 6)


def test_new_bounds_wait_for_an_update_to_end(bench: Bench) -> None:
    bench.fleet.endpoint.status = "Updating"
    bench.register(3, 5)
    bench.scaler.step()
    assert bench.fleet.asked == []
    bench.fleet.settle()
    bench.scaler.step()
    assert bench.fleet.asked == [3]


def test_suspended_bounds_are_not_enforced(bench: Bench) -> None:
    bench.register(1, 5)
    bench.suspend(DynamicScalingOutSuspended=True, DynamicScalingInSuspended=True)
    bench.register(3, 5)
    bench.scaler.step()
    assert bench.fleet.asked == []
