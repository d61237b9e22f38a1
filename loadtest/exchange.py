"""One request from send to last byte: stamps, where the audio began, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic_ns

import gevent

from loadtest.first_audio import FirstAudio
from loadtest.transports.base import Failure, Transport
from planner.artifacts.records import Outcome


@dataclass(frozen=True, slots=True)
class Exchange:
    """The measured part of a RequestRecord."""

    sent_ns: int
    headers_ns: int | None
    first_audio_ns: int | None
    done_ns: int
    outcome: Outcome
    error: str | None
    status: int | None
    audio_bytes: int
    attributes: str


def cut(sent_ns: int) -> Exchange:
    """A request whose user was stopped before the answer was complete."""
    return Exchange(sent_ns, None, None, monotonic_ns(), "cancelled", None, None, 0, "")


class _Progress:
    """Filled in while the response arrives, so that a request cut short keeps what it had."""

    def __init__(self) -> None:
        self.headers_ns: int | None = None
        self.first_audio_ns: int | None = None
        self.status: int | None = None
        self.attributes = ""
        self.audio: FirstAudio | None = None

    def ended(self, sent_ns: int, outcome: Outcome, error: str | None = None) -> Exchange:
        return Exchange(
            sent_ns,
            self.headers_ns,
            self.first_audio_ns,
            monotonic_ns(),
            outcome,
            error,
            self.status,
            self.audio.audio_bytes if self.audio else 0,
            self.attributes,
        )


def perform(transport: Transport, body: bytes, timeout_s: float) -> Exchange:
    """Send once and read to the end; ``timeout_s`` bounds the whole, an endless response included."""
    progress = _Progress()
    sent_ns = monotonic_ns()
    limit = gevent.Timeout.start_new(timeout_s)
    try:
        _receive(transport, body, progress)
    except Failure as failure:
        progress.status = failure.status or progress.status
        return progress.ended(sent_ns, failure.outcome, str(failure))
    except gevent.Timeout as expired:
        transport.close()
        if expired is not limit:
            raise
        return progress.ended(sent_ns, "timeout", f"not finished after {timeout_s:g} s")
    finally:
        limit.close()
    heard = progress.audio is not None and progress.audio.audio_bytes > 0
    return progress.ended(sent_ns, "ok" if heard else "no_audio", None if heard else "the response held no audio")


def _receive(transport: Transport, body: bytes, progress: _Progress) -> None:
    stream = transport.send(body)
    progress.headers_ns, progress.status, progress.attributes = stream.headers_ns, stream.status, stream.attributes
    audio = progress.audio = FirstAudio(stream.content_type)
    for piece in stream.pieces:
        if audio.feed(piece) and progress.first_audio_ns is None:
            progress.first_audio_ns = monotonic_ns()
