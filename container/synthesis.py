"""From a validated request to a stream of audio: cut, phonemise off the loop, hand to the scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial

from container.engine.base import Engine, EngineError, Prepared, Segment
from container.errors import as_refusal
from container.request import SpeechRequest
from container.scheduler import Scheduler
from container.utterance import Utterance

Cutter = Callable[[str], list[str]]

TOGETHER = 4
"""Pieces phonemised at a time after the first, so that a long text does not hold up somebody's first piece."""


class Synthesis:
    """Lives on the event loop."""

    def __init__(self, engine: Engine, scheduler: Scheduler, cut: Cutter) -> None:
        self._engine, self._scheduler, self._cut = engine, scheduler, cut
        self._phonemes = ThreadPoolExecutor(1, thread_name_prefix="phonemes")

    @asynccontextmanager
    async def speak(self, request: SpeechRequest, arrived_s: float) -> AsyncIterator[Utterance]:
        """The utterance to iterate; leaving the block takes everything that still waits out of the queues."""
        utterance = Utterance(arrived_s)
        feeder = asyncio.create_task(self._feed(utterance, request))
        feeder.add_done_callback(partial(_pass_on_failure, utterance))
        try:
            yield utterance
        finally:
            feeder.cancel()
            self._scheduler.remove(utterance)

    async def _feed(self, utterance: Utterance, request: SpeechRequest) -> None:
        loop = asyncio.get_running_loop()
        segments = await loop.run_in_executor(self._phonemes, self._segments, request)
        groups = [segments[:1], *(segments[at : at + TOGETHER] for at in range(1, len(segments), TOGETHER))]
        for number, group in enumerate(groups, 1):
            prepared = await loop.run_in_executor(self._phonemes, self._engine.prepare, group)
            self._hand_over(utterance, prepared, complete=number == len(groups))
        if not utterance.fed:
            raise EngineError("nothing in this text can be spoken")

    def _segments(self, request: SpeechRequest) -> list[Segment]:
        pieces = self._cut(request.text)
        characters = sum(map(len, pieces))
        return [Segment(piece, request.voice, request.speed, share=len(piece) / characters) for piece in pieces]

    def _hand_over(self, utterance: Utterance, prepared: list[Prepared], *, complete: bool) -> None:
        if not utterance.closed:
            utterance.feed(prepared, complete=complete)
            self._scheduler.add(utterance)

    def close(self) -> None:
        self._phonemes.shutdown(wait=False, cancel_futures=True)


def _pass_on_failure(utterance: Utterance, feeder: asyncio.Task[None]) -> None:
    if not feeder.cancelled() and (error := feeder.exception()) is not None:
        utterance.fail(as_refusal(error))
