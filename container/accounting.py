"""Every request ends in exactly one outcome: counted, timed and logged here, whatever path it took."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from container.errors import RequestError, as_refusal
from container.logs import event
from container.metrics import Metrics
from container.request import SpeechRequest
from container.utterance import Chunk

REFUSALS = ("queue_saturated", "draining", "not_ready", "engine_dead")


class Account:
    """What one request has come to so far; monotonic seconds."""

    def __init__(self, surface: str) -> None:
        self.surface = surface
        self.arrived_s = time.monotonic()
        self.admitted_s = self.arrived_s
        self.request_id = ""
        self.chars = 0
        self.pieces = 0
        self.audio_s = 0.0
        self.wait_s: float | None = None
        self.first_audio_s: float | None = None
        self.failure: RequestError | None = None
        """Why the audio ended early, when the client could only be told by breaking off."""
        self.when_cancelled = "disconnected"

    def requested(self, request: SpeechRequest) -> None:
        self.request_id, self.chars = request.request_id, len(request.text)

    def sent(self, chunk: Chunk) -> None:
        """Audio was handed to the transport."""
        self.pieces += 1
        self.audio_s += chunk.audio_s
        if self.first_audio_s is None:
            self.first_audio_s = time.monotonic() - self.arrived_s
            self.wait_s = max(0.0, chunk.started_s - self.admitted_s)


class Accounts:
    """Opens an account for each request and closes it into the metrics and the log."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    @contextmanager
    def open(self, surface: str, request: SpeechRequest | None = None) -> Iterator[Account]:
        """Failures leave as RequestError, so that each surface has one kind to answer."""
        account = Account(surface)
        if request is not None:
            account.requested(request)
        outcome = "internal_error"
        try:
            yield account
            outcome = account.failure.code if account.failure else "ok"
        except RequestError as error:
            outcome = error.code
            raise
        except TimeoutError as error:
            refusal = as_refusal(error)
            outcome = refusal.code
            raise refusal from error
        except (asyncio.CancelledError, ConnectionError):
            outcome = account.when_cancelled
            raise
        finally:
            self._close(account, outcome)

    def note(self, surface: str, outcome: str, request_id: str = "") -> None:
        """Account for a request that never got as far as being tried."""
        self._metrics.requests.add(outcome)
        event("request", surface=surface, request_id=request_id, outcome=outcome)

    def _close(self, account: Account, outcome: str) -> None:
        total_s = time.monotonic() - account.arrived_s
        self._metrics.requests.add(outcome)
        if outcome in REFUSALS:
            self._metrics.rejections.add(outcome)
        if account.first_audio_s is not None and account.wait_s is not None:
            self._metrics.first_audio_s.observe(account.first_audio_s)
            self._metrics.queue_wait_s.observe(account.wait_s)
        if outcome == "ok":
            self._metrics.completion_s.observe(total_s)
        event(
            "request", surface=account.surface, request_id=account.request_id, outcome=outcome, chars=account.chars,
            pieces=account.pieces, audio_s=round(account.audio_s, 3), wait_ms=_ms(account.wait_s),
            first_audio_ms=_ms(account.first_audio_s), total_ms=_ms(total_s),
        )  # fmt: skip


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)
