"""What was measured: two artifacts pair only when these agree field by field."""

from __future__ import annotations

from typing import Any, Literal

from planner.artifacts.base import Strict

Transport = Literal["response-stream", "invoke", "bidi"]

# Measured unbounded and deployed bounded, so it is no part of what is compared.
ADMISSION_BOUND_ENV = "MAX_QUEUE_DEPTH"


class Workload(Strict):
    """The requests that were sent. Our own runs fill every field; None = not published."""

    corpus: str
    corpus_sha256: str | None
    seed: int | None
    response_format: str | None
    voice: str | None = None
    texts: int | None
    chars_min: int
    chars_mean: float
    chars_p50: float | None
    chars_p95: float | None
    chars_max: int


class Fingerprint(Strict):
    """Identity of a measured deployment and its workload."""

    instance_type: str
    image_digest: str
    """``sha256:<64 hex>``."""
    model_data_url: str | None = None
    model_data_hash: str | None = None
    transport: Transport
    container_env: dict[str, str]
    """The container's environment without MAX_QUEUE_DEPTH."""
    workload: Workload


class Mismatch(Strict):
    """One field in which two fingerprints differ."""

    field: str
    first: str
    second: str

    def __str__(self) -> str:
        return f"{self.field}: {self.first} against {self.second}"


def mismatches(first: Fingerprint | None, second: Fingerprint | None) -> list[Mismatch]:
    """Every differing leaf with both values; a missing fingerprint is itself a mismatch."""
    if first is None or second is None:
        return [Mismatch(field="fingerprint", first=_shown(first), second=_shown(second))]
    left, right = _leaves(first.model_dump()), _leaves(second.model_dump())
    return [
        Mismatch(field=field, first=_shown(left.get(field)), second=_shown(right.get(field)))
        for field in sorted(left.keys() | right.keys())
        if left.get(field) != right.get(field)
    ]


def slug(fingerprint: Fingerprint) -> str:
    """Short instance type and 8 hex of the image digest, e.g. ``g5xlarge-8b1b96bc``."""
    instance = fingerprint.instance_type.removeprefix("ml.").replace(".", "")
    return f"{instance}-{fingerprint.image_digest.removeprefix('sha256:')[:8]}"


def _shown(value: object) -> str:
    if value is None:
        return "missing"
    return "present" if isinstance(value, Fingerprint) else str(value)


def _leaves(value: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {prefix: value}
    found: dict[str, Any] = {}
    for key, child in value.items():
        found |= _leaves(child, f"{prefix}.{key}" if prefix else key)
    return found
