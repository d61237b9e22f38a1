"""The scalable target of a variant: what Application Auto Scaling knows and what is suspended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scripts.aws.clients import aws_errors, control

NAMESPACE = "sagemaker"
DIMENSION = "sagemaker:variant:DesiredInstanceCount"


@dataclass(frozen=True)
class Suspended:
    """Which kinds of scaling are switched off."""

    scale_in: bool = False
    scale_out: bool = False
    scheduled: bool = False

    @property
    def bits(self) -> str:
        """Three digits, 1 = suspended: scale-in, scale-out, scheduled."""
        return "".join("1" if flag else "0" for flag in (self.scale_in, self.scale_out, self.scheduled))

    @classmethod
    def from_bits(cls, bits: str) -> Suspended:
        """Inverse of ``bits``."""
        return cls(*(digit == "1" for digit in bits))

    def __str__(self) -> str:
        names = [n for n, on in zip(("scale-in", "scale-out", "scheduled"), self.bits, strict=True) if on == "1"]
        return ", ".join(names) or "nothing"


ALL_SUSPENDED = Suspended(scale_in=True, scale_out=True, scheduled=True)


@dataclass(frozen=True)
class Target:
    """A registered scalable target."""

    min_capacity: int
    max_capacity: int
    suspended: Suspended


def resource_id(endpoint: str, variant: str) -> str:
    """The id every scaling object of a variant carries."""
    return f"endpoint/{endpoint}/variant/{variant}"


def read_target(endpoint: str, variant: str) -> Target | None:
    """The registered target, or None when there is none."""
    with aws_errors(f"reading the scalable target of {endpoint}"):
        found = control("application-autoscaling").describe_scalable_targets(
            ServiceNamespace=NAMESPACE, ResourceIds=[resource_id(endpoint, variant)], ScalableDimension=DIMENSION
        )["ScalableTargets"]
    return _target(found[0]) if found else None


def write_suspended(endpoint: str, variant: str, state: Suspended) -> None:
    """Set the suspended state of a registered target and nothing else."""
    with aws_errors(f"suspending scaling of {endpoint}"):
        control("application-autoscaling").register_scalable_target(
            ServiceNamespace=NAMESPACE,
            ResourceId=resource_id(endpoint, variant),
            ScalableDimension=DIMENSION,
            SuspendedState={
                "DynamicScalingInSuspended": state.scale_in,
                "DynamicScalingOutSuspended": state.scale_out,
                "ScheduledScalingSuspended": state.scheduled,
            },
        )


def _target(raw: dict[str, Any]) -> Target:
    state = raw.get("SuspendedState", {})
    return Target(
        min_capacity=raw["MinCapacity"],
        max_capacity=raw["MaxCapacity"],
        suspended=Suspended(
            scale_in=state.get("DynamicScalingInSuspended", False),
            scale_out=state.get("DynamicScalingOutSuspended", False),
            scheduled=state.get("ScheduledScalingSuspended", False),
        ),
    )
