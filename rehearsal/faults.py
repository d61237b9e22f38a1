"""Faults on request: what is switched on, with which parameters. Whoever is affected asks."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from rehearsal.errors import UsageError


@dataclass(frozen=True, slots=True)
class Kind:
    """A fault that exists: what it does and its parameters with their defaults."""

    does: str
    parameters: Mapping[str, float | str] = field(default_factory=dict)


ROLLED_BACK = "The deployment was rolled back because one or more alarms were in state ALARM."

KINDS: dict[str, Kind] = {
    "no-capacity": Kind("no new instance is found; the update fails after after_s", {"after_s": 5.0}),
    "quota": Kind("the account may run this many instances of one type", {"value": 1.0}),
    "unhealthy": Kind("new containers never pass their health check; the update fails after after_s", {"after_s": 5.0}),
    "rollback": Kind("new instances come up, and the update is rolled back", {"reason": ROLLED_BACK}),
    "crash": Kind("an instance's container is killed once it holds in_flight requests", {"in_flight": 1.0}),
    "throttle": Kind(
        "control-plane calls are refused with ThrottlingException",
        {"rate": 0.5, "count": 0.0, "action": ""},
    ),
    "server-error": Kind(
        "control-plane calls fail with InternalFailure (500)", {"rate": 0.5, "count": 0.0, "action": ""}
    ),
    "late-logs": Kind("log events can be read only delay_s after they were written", {"delay_s": 10.0}),
    "late-metrics": Kind("datapoints can be read only delay_s after their period", {"delay_s": 30.0}),
    "missing-metrics": Kind("SageMaker publishes no datapoints", {}),
    "idle-gaps": Kind("an idle variant publishes nothing instead of zeros", {}),
    "slow-reader": Kind("responses are read from the container at this rate", {"bytes_per_s": 24_000.0}),
    "cut-parts": Kind("responses are cut into payload parts of this size", {"bytes": 1.0}),
    "stream-error": Kind(
        "responses break after this many bytes: ModelStreamError, InternalStreamFailure or reset",
        {"after_bytes": 4800.0, "kind": "ModelStreamError"},
    ),
    "stall": Kind("responses fall silent after this many bytes", {"after_bytes": 4800.0}),
}


class Faults:
    """The faults that are on."""

    def __init__(self, seed: int = 0) -> None:
        self._on: dict[str, dict[str, float | str]] = {}
        self._random = random.Random(seed)

    def set(self, name: str, given: Mapping[str, str]) -> None:
        """Switch a fault on, or change its parameters."""
        kind = KINDS.get(name)
        if kind is None:
            raise UsageError(f"no fault is called {name!r}", f"there are: {', '.join(KINDS)}")
        unknown = sorted(set(given) - set(kind.parameters))
        if unknown:
            allowed = ", ".join(kind.parameters) or "no parameters"
            raise UsageError(f"{name} has no parameter {', '.join(unknown)}", f"it takes {allowed}")
        self._on[name] = {**kind.parameters, **{key: _typed(name, key, value) for key, value in given.items()}}

    def clear(self, name: str | None = None) -> None:
        """Switch one fault off, or all."""
        if name is None:
            self._on.clear()
        else:
            self._on.pop(name, None)

    def on(self, name: str) -> bool:
        """Whether the fault is on."""
        return name in self._on

    def number(self, name: str, parameter: str) -> float:
        """A parameter of a fault that is on."""
        return float(self._on[name][parameter])

    def text(self, name: str, parameter: str) -> str:
        """A parameter of a fault that is on."""
        return str(self._on[name][parameter])

    def active(self) -> dict[str, dict[str, float | str]]:
        """Everything that is on."""
        return {name: dict(parameters) for name, parameters in self._on.items()}

    def hits(self, name: str, action: str) -> bool:
        """Whether this control-plane call meets the fault; a count is used up and then clears it."""
        fault = self._on.get(name)
        if fault is None or (fault["action"] and fault["action"] != action):
            return False
        if not fault["count"]:
            return self._random.random() < float(fault["rate"])
        fault["count"] = float(fault["count"]) - 1
        if not fault["count"]:
            self.clear(name)
        return True


def _typed(name: str, parameter: str, value: str) -> float | str:
    if isinstance(KINDS[name].parameters[parameter], str):
        return value
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"{name} {parameter}: {value!r} is not a number") from None
