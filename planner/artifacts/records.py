"""One line a request: the raw truth every summary is derived from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal

from planner.errors import UsageError

Outcome = Literal[
    "ok", "rejected", "throttled", "client_error", "server_error", "broken", "no_audio", "timeout", "cancelled"
]
"""rejected = the container's own 503 queue_saturated; broken = failed after the response had begun."""


@dataclass(frozen=True, slots=True)
class Anchor:
    """Ties a worker's monotonic clock to UTC, so that records of several machines merge."""

    worker: str
    monotonic_ns: int
    utc_ns: int


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """Times are the worker's monotonic clock in ns; None = never happened."""

    worker: str
    run: int
    rung: int
    """Index of the rung (closed loop) or of the rate (open loop)."""
    intended_ns: int
    """When the request should have been sent; equals sent_ns in a closed loop."""
    sent_ns: int
    headers_ns: int | None
    first_audio_ns: int | None
    done_ns: int
    outcome: Outcome
    error: str | None
    status: int | None
    bytes: int
    chars: int
    text: int
    """Index of the text in the corpus."""
    boot_id: str | None = None
    queue_depth: int | None = None
    service_ms: float | None = None

    @property
    def ttfab_ms(self) -> float | None:
        """First audio byte minus intended send, in ms; only for requests that ended well."""
        if self.outcome != "ok" or self.first_audio_ns is None:
            return None
        return (self.first_audio_ns - self.intended_ns) / 1e6

    @property
    def latency_ms(self) -> float | None:
        """Last byte minus intended send, in ms; only for requests that ended well."""
        return (self.done_ns - self.intended_ns) / 1e6 if self.outcome == "ok" else None


_FIELDS = {field.name for field in fields(RequestRecord)}


def to_line(item: Anchor | RequestRecord) -> str:
    """One JSON line, newline included."""
    body: dict[str, Any] = asdict(item)
    if isinstance(item, Anchor):
        body = {"anchor": body}
    return json.dumps(body, separators=(",", ":")) + "\n"


def parse_line(line: str, where: str) -> Anchor | RequestRecord:
    """Inverse of to_line; raises UsageError naming ``where``."""
    try:
        body = json.loads(line)
        if "anchor" in body:
            return Anchor(**body["anchor"])
        return RequestRecord(**{key: value for key, value in body.items() if key in _FIELDS})
    except (ValueError, TypeError) as error:
        raise UsageError(f"{where}: not a request record: {error}", "the file is damaged; measure again") from None


def read(path: Path) -> Iterator[Anchor | RequestRecord]:
    """Every line of a ``.requests.jsonl``; a torn last line (killed run) is left out."""
    with path.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith("\n"):
                return
            yield parse_line(line, f"{path}:{number}")


def write(path: Path, items: Iterable[Anchor | RequestRecord]) -> None:
    """Append; the file stays valid whenever the writer is killed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as stream:
        stream.writelines(to_line(item) for item in items)
