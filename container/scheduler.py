"""Keeps the engine's lanes busy with the batches an Order picks, off the event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np

from container.engine.base import Engine, EngineDead, EngineError, Prepared, Samples
from container.errors import RequestError, as_refusal
from container.order import Order, Work
from container.utterance import Utterance

FAILURES_IN_A_ROW = 3
"""Unexplained engine failures, one after another, after which the engine counts as dead."""

SLOWDOWN = 20.0
"""How many times slower than expected a call may be before it can count as stuck."""


class Pace:
    """What a synthesise call takes relative to its pieces alone, learned by batch size."""

    _WEIGHT = 0.2

    def __init__(self) -> None:
        self._ratio: dict[int, float] = {}

    def expected_s(self, items: Sequence[Prepared]) -> float:
        known = [size for size in self._ratio if size <= len(items)]
        return sum(item.cost_s for item in items) * (self._ratio[max(known)] if known else 1.0)

    def learn(self, items: Sequence[Prepared], took_s: float) -> None:
        cost_s = sum(item.cost_s for item in items)
        if cost_s > 0:
            size, ratio = len(items), took_s / cost_s
            self._ratio[size] = self._ratio.get(size, ratio) * (1 - self._WEIGHT) + ratio * self._WEIGHT


@dataclass(frozen=True, slots=True)
class Call:
    """A synthesise call in progress."""

    since_s: float
    expected_s: float
    opens: bool
    """True when somebody's first segment is in it."""


class Scheduler:
    """Lives on the event loop; ``on_dead`` is told once why the engine will not speak again."""

    def __init__(
        self,
        engine: Engine,
        order: Order,
        *,
        on_dead: Callable[[str], None],
        on_batch: Callable[[int, float], None],
    ) -> None:
        self._engine, self._order = engine, order
        self._on_dead, self._on_batch = on_dead, on_batch
        self._utterances: dict[int, Utterance] = {}
        self._running: dict[asyncio.Task[None], Call] = {}
        self._usable = engine.lanes if order.side_by_side or not engine.shared_lanes else 1
        self._lanes = ThreadPoolExecutor(engine.lanes, thread_name_prefix="lane")
        self._pace = Pace()
        self._failures = 0
        self._dead: str | None = None

    @property
    def waiting(self) -> int:
        """Pieces not yet handed to the engine."""
        return sum(len(utterance.waiting) for utterance in self._utterances.values())

    @property
    def running(self) -> int:
        return len(self._running)

    def stalled(self, allowance_s: float) -> bool:
        """True when a call has taken ``allowance_s`` more than even a badly overloaded machine would need."""
        now_s = time.monotonic()
        return any(now_s - call.since_s > allowance_s + SLOWDOWN * call.expected_s for call in self._running.values())

    def add(self, utterance: Utterance) -> None:
        if self._dead is not None:
            utterance.fail(as_refusal(EngineDead(self._dead)))
        self._utterances[id(utterance)] = utterance
        self.kick()

    def remove(self, utterance: Utterance) -> None:
        """Forget it; a piece that is running finishes unheard."""
        utterance.close()
        self._utterances.pop(id(utterance), None)

    def kick(self) -> None:
        """Hand out work while a lane is free; called whenever work or a lane appears."""
        while len(self._running) < self._usable and self._dead is None:
            now_s = time.monotonic()
            waiting = list(self._available(now_s))
            if not waiting:
                return
            batch = self._order.pick(waiting, self._engine.max_batch, now_s, self._pace.expected_s)
            for work in batch:
                work.utterance.waiting.popleft()
            task = asyncio.get_running_loop().create_task(self._run(batch))
            expected_s = self._pace.expected_s([work.piece.item for work in batch])
            self._running[task] = Call(now_s, expected_s, any(work.opens for work in batch))
            task.add_done_callback(self._lane_freed)

    def _available(self, now_s: float) -> Iterator[Work]:
        """What may run now. On shared lanes later segments give way while a first one runs."""
        give_way = self._engine.shared_lanes and any(call.opens for call in self._running.values())
        for utterance in self._utterances.values():
            if give_way and not (utterance.waiting and utterance.waiting[0].index == 0):
                continue
            due_s = utterance.dry_s(now_s)
            for piece in islice(utterance.waiting, self._engine.max_batch):
                yield Work(utterance, piece, utterance.arrived_s if piece.index == 0 else due_s)
                due_s += utterance.speech_s(piece.item)

    async def _run(self, batch: list[Work]) -> None:
        items = [work.piece.item for work in batch]
        started_s = time.monotonic()
        future = asyncio.get_running_loop().run_in_executor(self._lanes, self._engine.synthesise, items)
        await asyncio.wait([future])
        now_s = time.monotonic()
        if (error := future.exception()) is not None:
            self._failed(batch, error)
            return
        self._failures = 0
        self._pace.learn(items, now_s - started_s)
        self._on_batch(len(batch), now_s - started_s)
        for work, samples in zip(batch, future.result(), strict=True):
            self._deliver(work, samples, started_s, now_s)

    def _deliver(self, work: Work, samples: Samples, started_s: float, now_s: float) -> None:
        if work.utterance.closed:
            return
        if not len(samples) or not np.isfinite(samples).all():
            work.utterance.fail(RequestError(500, "no_audio", "the engine returned no usable audio"))
            return
        work.utterance.deliver(work.piece, samples, started_s, now_s - started_s, now_s)

    def _failed(self, batch: list[Work], error: BaseException) -> None:
        self._failures += 1
        for work in batch:
            work.utterance.fail(as_refusal(error))
        if isinstance(error, EngineError):
            self._failures = 0
        elif isinstance(error, EngineDead) or self._failures >= FAILURES_IN_A_ROW:
            self.die(f"{type(error).__name__}: {error}")

    def die(self, reason: str) -> None:
        """Fail everybody, now and from now on."""
        if self._dead is not None:
            return
        self._dead = reason
        for utterance in list(self._utterances.values()):
            utterance.fail(as_refusal(EngineDead(reason)))
        self._on_dead(reason)

    def _lane_freed(self, task: asyncio.Task[None]) -> None:
        del self._running[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            self.die(f"scheduler: {type(error).__name__}: {error}")
        self.kick()

    def close(self) -> bool:
        """Stop the lanes; False when one is inside the engine and its thread cannot be waited for."""
        self._lanes.shutdown(wait=False, cancel_futures=True)
        return not self._running
