"""What really happened, kept so that tools can be judged against it. Times are CLOCK_MONOTONIC, in ns."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

KEPT_REQUESTS = 200_000
KEPT_SAMPLES = 100_000
KEPT_EVENTS = 20_000


@dataclass(slots=True)
class RequestTrace:
    """One invocation, as the data plane saw it. None = never happened."""

    id: int
    endpoint: str
    connection: int
    """Which accepted connection carried it, counted from 1."""
    arrival_ns: int
    variant: str | None = None
    instance: str | None = None
    routed_ns: int | None = None
    headers_ns: int | None = None
    """The container's response headers."""
    first_byte_ns: int | None = None
    """The first payload byte handed to the client's socket."""
    end_ns: int | None = None
    container_status: int | None = None
    status: int | None = None
    outcome: str | None = None
    """ok, client_gone, or the name of the error the client got."""
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class InFlightSample:
    """How many requests one instance held at one moment."""

    at_ns: int
    instance: str
    in_flight: int


@dataclass(frozen=True, slots=True)
class InstanceEvent:
    """A change in an instance's life."""

    at_ns: int
    at_utc_s: float
    endpoint: str
    variant: str
    instance: str
    event: str
    detail: str = ""


class Record:
    """The newest of everything; the oldest falls out."""

    def __init__(self) -> None:
        self.requests: deque[RequestTrace] = deque(maxlen=KEPT_REQUESTS)
        self.samples: deque[InFlightSample] = deque(maxlen=KEPT_SAMPLES)
        self.events: deque[InstanceEvent] = deque(maxlen=KEPT_EVENTS)
        self.connections = 0
        self._next_id = 0

    def arrival(self, endpoint: str, connection: int) -> RequestTrace:
        """A request has arrived."""
        self._next_id += 1
        trace = RequestTrace(self._next_id, endpoint, connection, time.monotonic_ns())
        self.requests.append(trace)
        return trace

    def connection(self) -> int:
        """A connection was accepted; its number."""
        self.connections += 1
        return self.connections

    def event(self, endpoint: str, variant: str, instance: str, event: str, detail: str = "") -> None:
        """Something happened to an instance."""
        now = InstanceEvent(time.monotonic_ns(), time.time(), endpoint, variant, instance, event, detail)
        self.events.append(now)

    def requests_since(self, after_id: int) -> list[dict[str, Any]]:
        """Requests with a higher id than ``after_id``, in order of arrival."""
        return [asdict(trace) for trace in self.requests if trace.id > after_id]
