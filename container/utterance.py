"""One text on its way to speech: pieces waiting, pieces running, audio in order for whoever listens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from container.engine.base import SAMPLE_RATE_HZ, Prepared, Samples
from container.errors import RequestError
from container.joints import joined

SECONDS_PER_TOKEN = 0.07
"""Speech per phoneme token before an utterance has taught us its own pace."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A prepared segment and its place in the text."""

    index: int
    item: Prepared


@dataclass(frozen=True, slots=True)
class Chunk:
    """Audio of one piece, as delivered."""

    samples: Samples
    text: str
    started_s: float
    """Monotonic time at which the engine took the group this piece was in."""
    engine_s: float
    last: bool = False

    @property
    def audio_s(self) -> float:
        return len(self.samples) / SAMPLE_RATE_HZ


class Utterance:
    """Filled by the feeder and the scheduler, read by one listener; all on the event loop."""

    def __init__(self, arrived_s: float) -> None:
        self.arrived_s = arrived_s
        self.waiting: deque[Piece] = deque()
        self.closed = False
        """Nobody listens any more, or it failed: whatever is still running is thrown away."""
        self._dry_at_s: float | None = None
        self._audio_s = 0.0
        self._tokens = 0
        self._count = 0
        self._complete = False
        self._next = 0
        self._finished: dict[int, Chunk] = {}
        self._outbox: asyncio.Queue[Chunk | RequestError | None] = asyncio.Queue()

    def feed(self, prepared: Sequence[Prepared], *, complete: bool) -> None:
        """Add pieces behind those already there; ``complete`` says that no more will come."""
        for item in prepared:
            self.waiting.append(Piece(self._count, item))
            self._count += 1
        self._complete = complete
        if self._all_sent():
            self._outbox.put_nowait(None)

    @property
    def fed(self) -> bool:
        return self._count > 0

    def deliver(self, piece: Piece, samples: Samples, started_s: float, engine_s: float, now_s: float) -> None:
        """Take finished audio, in whatever order lanes finish, and pass it on in the order of the text."""
        self._finished[piece.index] = Chunk(samples, piece.item.segment.text, started_s, engine_s)
        self._tokens += piece.item.tokens
        self._audio_s += len(samples) / SAMPLE_RATE_HZ
        while chunk := self._finished.pop(self._next, None):
            self._send(chunk, now_s)

    def _send(self, chunk: Chunk, now_s: float) -> None:
        self._next += 1
        last = self._all_sent()
        chunk = replace(chunk, samples=joined(chunk.samples, chunk.text, first=self._next == 1, last=last), last=last)
        self._dry_at_s = max(self.dry_s(now_s), now_s) + chunk.audio_s
        self._outbox.put_nowait(chunk)
        if last:
            self._outbox.put_nowait(None)

    def _all_sent(self) -> bool:
        return self._complete and self._next == self._count

    def fail(self, error: RequestError) -> None:
        if not self.closed:
            self.close()
            self._outbox.put_nowait(error)

    def close(self) -> None:
        self.closed = True
        self.waiting.clear()

    def dry_s(self, now_s: float) -> float:
        """When a listener who plays audio as it comes will have heard all there is."""
        return now_s if self._dry_at_s is None else self._dry_at_s

    def speech_s(self, item: Prepared) -> float:
        """How long ``item`` will probably sound."""
        pace = self._audio_s / self._tokens if self._tokens else SECONDS_PER_TOKEN
        return item.tokens * pace

    def __aiter__(self) -> Utterance:
        return self

    async def __anext__(self) -> Chunk:
        received = await self._outbox.get()
        if received is None:
            raise StopAsyncIteration
        if isinstance(received, RequestError):
            raise received
        return received
