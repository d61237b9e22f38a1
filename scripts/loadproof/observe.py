"""Watch an endpoint while it scales: counts, alarm states, activities, and what the instances cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any

from planner.artifacts.validate import AlarmChange, FleetPoint, ScalingActivity
from scripts.aws.clients import aws_errors, control
from scripts.aws.endpoint import LiveEndpoint, read_counts
from scripts.aws.policies import alarms
from scripts.aws.scaling import DIMENSION, NAMESPACE, resource_id
from scripts.aws.waiting import Clock

# Alarms change every 10 s at most; counts are what detection is read from.
ALARM_EVERY_S = 5.0


@dataclass
class Watch:
    """Everything seen, in seconds since ``started``; only changes are kept."""

    live: LiveEndpoint
    started: datetime
    clock: Clock
    alarm_names: list[str]
    fleet: list[FleetPoint] = field(default_factory=list)
    alarm_changes: list[AlarmChange] = field(default_factory=list)
    instance_s: float = 0.0
    _states: dict[str, str] = field(default_factory=dict)
    _looked_s: float | None = None
    _alarms_looked_s: float = float("-inf")

    def look(self) -> FleetPoint:
        """One look at the counts, and at the alarms when it is time."""
        now_s = self.elapsed_s()
        counts = read_counts(self.live.name, self.live.variant)
        point = FleetPoint(at_s=round(now_s, 2), desired=counts.desired, current=counts.current, status=counts.status)
        if self._looked_s is not None:
            self.instance_s += max(self.fleet[-1].desired, self.fleet[-1].current) * (now_s - self._looked_s)
        self._looked_s = now_s
        last = self.fleet[-1] if self.fleet else None
        if last is None or (last.desired, last.current, last.status) != (point.desired, point.current, point.status):
            self.fleet.append(point)
        if now_s - self._alarms_looked_s >= ALARM_EVERY_S:
            self._alarms_looked_s = now_s
            self._look_at_alarms(now_s)
        return point

    def elapsed_s(self) -> float:
        return (self.clock.now() - self.started).total_seconds()

    def activities(self) -> list[ScalingActivity]:
        """Scaling activities since the load began, oldest first."""
        with aws_errors(f"reading the scaling activities of {self.live.name}"):
            pages = (
                control("application-autoscaling")
                .get_paginator("describe_scaling_activities")
                .paginate(
                    ServiceNamespace=NAMESPACE,
                    ResourceId=resource_id(self.live.name, self.live.variant),
                    ScalableDimension=DIMENSION,
                )
            )
            found = [item for page in pages for item in page["ScalingActivities"]]
        mine = [self._activity(item) for item in found if item["StartTime"] >= self.started]
        return sorted(mine, key=lambda activity: activity.at_s)

    def _look_at_alarms(self, now_s: float) -> None:
        for alarm in alarms(self.alarm_names):
            name, state = str(alarm["AlarmName"]), str(alarm["StateValue"])
            if self._states.get(name) != state:
                self._states[name] = state
                self.alarm_changes.append(AlarmChange(at_s=round(now_s, 2), alarm=name, state=state))

    def _activity(self, item: dict[str, Any]) -> ScalingActivity:
        return ScalingActivity(
            at_s=round((item["StartTime"] - self.started).total_seconds(), 2),
            description=item.get("Description", ""),
            cause=item.get("Cause", ""),
            status=item.get("StatusCode", ""),
            message=item.get("StatusMessage", ""),
        )


@dataclass(frozen=True)
class Seen:
    """When the fleet changed; None = it did not."""

    scaled_out_s: float | None
    in_service_s: float | None
    scaled_in_s: float | None


def seen(fleet: list[FleetPoint], instances: int, from_s: float, quiet_from_s: float) -> Seen:
    """First scale-out after ``from_s``, its instance in service, first scale-in after ``quiet_from_s``."""
    out = next((point for point in fleet if point.at_s >= from_s and point.desired > instances), None)
    served = None if out is None else next((p for p in fleet if p.at_s >= out.at_s and p.current > instances), None)
    scaled_in_s = None
    for before, after in pairwise(fleet):
        if after.at_s >= quiet_from_s and after.desired < before.desired:
            scaled_in_s = after.at_s
            break
    return Seen(out.at_s if out else None, served.at_s if served else None, scaled_in_s)
