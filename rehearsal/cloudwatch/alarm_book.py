"""The alarms, where moto keeps them: made by callers through CloudWatch and by target tracking for itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from moto.cloudwatch.models import Alarm, CloudWatchBackend, cloudwatch_backends

from rehearsal.settings import ACCOUNT


class AlarmBook:
    """All alarms of the rehearsal's region."""

    def __init__(self, region: str) -> None:
        self._region = region

    @property
    def _backend(self) -> CloudWatchBackend:
        return cloudwatch_backends[ACCOUNT][self._region]

    def all(self) -> list[Alarm]:
        """Every metric alarm, composite ones left out."""
        return [alarm for alarm in list(self._backend.alarms.values()) if alarm.rule is None]

    def put(self, asked: dict[str, Any]) -> str:
        """Create or change an alarm, given in PutMetricAlarm's words; its ARN."""
        alarm = self._backend.put_metric_alarm(
            name=asked["AlarmName"],
            namespace=asked["Namespace"],
            metric_name=asked["MetricName"],
            comparison_operator=asked["ComparisonOperator"],
            evaluation_periods=asked["EvaluationPeriods"],
            datapoints_to_alarm=asked["DatapointsToAlarm"],
            period=asked["Period"],
            threshold=asked["Threshold"],
            statistic=asked["Statistic"],
            description=asked["AlarmDescription"],
            dimensions=asked.get("Dimensions", []),
            alarm_actions=asked["AlarmActions"],
        )
        return str(alarm.alarm_arn)

    def delete(self, names: Iterable[str]) -> None:
        """Alarms that do not exist are no error."""
        self._backend.delete_alarms(list(names))

    def calling(self, action_arn: str) -> list[dict[str, str]]:
        """Alarms with an action, in DescribeScalingPolicies' words."""
        return [
            {"AlarmName": alarm.name, "AlarmARN": alarm.alarm_arn}
            for alarm in self.all()
            if action_arn in (alarm.alarm_actions or [])
        ]
