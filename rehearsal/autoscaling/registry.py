"""What is registered with Application Auto Scaling: targets, policies, scheduled actions, activities, tags."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from rehearsal.autoscaling import managed_alarms
from rehearsal.autoscaling.entities import DIMENSION, NAMESPACE, Policy, Scheduled, Target
from rehearsal.autoscaling.schedule import Schedule, ScheduleError
from rehearsal.aws.service import ApiError, Operation, Params
from rehearsal.cloudwatch.alarm_book import AlarmBook
from rehearsal.settings import ACCOUNT, Settings

ACTIVITIES_KEPT = 1000

VariantExists = Callable[[str, str], bool]
"""Whether (endpoint, variant) is live."""


class Registry:
    """The store behind Application Auto Scaling's operations."""

    def __init__(self, settings: Settings, alarms: AlarmBook, variant_exists: VariantExists) -> None:
        self._settings = settings
        self._alarms = alarms
        self._variant_exists = variant_exists
        self.targets: dict[str, Target] = {}
        self.policies: dict[str, Policy] = {}
        self.scheduled: dict[tuple[str, str], Scheduled] = {}
        self.activities: list[Params] = []
        self.bounds_changed: list[Target] = []
        """Targets whose new bounds were not enforced yet."""
        self._tags: dict[str, dict[str, str]] = {}

    def operations(self) -> dict[str, Operation]:
        """By AWS's names."""
        return {
            "RegisterScalableTarget": self._register,
            "DescribeScalableTargets": self._describe_targets,
            "DeregisterScalableTarget": self._deregister,
            "PutScalingPolicy": self._put_policy,
            "DescribeScalingPolicies": self._describe_policies,
            "DeleteScalingPolicy": self._delete_policy,
            "PutScheduledAction": self._put_scheduled,
            "DescribeScheduledActions": self._describe_scheduled,
            "DeleteScheduledAction": self._delete_scheduled,
            "DescribeScalingActivities": self._describe_activities,
            "ListTagsForResource": self._list_tags,
            "TagResource": self._tag,
            "UntagResource": self._untag,
        }

    def is_registered(self, endpoint: str, variant: str) -> bool:
        """Whether a variant is a scalable target."""
        return f"endpoint/{endpoint}/variant/{variant}" in self.targets

    def policy_by_arn(self, policy_arn: str) -> Policy | None:
        """What an alarm action names."""
        return next((policy for policy in self.policies.values() if policy.arn == policy_arn), None)

    def note(self, activity: Params) -> Params:
        """Remember a scaling activity; the newest comes first in answers."""
        self.activities.insert(0, activity)
        del self.activities[ACTIVITIES_KEPT:]
        return activity

    def _register(self, params: Params) -> Params:
        _only_variants(params)
        resource_id = params["ResourceId"]
        parts = resource_id.split("/")
        if len(parts) != 4 or parts[0] != "endpoint" or parts[2] != "variant":
            raise ApiError("ValidationException", f"Unsupported resource ID: {resource_id}")
        target = self.targets.get(resource_id)
        if target is None and not self._variant_exists(parts[1], parts[3]):
            raise ApiError(
                "ValidationException", f"SageMaker endpoint variant doesn't exist, resource ID: {resource_id}"
            )
        low = params.get("MinCapacity", target.low if target else None)
        high = params.get("MaxCapacity", target.high if target else None)
        low, high = _checked_bounds(low, high)
        if target is None:
            target = self.targets[resource_id] = Target(resource_id, self._new_arn(), low, high, _running())
        target.low, target.high = low, high
        target.suspended.update(params.get("SuspendedState") or {})
        if "MinCapacity" in params or "MaxCapacity" in params:
            self.bounds_changed.append(target)
        self._tags.setdefault(target.arn, {}).update(params.get("Tags") or {})
        return {"ScalableTargetARN": target.arn}

    def _new_arn(self) -> str:
        return f"arn:aws:application-autoscaling:{self._settings.region}:{ACCOUNT}:scalable-target/{uuid.uuid4().hex}"

    def _describe_targets(self, params: Params) -> Params:
        wanted = params.get("ResourceIds")
        found = [target for target in self.targets.values() if not wanted or target.resource_id in wanted]
        if params["ServiceNamespace"] != NAMESPACE or params.get("ScalableDimension", DIMENSION) != DIMENSION:
            found = []
        return _page(params, "ScalableTargets", [target.describe() for target in found])

    def _deregister(self, params: Params) -> Params:
        target = self._target(params)
        for policy in [each for each in self.policies.values() if each.target is target]:
            self._drop_policy(policy)
        for key in [key for key in self.scheduled if key[0] == target.resource_id]:
            del self.scheduled[key]
        del self.targets[target.resource_id]
        self._tags.pop(target.arn, None)
        return {}

    def _put_policy(self, params: Params) -> Params:
        target = self._target(params)
        key = f"{target.resource_id}/{params['PolicyName']}"
        known = self.policies.get(key)
        kind = params.get("PolicyType") or (known.body["PolicyType"] if known else "StepScaling")
        if known and known.body["PolicyType"] != kind:
            raise ApiError("ValidationException", "You can't change the policy type of an existing policy.")
        body: Params = {**(known.body if known else {}), **params, "PolicyType": kind}
        managed_alarms.check(body)
        body.setdefault("PolicyARN", self._policy_arn(target, params["PolicyName"]))
        body.setdefault("CreationTime", time.time())
        if kind == "TargetTrackingScaling":
            self._alarms.delete(alarm["AlarmName"] for alarm in body.get("Alarms", []))
            body["Alarms"] = managed_alarms.create(self._alarms, self._settings, body)
        else:
            body["Alarms"] = []
        policy = self.policies[key] = known or Policy(target, body)
        policy.body = body
        return {"PolicyARN": body["PolicyARN"], "Alarms": body["Alarms"]}

    def _policy_arn(self, target: Target, name: str) -> str:
        return (
            f"arn:aws:autoscaling:{self._settings.region}:{ACCOUNT}:scalingPolicy:{uuid.uuid4()}:"
            f"resource/{NAMESPACE}/{target.resource_id}:policyName/{name}"
        )

    def _describe_policies(self, params: Params) -> Params:
        names = params.get("PolicyNames")
        found = [
            self._described(policy)
            for policy in self._of(params, self.policies.values())
            if not names or policy.name in names
        ]
        return _page(params, "ScalingPolicies", found)

    def _described(self, policy: Policy) -> Params:
        """A step policy's alarms are those that name it."""
        if policy.body["PolicyType"] == "TargetTrackingScaling":
            return policy.body
        return {**policy.body, "Alarms": self._alarms.calling(policy.arn)}

    def _delete_policy(self, params: Params) -> Params:
        policy = self.policies.get(f"{params['ResourceId']}/{params['PolicyName']}")
        if policy is None:
            raise ApiError("ObjectNotFoundException", f"No scaling policy found for {_named(params)}")
        self._drop_policy(policy)
        return {}

    def _drop_policy(self, policy: Policy) -> None:
        if policy.body["PolicyType"] == "TargetTrackingScaling":
            self._alarms.delete(alarm["AlarmName"] for alarm in policy.body["Alarms"])
        del self.policies[f"{policy.target.resource_id}/{policy.name}"]

    def _put_scheduled(self, params: Params) -> Params:
        target = self._target(params)
        key = (target.resource_id, params["ScheduledActionName"])
        known = self.scheduled.get(key)
        body: Params = {**(known.body if known else {}), **params}
        if "Schedule" not in body:
            raise ApiError("ValidationException", "Schedule is required")
        try:
            schedule = Schedule.parse(body["Schedule"], body.get("Timezone", "UTC"))
        except ScheduleError as error:
            raise ApiError("ValidationException", str(error)) from None
        body.setdefault("ScheduledActionARN", f"{target.arn}:scheduledAction/{uuid.uuid4()}:{key[1]}")
        body.setdefault("CreationTime", time.time())
        self.scheduled[key] = Scheduled(target, body, schedule, schedule.after(time.time()))
        return {}

    def _describe_scheduled(self, params: Params) -> Params:
        names = params.get("ScheduledActionNames")
        found = [
            item.body
            for item in self._of(params, self.scheduled.values())
            if not names or item.body["ScheduledActionName"] in names
        ]
        return _page(params, "ScheduledActions", found)

    def _delete_scheduled(self, params: Params) -> Params:
        if self.scheduled.pop((params["ResourceId"], params["ScheduledActionName"]), None) is None:
            raise ApiError("ObjectNotFoundException", f"No scheduled action found for {_named(params)}")
        return {}

    def _describe_activities(self, params: Params) -> Params:
        wanted = params.get("ResourceId")
        found = [activity for activity in self.activities if wanted in (None, activity["ResourceId"])]
        return _page(params, "ScalingActivities", found)

    def _target(self, params: Params) -> Target:
        _only_variants(params)
        target = self.targets.get(params["ResourceId"])
        if target is None:
            raise ApiError("ObjectNotFoundException", f"No scalable target registered for {_named(params)}")
        return target

    def _of(self, params: Params, items: Iterable[Any]) -> list[Any]:
        """Items of the resource a describe call asks for."""
        wanted = params.get("ResourceId")
        return [item for item in items if wanted in (None, item.target.resource_id)]

    def _list_tags(self, params: Params) -> Params:
        return {"Tags": self._tags_of(params)}

    def _tag(self, params: Params) -> Params:
        self._tags_of(params).update(params["Tags"])
        return {}

    def _untag(self, params: Params) -> Params:
        for key in params["TagKeys"]:
            self._tags_of(params).pop(key, None)
        return {}

    def _tags_of(self, params: Params) -> dict[str, str]:
        if params["ResourceARN"] not in self._tags:
            raise ApiError("ResourceNotFoundException", f"No scalable target has the ARN {params['ResourceARN']}")
        return self._tags[params["ResourceARN"]]


def _running() -> dict[str, bool]:
    return dict.fromkeys(
        ("DynamicScalingInSuspended", "DynamicScalingOutSuspended", "ScheduledScalingSuspended"), False
    )


def _only_variants(params: Params) -> None:
    if params["ServiceNamespace"] != NAMESPACE or params["ScalableDimension"] != DIMENSION:
        raise ApiError("ValidationException", f"The rehearsal scales {DIMENSION} only.")


def _checked_bounds(low: int | None, high: int | None) -> tuple[int, int]:
    if low is None or high is None:
        raise ApiError("ValidationException", "MinCapacity and MaxCapacity are required to register a new target")
    if low > high:
        raise ApiError("ValidationException", "Maximum capacity cannot be less than minimum capacity")
    if low < 1:
        raise ApiError("ValidationException", "Minimum capacity of a SageMaker variant must be at least 1")
    return low, high


def _named(params: Params) -> str:
    return (
        f"service namespace: {params['ServiceNamespace']}, resource ID: {params['ResourceId']}, "
        f"scalable dimension: {params['ScalableDimension']}"
    )


def _page(params: Params, result: str, items: list[Params]) -> Params:
    start = int(params.get("NextToken", 0))
    end = start + params.get("MaxResults", 50)
    answer: Params = {result: items[start:end]}
    if end < len(items):
        answer["NextToken"] = str(end)
    return answer
