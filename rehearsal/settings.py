"""Everything one rehearsal is started with; parsed once at the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from rehearsal.errors import UsageError

MetricScope = Literal["per_instance", "variant_total"]
AlarmStatistic = Literal["Maximum", "Average"]

ACCOUNT = "123456789012"
"""moto's account; every ARN of ours carries it."""

ACCESS_KEY = "rehearsal"
SECRET_KEY = "rehearsal"

DEFAULT_STAGES_S = {"provisioning": 3.0, "container_start": 0.5, "health_check": 1.0, "routing": 0.0}
"""What AWS does around a container's own start. provisioning: until the first line in the instance's log stream.
container_start: from there until the container's process runs. health_check: from the container's first healthy ping
until InService. routing: from InService until an instance that joins others gets its first request."""
STAGE_NAMES = tuple(DEFAULT_STAGES_S)
HIGHEST_PORT = 65535


@dataclass(frozen=True, slots=True)
class Settings:
    """One rehearsal."""

    port: int = 0
    """0 = any free port."""
    region: str = "us-east-1"
    command: str = ""
    """What instances run instead of the container server, split as a shell would."""
    stages_s: dict[str, float] = field(default_factory=lambda: dict(DEFAULT_STAGES_S))
    time_scale: float = 1.0
    """Scripted stages last stages_s / time_scale."""
    metric_scope: MetricScope = "per_instance"
    alarm_statistic: AlarmStatistic = "Maximum"
    """Of the alarms that target tracking manages; AWS does not document which."""
    invocation_limit_s: float = 60.0
    instance_quota: int = 20
    """Instances of one type that the account may run."""
    bidi: bool = False

    def stage_s(self, name: str) -> float:
        """Wall seconds the scripted stage ``name`` takes."""
        return self.stages_s.get(name, 0.0) / self.time_scale

    def to_json(self) -> str:
        """Inverse of ``from_json``."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Inverse of ``to_json``."""
        body: dict[str, Any] = json.loads(text)
        return cls(**body)


def default_region() -> str:
    """The region a caller's SDK would use."""
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"


def parse_stages(text: str) -> dict[str, float]:
    """``capacity=180.8,registration=20.7``; stages left out take no time."""
    stages: dict[str, float] = {}
    for item in filter(None, text.split(",")):
        name, _, value = item.partition("=")
        if name not in STAGE_NAMES:
            raise UsageError(f"--stages: unknown stage {name!r}", f"stages are {', '.join(STAGE_NAMES)}")
        stages[name] = parse_seconds(f"--stages {name}", value)
    return stages


def parse_seconds(flag: str, text: str) -> float:
    """A number of seconds, zero or more."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e6:
        raise UsageError(f"{flag}: {text!r} is not a number of seconds", "write for example 2.5")
    return value


def parse_scale(flag: str, text: str) -> float:
    """A factor greater than zero."""
    value = parse_seconds(flag, text)
    if value == 0:
        raise UsageError(f"{flag} must be greater than zero", "10 runs scripted stages ten times faster")
    return value


def parse_port(flag: str, text: str) -> int:
    """0 = any free one."""
    if not text.isdigit() or int(text) > HIGHEST_PORT:
        raise UsageError(f"{flag}: {text!r} is not a port", f"0 to {HIGHEST_PORT}; without {flag} any free one is used")
    return int(text)


def parse_pairs(flag: str, items: Sequence[str]) -> dict[str, str]:
    """``KEY=VALUE`` items of a repeated flag."""
    pairs: dict[str, str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise UsageError(f"{flag}: {item!r} is not KEY=VALUE", f"write for example {flag} MAX_QUEUE_DEPTH=50")
        pairs[key] = value
    return pairs


def parse_choice(flag: str, text: str, kind: Any) -> Any:
    """One of the values of a Literal type."""
    if text not in get_args(kind):
        raise UsageError(f"{flag}: {text!r} is not one of {', '.join(get_args(kind))}")
    return text
