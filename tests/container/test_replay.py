"""The replay engine keeps the published server's time, late wake-ups or not."""

from __future__ import annotations

import statistics

import pytest

from container.engine.base import EngineDead, EngineError, Segment
from container.engine.replay import ReplayEngine, ServiceTimes
from container.settings import Settings


class LateClock:
    """Time that passes only in sleep, and every sleep oversleeps."""

    def __init__(self, late_s: float = 0.0) -> None:
        self.now_s, self._late_s = 0.0, late_s

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds + self._late_s


def engine(clock: LateClock, **settings) -> ReplayEngine:
    made = ReplayEngine(Settings(engine="replay", **settings), clock=clock, sleep=clock.sleep)
    made.load([].append)
    made.synthesise(made.prepare([Segment("warm up", "af_heart")]))
    return made


def test_service_times_have_the_mean_and_p95_asked_for():
    times = ServiceTimes(0.0559, 0.060, seed=1)
    drawn = sorted(times.draw_s() for _ in range(20_000))
    assert statistics.fmean(drawn) == pytest.approx(0.0559, rel=0.005)
    assert drawn[int(0.95 * len(drawn))] == pytest.approx(0.060, rel=0.005)


def test_constant_when_p95_is_the_mean():
    times = ServiceTimes(0.05, 0.05, seed=1)
    assert [times.draw_s() for _ in range(3)] == pytest.approx([0.05] * 3)


def test_the_same_seed_gives_the_same_times():
    first, second = ServiceTimes(0.05, 0.06, seed=7), ServiceTimes(0.05, 0.06, seed=7)
    assert [first.draw_s() for _ in range(5)] == [second.draw_s() for _ in range(5)]


@pytest.mark.parametrize("late_s", [0.0, 0.002, 0.02])
def test_a_queue_is_served_at_the_published_rate_however_late_threads_wake(late_s):
    clock = LateClock(late_s)
    replay = engine(clock, replay_service_p95_ms=55.9)
    began_s = clock.now_s
    for item in replay.prepare([Segment("a short clip", "af_heart")] * 1_000):
        replay.synthesise([item])
    assert clock.now_s - began_s == pytest.approx(55.9, abs=late_s + 1e-6)


def test_an_idle_lane_starts_when_the_request_comes():
    clock = LateClock()
    replay = engine(clock, replay_service_p95_ms=55.9)
    clock.now_s += 10.0
    item = replay.prepare([Segment("a short clip", "af_heart")])
    began_s = clock.now_s
    replay.synthesise(item)
    assert clock.now_s - began_s == pytest.approx(0.0559)


def test_pieces_of_one_text_cost_one_service_time_together():
    clock = LateClock()
    replay = engine(clock, replay_service_p95_ms=55.9)
    pieces = [Segment("x" * 10, "af_heart", share=0.1), Segment("x" * 30, "af_heart", share=0.3)]
    pieces.append(Segment("x" * 60, "af_heart", share=0.6))
    began_s = clock.now_s
    for item in replay.prepare(pieces):
        replay.synthesise([item])
    assert clock.now_s - began_s == pytest.approx(0.0559)


def test_lanes_serve_side_by_side():
    clock = LateClock()
    replay = engine(clock, replay_lanes=2, replay_service_p95_ms=55.9)
    began_s = clock.now_s
    for item in replay.prepare([Segment("a short clip", "af_heart")] * 10):
        replay.synthesise([item])
    assert clock.now_s - began_s == pytest.approx(5 * 0.0559, rel=0.01)


def test_stages_take_their_scripted_time():
    clock = LateClock()
    replay = ReplayEngine(Settings(engine="replay", replay_service_p95_ms=55.9), clock=clock, sleep=clock.sleep)
    marks: dict[str, float] = {}
    replay.load(lambda name: marks.setdefault(name, clock.now_s))
    assert marks == {"framework_init": pytest.approx(0.014), "weights_ready": pytest.approx(6.489)}
    replay.synthesise(replay.prepare([Segment("warm up", "af_heart")]))
    assert clock.now_s == pytest.approx(6.489 + 1.046 + 0.0559)


def test_audio_has_a_believable_length():
    replay = engine(LateClock())
    (samples,) = replay.synthesise(replay.prepare([Segment("x" * 28, "af_heart", speed=2.0)]))
    assert len(samples) / 24_000 == pytest.approx(1.0)
    assert abs(samples).max() <= 0.1 + 1e-6


def test_nothing_to_say_and_nobody_to_say_it():
    replay = engine(LateClock())
    with pytest.raises(EngineError):
        replay.prepare([Segment("...", "af_heart")])
    item = replay.prepare([Segment("hello", "af_heart")])
    replay.close()
    assert not replay.alive()
    with pytest.raises(EngineDead):
        replay.synthesise(item)
