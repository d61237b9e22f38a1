"""Acts on alarms, bounds and schedules: cooldowns, suspension, limits, activities."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any

from rehearsal.autoscaling import capacity
from rehearsal.autoscaling.entities import Policy, Scheduled, Target, activity
from rehearsal.autoscaling.registry import Registry
from rehearsal.aws.service import ApiError, Params
from rehearsal.cloudwatch.alarms import Evaluator, Firing, note_action
from rehearsal.fleet.variant import Fleet
from rehearsal.sagemaker.endpoints import Endpoint, Endpoints

TICK_S = 0.5
WAITING = "Waiting for change to be fulfilled by sagemaker."
FULFILLED = "Change successfully fulfilled by sagemaker."
DEFAULT_COOLDOWN_S = 300
"""Of a target-tracking policy on SageMaker that names none."""


class Scaler:
    """Once in a while: look at alarms and schedules, and set desired counts through SageMaker's own API."""

    def __init__(
        self,
        registry: Registry,
        endpoints: Endpoints,
        evaluator: Evaluator,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._registry = registry
        self._endpoints = endpoints
        self._evaluator = evaluator
        self._clock = clock
        self._open: list[tuple[Target, Params]] = []

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self.step()
            await asyncio.sleep(TICK_S)

    def step(self) -> None:
        """One look at everything."""
        now = self._clock()
        self._settle()
        self._enforce_bounds()
        self._run_schedules(now)
        firings = self._evaluator.step(now)
        calls = [(policy, firing) for firing in firings for policy in self._called(firing, now)]
        scaled_out = {policy.target for policy, firing in calls if self._scale(policy, firing, now, out=True)}
        for policy, firing in calls:
            if policy.target not in scaled_out:
                self._scale(policy, firing, now, out=False)

    def _called(self, firing: Firing, now: float) -> Iterable[Policy]:
        for action in firing.actions:
            policy = self._registry.policy_by_arn(action)
            note_action(firing.alarm, action, "Successfully executed action", now)
            if policy:
                yield policy

    def _scale(self, policy: Policy, firing: Firing, now: float, *, out: bool) -> bool:
        """Scale out, or in, when the policy wants it and nothing forbids it; whether it did."""
        found = self._live(policy.target)
        if found is None:
            return False
        fleet = found[1]
        wanted = self._wanted(policy, firing, self._base(policy, fleet.desired, now, out=out))
        wanted = min(max(wanted, policy.target.low), policy.target.high)
        if (wanted <= fleet.desired) if out else (wanted >= fleet.desired):
            return False
        side = "DynamicScalingOutSuspended" if out else "DynamicScalingInSuspended"
        if policy.target.suspended[side] or (not out and now - _last_change_s(policy) < _cooldown_s(policy, "In")):
            return False
        before = fleet.desired
        cause = f"monitor alarm {firing.alarm.name} in state ALARM triggered policy {policy.name}"
        if not self._set(policy.target, wanted, cause):
            return False
        if out:
            policy.last_out_s, policy.last_out_from = now, before
        else:
            policy.last_in_s = now
        return True

    def _base(self, policy: Policy, desired: int, now: float, *, out: bool) -> int:
        """During a scale-out cooldown the instances already asked for count towards the next step."""
        if out and now - policy.last_out_s < _cooldown_s(policy, "Out"):
            return policy.last_out_from
        return desired

    def _wanted(self, policy: Policy, firing: Firing, base: int) -> int:
        """Without a datapoint a step policy sees a metric exactly at its threshold; tracking does nothing."""
        tracking = policy.body.get("TargetTrackingScalingPolicyConfiguration")
        if tracking:
            return base if firing.value is None else capacity.by_tracking(base, firing.value, tracking["TargetValue"])
        breach = 0.0 if firing.value is None else firing.value - float(firing.alarm.threshold)
        return capacity.by_steps(base, breach, policy.body["StepScalingPolicyConfiguration"])

    def _enforce_bounds(self) -> None:
        """New bounds pull a count that lies outside back in, once the endpoint can be changed."""
        changed, self._registry.bounds_changed = self._registry.bounds_changed, []
        for target in changed:
            found = self._live(target)
            if found is None:
                if target.endpoint in self._endpoints.all:
                    self._registry.bounds_changed.append(target)
                continue
            desired = found[1].desired
            if desired < target.low and not target.suspended["DynamicScalingOutSuspended"]:
                self._set(target, target.low, f"minimum capacity was set to {target.low}")
            elif desired > target.high and not target.suspended["DynamicScalingInSuspended"]:
                self._set(target, target.high, f"maximum capacity was set to {target.high}")

    def _run_schedules(self, now: float) -> None:
        for item in list(self._registry.scheduled.values()):
            if item.due_s is not None and item.due_s <= now:
                item.due_s = item.schedule.after(now)
                if _in_season(item, now) and not item.target.suspended["ScheduledScalingSuspended"]:
                    self._apply(item)

    def _apply(self, item: Scheduled) -> None:
        action: dict[str, Any] = item.body.get("ScalableTargetAction", {})
        target = item.target
        target.low = action.get("MinCapacity", target.low)
        target.high = action.get("MaxCapacity", target.high)
        cause = f"scheduled action name {item.body['ScheduledActionName']} was triggered"
        self._registry.note(
            activity(
                target,
                f"Setting min capacity to {target.low} and max capacity to {target.high}",
                cause,
                EndTime=time.time(),
                StatusCode="Successful",
                StatusMessage=f"Successfully set min capacity to {target.low} and max capacity to {target.high}",
            )
        )
        found = self._live(target)
        if found:
            inside = min(max(found[1].desired, target.low), target.high)
            if inside != found[1].desired:
                self._set(target, inside, cause)

    def _set(self, target: Target, desired: int, cause: str) -> bool:
        description = f"Setting desired instance count to {desired}."
        try:
            self._endpoints.set_desired(target.endpoint, target.variant, desired)
        except ApiError as refused:
            reason = f"Failed to set desired instance count to {desired}. Reason: {refused.message}"
            failed = activity(target, description, cause, StatusCode="Failed", StatusMessage=reason)
            self._registry.note({**failed, "EndTime": time.time()})
            return False
        message = (
            f"Successfully set desired instance count to {desired}. Waiting for change to be fulfilled by sagemaker."
        )
        begun = activity(target, description, cause, StatusCode="InProgress", StatusMessage=message)
        self._open.append((target, self._registry.note(begun)))
        return True

    def _settle(self) -> None:
        """Activities end when the endpoint is in service again, well or not."""
        for target, begun in list(self._open):
            endpoint = self._endpoints.all.get(target.endpoint)
            if endpoint is not None and endpoint.status == "Updating":
                continue
            self._open.remove((target, begun))
            begun["EndTime"] = time.time()
            if endpoint is None or endpoint.failure_reason:
                begun["StatusCode"] = "Unfulfilled"
                begun["StatusMessage"] = endpoint.failure_reason if endpoint else "The endpoint was deleted."
            else:
                begun["StatusCode"] = "Successful"
                begun["StatusMessage"] = begun["StatusMessage"].replace(WAITING, FULFILLED)

    def _live(self, target: Target) -> tuple[Endpoint, Fleet] | None:
        """The target's fleet while it can be changed; SageMaker refuses while an update is in progress."""
        endpoint = self._endpoints.all.get(target.endpoint)
        if endpoint is None or endpoint.status != "InService":
            return None
        fleet = endpoint.fleet(target.variant)
        return (endpoint, fleet) if fleet else None


def _cooldown_s(policy: Policy, side: str) -> float:
    tracking = policy.body.get("TargetTrackingScalingPolicyConfiguration")
    if tracking:
        return float(tracking.get(f"Scale{side}Cooldown", DEFAULT_COOLDOWN_S))
    return float(policy.body["StepScalingPolicyConfiguration"].get("Cooldown", DEFAULT_COOLDOWN_S))


def _last_change_s(policy: Policy) -> float:
    """A scale-in waits after its own policy's last activity in either direction."""
    return max(policy.last_in_s, policy.last_out_s)


def _in_season(item: Scheduled, now: float) -> bool:
    start, end = item.body.get("StartTime"), item.body.get("EndTime")
    return (start is None or float(start) <= now) and (end is None or now <= float(end))
