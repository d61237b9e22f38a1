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
        run = asyncio.get_running_loop().run_in_executor
        prepared, rest = await run(self._phonemes, self._begin, request)
        self._hand_over(utterance, prepared, complete=not rest)
        while rest:
            group, rest = rest[:TOGETHER], rest[TOGETHER:]
            prepared = await run(self._phonemes, self._engine.prepare, group)
            self._hand_over(utterance, prepared, complete=not rest)
        if not utterance.fed:
            raise EngineError("nothing in this text can be spoken")

    def _begin(self, request: SpeechRequest) -> tuple[list[Prepared], list[Segment]]:
        """The first piece, ready to synthesise, and the pieces after it."""
        pieces = self._cut(request.text)
        characters = sum(map(len, pieces))
        segments = [Segment(piece, request.voice, request.speed, share=len(piece) / characters) for piece in pieces]
        return self._engine.prepare(segments[:1]), segments[1:]

    def _hand_over(self, utterance: Utterance, prepared: list[Prepared], *, complete: bool) -> None:
        if not utterance.closed:
            utterance.feed(prepared, complete=complete)
            self._scheduler.add(utterance)

    def close(self) -> None:
        self._phonemes.shutdown(wait=False, cancel_futures=True)


def _pass_on_failure(utterance: Utterance, feeder: asyncio.Task[None]) -> None:
    if not feeder.cancelled() and (error := feeder.exception()) is not None:
        utterance.fail(as_refusal(error))
