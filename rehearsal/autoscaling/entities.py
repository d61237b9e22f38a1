"""What Application Auto Scaling keeps: targets, policies, scheduled actions, activities."""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from rehearsal.autoscaling.schedule import Schedule
from rehearsal.aws.service import Params
from rehearsal.settings import ACCOUNT

SERVICE_ROLE = (
    f"arn:aws:iam::{ACCOUNT}:role/aws-service-role/sagemaker.application-autoscaling.amazonaws.com/"
    "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
)
NAMESPACE = "sagemaker"
DIMENSION = "sagemaker:variant:DesiredInstanceCount"


@dataclass(eq=False)
class Target:
    """A scalable target; the endpoint it names may be gone."""

    resource_id: str
    arn: str
    low: int
    high: int
    suspended: dict[str, bool]
    created_s: float = field(default_factory=time.time)

    @property
    def endpoint(self) -> str:
        """From endpoint/NAME/variant/VARIANT."""
        return self.resource_id.split("/")[1]

    @property
    def variant(self) -> str:
        """From endpoint/NAME/variant/VARIANT."""
        return self.resource_id.split("/")[3]

    def describe(self) -> Params:
        """As DescribeScalableTargets answers."""
        return {
            "ServiceNamespace": NAMESPACE,
            "ResourceId": self.resource_id,
            "ScalableDimension": DIMENSION,
            "MinCapacity": self.low,
            "MaxCapacity": self.high,
            "RoleARN": SERVICE_ROLE,
            "CreationTime": self.created_s,
            "SuspendedState": dict(self.suspended),
            "ScalableTargetARN": self.arn,
        }


@dataclass(eq=False)
class Policy:
    """A scaling policy, and what it did last."""

    target: Target
    body: Params
    last_out_s: float = -1e18
    last_out_from: int = 0
    last_in_s: float = -1e18

    @property
    def name(self) -> str:
        """Unique for its target."""
        return str(self.body["PolicyName"])

    @property
    def arn(self) -> str:
        """What alarms call."""
        return str(self.body["PolicyARN"])


@dataclass(eq=False)
class Scheduled:
    """A scheduled action and when it is due next; None = never again."""

    target: Target
    body: Params
    schedule: Schedule
    due_s: float | None


def activity(target: Target, description: str, cause: str, **more: Any) -> Params:
    """As DescribeScalingActivities answers."""
    return {
        "ActivityId": secrets.token_hex(16),
        "ServiceNamespace": NAMESPACE,
        "ResourceId": target.resource_id,
        "ScalableDimension": DIMENSION,
        "Description": description,
        "Cause": cause,
        "StartTime": time.time(),
        **more,
    }
