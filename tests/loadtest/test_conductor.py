"""The state machine against a scripted load process: no Locust, no clock but the test's."""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import Any

import pytest

from loadtest import settings
from loadtest.agent import ROW
from loadtest.climb import next_rung
from loadtest.conductor import Conductor, Finished, Phase
from loadtest.inbox import Inbox
from loadtest.job import Job
from planner.artifacts.qmax import Rung

S = 1_000_000_000


def ladder(*arguments: str) -> settings.Ladder:
    parser = argparse.ArgumentParser()
    settings.add_arguments(parser)
    base = ["--endpoint", "e", "--model", "m", "--hold-s", "20", "--measure-window-s", "10", "--idle-s", "5"]
    return settings.parse(parser.parse_args([*base, *arguments]))


@dataclass
class Clock:
    ns: int = 1_000 * S

    def now_ns(self) -> int:
        return self.ns


@dataclass
class World:
    """A conductor, its load processes and a server that answers after ``latency_s``."""

    plan: settings.Ladder
    latency_s: float = 1.0
    outcome: str = "ok"
    workers: list[str] = field(default_factory=lambda: ["w0"])
    clock: Clock = field(default_factory=Clock)
    jobs: list[Job] = field(default_factory=list)
    finished: list[Finished] = field(default_factory=list)
    dead: set[str] = field(default_factory=set)
    users: int = 0
    ramp_s: float = 0.0
    since_ns: int = 0
    most_users: int = 0

    def __post_init__(self) -> None:
        self.inbox = Inbox(self.clock)  # type: ignore[arg-type]
        self.conductor = Conductor(
            self.plan, self.plan.method(1), self.clock, self.inbox, self.announced, self.finished.append, None
        )

    def announced(self, job: Job) -> None:
        self.jobs.append(job)
        self.since_ns = self.clock.ns

    def shares(self) -> dict[str, int]:
        alive = [worker for worker in self.workers if worker not in self.dead]
        return {name: len(range(i, self.users, len(alive))) for i, name in enumerate(alive)}

    def step(self) -> int | None:
        """One second of the world, then a tick."""
        self.clock.ns += S
        for worker, share in self.shares().items():
            self.report(worker, share)
        wanted = self.conductor.tick()
        self.users = wanted or 0
        self.most_users = max(self.most_users, self.users)
        return wanted

    def report(self, worker: str, share: int) -> None:
        now = self.clock.ns
        started = share if now - self.since_ns > self.ramp_s * S else 0
        rows: list[list[Any]] = []
        if self.jobs and started:
            done = now - 1
            for _ in range(round(share / self.latency_s)):
                rows.append(self.row(worker, done - int(self.latency_s * S), done))
        self.inbox.receive(
            {
                "worker": worker,
                "anchor": [0, 0],
                "at_ns": now,
                "job": self.jobs[-1].id if self.jobs else -1,
                "users": share,
                "in_flight": share,
                "started": started,
                "last_started_ns": self.since_ns + int(self.ramp_s * S),
                "rows": rows,
                "lags_ms": [0.5] * 10,
                "cpu_share": 0.1,
            }
        )

    def row(self, worker: str, sent: int, done: int) -> list[Any]:
        ok = self.outcome == "ok"
        values: dict[str, Any] = dict.fromkeys(ROW)
        values |= {"worker": worker, "run": 0, "rung": 0, "intended_ns": sent, "sent_ns": sent, "done_ns": done}
        values |= {"first_audio_ns": done if ok else None, "outcome": self.outcome, "bytes": 100, "chars": 5, "text": 0}
        values |= {"error": None if ok else "connection refused"}
        return [*(values[name] for name in ROW), 0.2]

    def run(self, limit_s: int = 2000) -> list[Rung]:
        for _ in range(limit_s):
            if self.step() is None:
                return self.conductor.done
        raise AssertionError(f"not done after {limit_s} s, phase {self.conductor.phase}")


def test_a_whole_ladder_holds_drains_and_idles() -> None:
    world = World(ladder("--rungs", "6,8", "--slo-ms", "3000"))
    done = world.run()
    assert [(rung.concurrency, rung.verdict) for rung in done] == [(6, "pass"), (8, "pass")]
    assert [job.users for job in world.jobs] == [6, 8]
    assert done[0].completed == 60
    assert done[0].in_flight_mean == pytest.approx(6, rel=0.05)
    assert 2 * 25 <= (world.clock.ns - 1_000 * S) / S <= 2 * 33


def test_the_hold_starts_when_the_last_user_is_in_flight() -> None:
    world = World(ladder("--rungs", "8"), ramp_s=9)
    (rung,) = world.run()
    assert rung.window_start is not None
    assert rung.window_end is not None
    assert rung.window_end.timestamp() * S == pytest.approx(world.since_ns + (9 + 20) * S, abs=S)
    assert (rung.window_end - rung.window_start).total_seconds() == 10


def test_a_slow_server_gets_the_time_for_59_completions() -> None:
    (rung,) = World(ladder("--rungs", "4")).run()
    assert rung.verdict == "pass"
    assert 59 <= rung.completed <= 64
    assert rung.window_start is not None
    assert rung.window_end is not None
    # 10 s of window at 4 a second are 40; the window opens when it was planned to.
    assert (rung.window_end - rung.window_start).total_seconds() == pytest.approx(15, abs=1)


def test_but_not_for_ever() -> None:
    (rung,) = World(ladder("--rungs", "1"), latency_s=1.0).run()
    assert rung.verdict == "undecided"
    assert rung.window_start is not None
    assert rung.window_end is not None
    assert (rung.window_end - rung.window_start).total_seconds() == pytest.approx(3 * 20 - 10, abs=1)


def test_users_that_never_start_void_the_rung() -> None:
    world = World(ladder("--rungs", "4"), ramp_s=10_000)
    (rung,) = world.run()
    assert rung.verdict == "invalid"
    assert "0 of 4 users" in rung.reasons[0]


def test_two_workers_hold_n_in_total() -> None:
    world = World(ladder("--rungs", "7"), workers=["w0", "w1"])
    (rung,) = world.run()
    assert rung.in_flight_mean == pytest.approx(7, rel=0.05)
    assert world.most_users == 7


def test_a_lost_worker_voids_only_its_rung() -> None:
    world = World(ladder("--rungs", "6,8,9"), workers=["w0", "w1"])
    while not (
        world.conductor.current and world.conductor.current.job.users == 8 and world.conductor.phase is Phase.HOLD
    ):
        world.step()
    world.dead.add("w1")
    done = world.run()
    assert [rung.verdict for rung in done] == ["pass", "invalid", "pass"]
    assert "load worker lost: w1" in done[1].reasons
    assert done[2].in_flight_mean == pytest.approx(9, rel=0.05)


@pytest.mark.parametrize("outcome", ["server_error", "client_error", "timeout", "broken", "no_audio"])
def test_a_dead_endpoint_ends_the_ladder(outcome: str) -> None:
    world = World(ladder("--rungs", "4,8"), outcome=outcome)
    done = world.run()
    assert len(done) == 1
    assert done[0].verdict == "invalid"
    assert world.conductor.abandoned is not None
    assert "connection refused" in world.conductor.abandoned


def test_rejections_void_the_rung_but_not_the_ladder() -> None:
    world = World(ladder("--rungs", "4,8"), outcome="rejected")
    assert [rung.verdict for rung in world.run()] == ["invalid", "invalid"]
    assert world.conductor.abandoned is None


def test_requests_that_are_out_are_waited_for_after_the_first_rung_too() -> None:
    world = World(ladder("--rungs", "8,16"))
    assert world.conductor.tick() == 0  # Locust asks before any load process has reported
    while world.conductor.phase is not Phase.DRAIN:
        world.step()
    for _ in range(5):
        world.users = 8
        world.step()
        assert world.conductor.phase is Phase.DRAIN
    world.step()
    assert world.conductor.phase is Phase.IDLE


def test_a_ladder_that_no_load_process_joins_ends() -> None:
    world = World(ladder("--rungs", "8"), workers=[])
    world.run()
    assert world.conductor.abandoned == "no load process reported within 60 s"


def test_a_changed_endpoint_voids_the_rung() -> None:
    world = World(ladder("--rungs", "8"))
    while world.conductor.phase is not Phase.HOLD:
        world.step()
    world.conductor.void("the endpoint is Updating")
    (rung,) = world.run()
    assert "the endpoint is Updating" in rung.reasons


def test_a_change_found_while_the_rung_drains_voids_it_too() -> None:
    world = World(ladder("--rungs", "8"))
    while world.conductor.phase is not Phase.DRAIN:
        world.step()
    world.conductor.void("the instance count changed from 1 to 2 (desired 2)")
    (rung,) = world.run()
    assert rung.verdict == "invalid"
    assert "the instance count changed from 1 to 2 (desired 2)" in rung.reasons


def test_no_rung_above_a_first_one_that_fails() -> None:
    world = World(ladder("--rungs", "8,16", "--slo-ms", "500"))
    done = world.run()
    assert [(rung.concurrency, rung.verdict) for rung in done] == [(8, "fail")]


def rung(concurrency: int, verdict: Any, run: int = 0) -> Rung:
    return Rung(concurrency=concurrency, run=run, verdict=verdict, point_verdict=None)


@pytest.mark.parametrize(
    ("arguments", "done", "upcoming"),
    [
        ([], [], (0, 10)),
        ([], [rung(10, "pass")], (0, 20)),
        ([], [rung(10, "pass"), rung(20, "fail")], None),
        (["--refine"], [rung(10, "pass"), rung(20, "fail")], (0, 15)),
        (["--refine"], [rung(10, "pass"), rung(20, "fail"), rung(15, "fail")], (0, 12)),
        (["--refine"], [rung(10, "pass"), rung(20, "fail"), rung(15, "undecided")], None),
        (["--refine"], [rung(10, "pass"), rung(20, "pass")], None),
        (["--refine"], [rung(10, "pass"), rung(11, "fail"), rung(20, "fail")], None),
        (["--runs", "2"], [rung(10, "pass"), rung(20, "fail")], (1, 10)),
        (["--runs", "2"], [rung(10, "fail")], (1, 10)),
        (["--runs", "2"], [rung(10, "fail"), rung(10, "pass", 1), rung(20, "fail", 1)], None),
    ],
)
def test_which_rung_comes_next(arguments: list[str], done: list[Rung], upcoming: tuple[int, int] | None) -> None:
    assert next_rung(ladder("--rungs", "10,20", *arguments), done) == upcoming
