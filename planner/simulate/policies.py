"""Scaling policies as Application Auto Scaling documents them, fed with what CloudWatch has published."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from planner.simulate.alarms import Alarm, AlarmSpec, Statistic

# Target tracking on standard metrics as AWS documents it: 3 one-minute datapoints out, 15 ten per cent below in.
STANDARD_PERIOD_S, STANDARD_OUT_DATAPOINTS, STANDARD_IN_DATAPOINTS = 60, 3, 15
SCALE_IN_MARGIN = 0.9


@dataclass(frozen=True)
class Sample:
    """One 10 s period as CloudWatch has it, over the instances in service; None = nothing was published."""

    end_s: float
    concurrency_max: float | None
    invocations_per_instance: float | None
    gpu_pct: float | None
    cpu_pct: float | None


@dataclass(frozen=True)
class FleetView:
    """What the scaling service knows about the variant."""

    now_s: float
    desired: int
    in_service: int


class Policy(Protocol):
    """Decides the desired count; None = leave it."""

    def observe(self, sample: Sample, fleet: FleetView) -> int | None:
        """Take one published sample and say what the fleet should be."""
        ...

    def applied(self, before: int, after: int, now_s: float) -> None:
        """Told when the service really changed the count: cooldowns start here."""
        ...


Metric = Callable[[Sample], float | None]


@dataclass
class TargetTracking:
    """Scale out on the high alarm to ceil(desired x value / target); optionally in on the low one."""

    metric: Metric
    target: float
    high: Alarm
    low: Alarm | None
    out_cooldown_s: float
    in_cooldown_s: float
    _last_out_s: float = -math.inf
    _last_in_s: float = -math.inf

    def observe(self, sample: Sample, fleet: FleetView) -> int | None:
        value = self.metric(sample)
        high_fresh = self.high.feed(value)
        low_fresh = self.low.feed(value) if self.low else False
        if high_fresh and self.high.state == "ALARM" and fleet.now_s - self._last_out_s >= self.out_cooldown_s:
            return max(fleet.desired, self._wanted(fleet, self.high))
        if self.low and low_fresh and self.low.state == "ALARM" and fleet.now_s - self._last_in_s >= self.in_cooldown_s:
            return min(fleet.desired, self._wanted(fleet, self.low))
        return None

    def applied(self, before: int, after: int, now_s: float) -> None:
        if after > before:
            self._last_out_s = now_s
        else:
            self._last_in_s = now_s

    def _wanted(self, fleet: FleetView, alarm: Alarm) -> int:
        return fleet.desired if alarm.latest is None else math.ceil(fleet.desired * alarm.latest / self.target - 1e-9)


@dataclass
class StepIn:
    """One step down while the alarm holds and the cooldown has passed; missing data counts as idle."""

    metric: Metric
    alarm: Alarm
    cooldown_s: float
    _last_s: float = -math.inf

    def observe(self, sample: Sample, fleet: FleetView) -> int | None:
        fresh = self.alarm.feed(self.metric(sample))
        if fresh and self.alarm.state == "ALARM" and fleet.now_s - self._last_s >= self.cooldown_s:
            return fleet.desired - 1
        return None

    def applied(self, before: int, after: int, now_s: float) -> None:
        if after < before:
            self._last_s = now_s


@dataclass
class Together:
    """Several policies on one variant: the largest wanted count wins, as documented."""

    parts: Sequence[Policy]

    def observe(self, sample: Sample, fleet: FleetView) -> int | None:
        wanted = [w for part in self.parts if (w := part.observe(sample, fleet)) is not None]
        return max(wanted) if wanted else None

    def applied(self, before: int, after: int, now_s: float) -> None:
        for part in self.parts:
            part.applied(before, after, now_s)


@dataclass
class Fixed:
    """Never scales."""

    def observe(self, sample: Sample, fleet: FleetView) -> int | None:  # noqa: ARG002
        return None

    def applied(self, before: int, after: int, now_s: float) -> None:
        """Nothing to remember."""


@dataclass(frozen=True)
class ScheduledAction:
    """At ``at_s`` the variant is set to ``instances``."""

    at_s: float
    instances: int


@dataclass
class Scheduled:
    """Scheduled actions only; SageMaker has no predictive scaling."""

    actions: Sequence[ScheduledAction]
    _done: int = field(default=0)

    def observe(self, sample: Sample, fleet: FleetView) -> int | None:  # noqa: ARG002
        due = [action for action in self.actions[self._done :] if action.at_s <= fleet.now_s]
        if not due:
            return None
        return due[-1].instances

    def applied(self, before: int, after: int, now_s: float) -> None:  # noqa: ARG002
        """An action that found the endpoint updating is tried again until it was applied."""
        self._done = sum(action.at_s <= now_s for action in self.actions)


def concurrency(target: float, threshold_in: float | None, *, out_cooldown_s: float, in_cooldown_s: float) -> Together:
    """What Terraform deploys: high-resolution target tracking out (3 x 10 s), our own alarm in (3 x 60 s)."""
    tracking = TargetTracking(
        metric=_concurrency_max,
        target=target,
        high=Alarm(AlarmSpec("scale-out", target, above=True, period_s=10, datapoints=3)),
        low=None,
        out_cooldown_s=out_cooldown_s,
        in_cooldown_s=in_cooldown_s,
    )
    if threshold_in is None:
        return Together([tracking])
    spec = AlarmSpec("scale-in", threshold_in, above=False, period_s=60, datapoints=3, missing="breaching")
    return Together([tracking, StepIn(_concurrency_max, Alarm(spec), in_cooldown_s)])


def requests_per_instance(per_minute: float, *, out_cooldown_s: float, in_cooldown_s: float) -> TargetTracking:
    """SageMakerVariantInvocationsPerInstance, a minute's sum."""
    return _standard(_invocations, per_minute, "Sum", out_cooldown_s, in_cooldown_s)


def gpu_utilisation(pct: float, *, out_cooldown_s: float, in_cooldown_s: float) -> TargetTracking:
    """Custom-metric target tracking on GPUUtilization."""
    return _standard(_gpu, pct, "Average", out_cooldown_s, in_cooldown_s)


def cpu_utilisation(pct: float, *, out_cooldown_s: float, in_cooldown_s: float) -> TargetTracking:
    """Custom-metric target tracking on CPUUtilization."""
    return _standard(_cpu, pct, "Average", out_cooldown_s, in_cooldown_s)


def _standard(
    metric: Metric, target: float, statistic: Statistic, out_cooldown_s: float, in_cooldown_s: float
) -> TargetTracking:
    high = AlarmSpec("high", target, True, STANDARD_PERIOD_S, STANDARD_OUT_DATAPOINTS, statistic)
    low = AlarmSpec("low", target * SCALE_IN_MARGIN, False, STANDARD_PERIOD_S, STANDARD_IN_DATAPOINTS, statistic)
    return TargetTracking(metric, target, Alarm(high), Alarm(low), out_cooldown_s, in_cooldown_s)


def _concurrency_max(sample: Sample) -> float | None:
    return sample.concurrency_max


def _invocations(sample: Sample) -> float | None:
    return sample.invocations_per_instance


def _gpu(sample: Sample) -> float | None:
    return sample.gpu_pct


def _cpu(sample: Sample) -> float | None:
    return sample.cpu_pct
