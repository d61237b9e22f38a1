"""Lanes, batches, cancellation and death, with an engine that does as it is told."""

from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

from container.engine.base import EngineDead, EngineError, Prepared, Segment
from container.errors import RequestError
from container.order import Deadline, Fifo
from container.scheduler import Pace, Scheduler
from container.utterance import Utterance


class Rig:
    """A scheduler with a scripted engine."""

    def __init__(self, engine, order=None) -> None:
        self.engine = engine
        self.deaths: list[str] = []
        self.batches: list[int] = []
        self.scheduler = Scheduler(
            engine,
            order or Deadline(5.0, 0.5),
            on_dead=self.deaths.append,
            on_batch=lambda size, _: self.batches.append(size),
        )

    def say(self, *texts: str) -> Utterance:
        utterance = Utterance(time.monotonic())
        utterance.feed(
            [Prepared(Segment(text, "anna"), len(text), self.engine.call_s) for text in texts], complete=True
        )
        self.scheduler.add(utterance)
        return utterance

    async def running(self) -> None:
        await asyncio.to_thread(self.engine.entered.wait, 5)

    async def idle(self) -> None:
        async with asyncio.timeout(5):
            while self.scheduler.running or self.scheduler.waiting:
                await asyncio.sleep(0.002)


async def heard(utterance) -> list[str]:
    async with asyncio.timeout(5):
        return [chunk.text async for chunk in utterance]


async def test_chunks_come_in_order_and_end(scripted):
    rig = Rig(scripted())
    assert await heard(rig.say("one", "two", "three")) == ["one", "two", "three"]


async def test_the_last_chunk_says_so(scripted):
    rig = Rig(scripted())
    chunks = [chunk async for chunk in rig.say("one", "two")]
    assert [chunk.last for chunk in chunks] == [False, True]


async def test_what_waits_together_runs_together(scripted):
    engine = scripted(max_batch=8)
    rig = Rig(engine)
    engine.gate.clear()
    blocker = rig.say("the one already running")
    await rig.running()
    others = [rig.say(f"number {number}") for number in range(5)]
    engine.gate.set()
    await asyncio.gather(*(heard(one) for one in [blocker, *others]))
    assert rig.batches == [1, 5]


async def test_an_idle_engine_never_waits_for_company(scripted):
    rig = Rig(scripted(max_batch=8))
    await heard(rig.say("alone"))
    assert rig.batches == [1]


async def test_lanes_run_side_by_side_and_order_is_kept(scripted):
    class Uneven(scripted):
        def synthesise(self, batch):
            time.sleep(0.05 if batch[0].segment.text == "slow" else 0.0)
            return super().synthesise(batch)

    rig = Rig(Uneven(lanes=2))
    utterance = rig.say("slow", "quick", "third")
    assert await heard(utterance) == ["slow", "quick", "third"]


async def test_a_closed_utterance_takes_no_more_engine_time(scripted):
    engine = scripted()
    rig = Rig(engine)
    engine.gate.clear()
    utterance = rig.say("one", "two", "three")
    await rig.running()
    rig.scheduler.remove(utterance)
    assert rig.scheduler.waiting == 0
    engine.gate.set()
    await rig.idle()
    assert engine.calls == [["one"]]


async def test_fifo_serves_whole_requests(scripted):
    engine = scripted()
    rig = Rig(engine, Fifo())
    engine.gate.clear()
    first = rig.say("a1", "a2")
    await rig.running()
    second = rig.say("b1", "b2")
    engine.gate.set()
    await asyncio.gather(heard(first), heard(second))
    assert [call[0] for call in engine.calls] == ["a1", "a2", "b1", "b2"]


async def test_deadline_lets_a_newcomer_in_between(scripted):
    engine = scripted()
    rig = Rig(engine)
    engine.gate.clear()
    first = rig.say("a1", "a2", "a3")
    await rig.running()
    second = rig.say("b1", "b2")
    engine.gate.set()
    await asyncio.gather(heard(first), heard(second))
    assert [call[0] for call in engine.calls][:2] == ["a1", "b1"]


async def test_an_engine_error_fails_its_batch_only(scripted):
    engine = scripted()
    rig = Rig(engine)
    engine.broken = EngineError("cannot say that")
    with pytest.raises(RequestError) as caught:
        await heard(rig.say("bad"))
    assert caught.value.status == 400
    engine.broken = None
    assert await heard(rig.say("good")) == ["good"]
    assert rig.deaths == []


async def test_a_dead_engine_fails_everybody_now_and_later(scripted):
    engine = scripted()
    rig = Rig(engine)
    engine.gate.clear()
    first, second = rig.say("one"), rig.say("two")
    await rig.running()
    engine.broken = EngineDead("device lost")
    engine.gate.set()
    for utterance in (first, second, rig.say("three")):
        with pytest.raises(RequestError) as caught:
            await heard(utterance)
        assert caught.value.code == "engine_dead"
    assert len(rig.deaths) == 1
    assert "device lost" in rig.deaths[0]


async def test_three_unexplained_failures_in_a_row_are_a_death(scripted):
    engine = scripted()
    rig = Rig(engine)
    engine.broken = RuntimeError("what is this")
    codes = []
    for _ in range(3):
        with pytest.raises(RequestError) as caught:
            await heard(rig.say("text"))
        codes.append(caught.value.code)
    assert codes == ["internal_error"] * 3
    assert len(rig.deaths) == 1


@pytest.mark.parametrize("samples", [np.zeros(0, np.float32), np.array([0.1, np.nan], np.float32)])
async def test_unusable_audio_is_a_failure(scripted, samples):
    class Faulty(scripted):
        def synthesise(self, batch):
            return [samples for _ in batch]

    with pytest.raises(RequestError) as caught:
        await heard(Rig(Faulty()).say("text"))
    assert caught.value.code == "no_audio"


async def test_too_few_answers_are_a_death_not_a_hang(scripted):
    class Short(scripted):
        def synthesise(self, batch):
            return super().synthesise(batch)[1:]

    rig = Rig(Short())
    with pytest.raises(RequestError):
        await heard(rig.say("text"))
    assert rig.deaths


def test_pace_learns_what_company_saves():
    pace = Pace()
    items = [Prepared(Segment("x", "anna"), 10, cost_s=1.0)] * 4
    assert pace.expected_s(items) == 4.0
    pace.learn(items, took_s=1.0)
    assert pace.expected_s(items) == pytest.approx(1.0)
    assert pace.expected_s(items[:1]) == 1.0


async def test_on_shared_lanes_a_first_segment_runs_alone_unless_others_are_first_too(scripted):
    engine = scripted(lanes=2)
    engine.shared_lanes = True
    rig = Rig(engine)
    engine.gate.clear()
    first = rig.say("a1", "a2")
    await rig.running()
    await asyncio.sleep(0.02)
    assert rig.scheduler.running == 1, "a2 gives way to a1"
    second = rig.say("b1", "b2")
    assert rig.scheduler.running == 2, "b1 does not wait for a1"
    engine.gate.set()
    await asyncio.gather(heard(first), heard(second))


async def test_fifo_uses_one_of_the_lanes_that_share_hardware(scripted):
    engine = scripted(lanes=2)
    engine.shared_lanes = True
    rig = Rig(engine, Fifo())
    engine.gate.clear()
    texts = [rig.say("a1"), rig.say("b1")]
    assert rig.scheduler.running == 1
    engine.gate.set()
    await asyncio.gather(*map(heard, texts))
