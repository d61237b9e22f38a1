"""What a load user asks of a transport, and how an answer that is no audio is named."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from planner.artifacts.records import Outcome

SATURATED = "queue_saturated"
_THROTTLED = frozenset({"ThrottlingException", "TooManyRequestsException", "Throttling"})


@dataclass(frozen=True)
class Target:
    """Where requests go and what they say they carry."""

    endpoint: str
    variant: str | None
    content_type: str
    accept: str


@dataclass(frozen=True)
class Stream:
    """A response that has begun."""

    headers_ns: int
    status: int
    content_type: str
    attributes: str
    """X-Amzn-SageMaker-Custom-Attributes, verbatim."""
    pieces: Iterator[bytes]


class Failure(Exception):
    """A request that did not end well; it becomes an outcome, never a latency."""

    def __init__(self, outcome: Outcome, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome
        self.status = status


class Transport(Protocol):
    """One user's connection. Exactly one attempt a request."""

    def open(self) -> None:
        """Connect, so that no request's time contains DNS, TCP or TLS."""

    def send(self, body: bytes) -> Stream:
        """Send one request and wait for the response to begin. Raises Failure."""

    def close(self) -> None:
        """Drop the connection."""


def refused(status: int, code: str, message: str, original: int | None, original_message: str) -> Failure:
    """Name an error response of the runtime API; ``original`` is what the container itself answered."""
    text = f"{code}: {original_message or message}"[:300]
    if code == "ModelError" and original is not None:
        if original == 503 and SATURATED in f"{original_message} {message}":
            return Failure("rejected", text, original)
        if original == 429:
            return Failure("throttled", text, original)
        return Failure("client_error" if 400 <= original < 500 else "server_error", text, original)
    if status == 429 or code in _THROTTLED:
        return Failure("throttled", text, status)
    return Failure("client_error" if 400 <= status < 500 and code != "ModelError" else "server_error", text, status)
