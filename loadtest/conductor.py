"""The ladder's state machine: ramp, hold, drain, idle. Told the time and fed with reports; it starts nothing itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from loadtest.climb import next_rung
from loadtest.inbox import Inbox, Rows
from loadtest.job import Job, job
from loadtest.measure import Window, measure
from loadtest.settings import Ladder
from planner.artifacts.qmax import Method, Rung

RAMP_LIMIT_S = 30.0
RAMP_USERS_PER_S = 50
"""Half of what Locust spawns a second."""
DRAIN_GRACE_S = 10.0
DEAD_AFTER_S = 10.0
REPORT_LIMIT_S = 60.0
"""Nothing but failures for this long: the endpoint is gone and higher rungs would learn nothing."""
DEAD_LEAST = 5
ENOUGH = 59
"""Completions below which no bound on a p95 exists; a slow server's window stays open until it has them."""
EXTEND_MOST = 3
"""Times the hold."""
LOST_PAUSE_S = 6.0
"""Until Locust itself has noticed a lost worker and deals users to the others only."""


class Clock(Protocol):
    """UTC ns that never step."""

    def now_ns(self) -> int:
        """Now."""


class Phase(Enum):
    """Of the current rung."""

    RAMP = "ramp"
    HOLD = "hold"
    DRAIN = "drain"
    IDLE = "idle"
    DONE = "done"


@dataclass
class Climbing:
    """The rung being measured."""

    job: Job
    workers: set[str]
    since_ns: int
    hold_from_ns: int | None = None
    hold_until_ns: int | None = None
    voids: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Finished:
    """A measured rung with what it was derived from."""

    job: int
    rung: Rung
    rows: Rows


class Conductor:
    """``tick`` says how many users there should be now, None when the ladder is over."""

    def __init__(
        self,
        settings: Ladder,
        method: Method,
        clock: Clock,
        inbox: Inbox,
        announce: Callable[[Job], None],
        on_rung: Callable[[Finished], None],
        variant: str | None,
    ) -> None:
        self._settings = settings
        self._method = method
        self._clock = clock
        self._inbox = inbox
        self._announce = announce
        self._on_rung = on_rung
        self._variant = variant
        self.phase = Phase.IDLE
        self.done: list[Rung] = []
        self.current: Climbing | None = None
        self.abandoned: str | None = None
        self._jobs = 0
        self._idle_until_ns = 0
        self._made_ns = clock.now_ns()

    def tick(self) -> int | None:
        """Move on as far as the reports allow."""
        steps = {Phase.RAMP: self._ramp, Phase.HOLD: self._hold, Phase.DRAIN: self._drain, Phase.IDLE: self._idle}
        if self.phase in steps:
            steps[self.phase]()
        if self.phase is Phase.DONE:
            return None
        return self.current.job.users if self.current and self.phase in (Phase.RAMP, Phase.HOLD) else 0

    def void(self, reason: str) -> None:
        """The current rung cannot count; it ends now. What is found while it drains may have been so in the window."""
        if self.current is None or self.phase not in (Phase.RAMP, Phase.HOLD, Phase.DRAIN):
            return
        if reason not in self.current.voids:
            self.current.voids.append(reason)
        if self.phase is not Phase.DRAIN:
            self._end_hold()

    def seconds_left(self) -> float | None:
        """Of the hold; None outside it."""
        if self.phase is not Phase.HOLD or self.current is None or self.current.hold_from_ns is None:
            return None
        return self._settings.hold_s - (self._clock.now_ns() - self.current.hold_from_ns) / 1e9

    def _idle(self) -> None:
        if self._clock.now_ns() < self._idle_until_ns:
            return
        if not self._inbox.alive() and not self.done:
            # Locust asks before the first report; without a process to wait for, nothing would ever be waited for.
            if self._clock.now_ns() - self._made_ns > REPORT_LIMIT_S * 1e9:
                self.abandoned = f"no load process reported within {REPORT_LIMIT_S:.0f} s"
                self.phase = Phase.DONE
            return
        upcoming = None if self.abandoned else next_rung(self._settings, self.done)
        if upcoming is None:
            self.phase = Phase.DONE
            return
        run, users = upcoming
        index = sum(rung.run == run for rung in self.done)
        work = job(self._settings.common, id=self._jobs, run=run, rung=index, users=users, variant=self._variant)
        self._jobs += 1
        self.current = Climbing(work, self._inbox.alive(), self._clock.now_ns())
        self._announce(work)
        self.phase = Phase.RAMP

    def _ramp(self) -> None:
        assert self.current is not None
        self.current.workers |= self._inbox.alive()
        self._check_workers()
        work = self.current.job
        started, last_ns = self._inbox.started(work.id)
        if started == work.users:
            self.current.hold_from_ns = last_ns
            self.phase = Phase.HOLD
            return
        limit_s = RAMP_LIMIT_S + work.users / RAMP_USERS_PER_S
        if self._clock.now_ns() - self.current.since_ns > limit_s * 1e9:
            self.void(f"only {started} of {work.users} users had a request out after {limit_s:.0f} s")

    def _hold(self) -> None:
        assert self.current is not None
        assert self.current.hold_from_ns is not None
        self._check_workers()
        self._check_answers()
        now_ns = self._clock.now_ns()
        if self.phase is not Phase.HOLD or now_ns < self._planned_end_ns():
            return
        if self._completions_by(now_ns) >= ENOUGH or now_ns >= self._planned_end_ns(EXTEND_MOST):
            self._end_hold()

    def _completions_by(self, until_ns: int) -> int:
        assert self.current is not None
        from_ns = self._planned_end_ns() - int(self._settings.measure_window_s * 1e9)
        return sum(from_ns <= record.done_ns < until_ns for record in self._inbox.rows(self.current.job.id).records)

    def _planned_end_ns(self, times: int = 1) -> int:
        assert self.current is not None
        return (self.current.hold_from_ns or 0) + int(times * self._settings.hold_s * 1e9)

    def _end_hold(self) -> None:
        assert self.current is not None
        now_ns = self._clock.now_ns()
        extended = now_ns >= self._planned_end_ns() and self._completions_by(self._planned_end_ns()) < ENOUGH
        until_ns = now_ns if extended else min(now_ns, self._planned_end_ns())
        self.current.hold_until_ns = until_ns if self.current.hold_from_ns else None
        self.current.since_ns = now_ns
        self.phase = Phase.DRAIN

    def _drain(self) -> None:
        assert self.current is not None
        now_ns = self._clock.now_ns()
        lost = self.current.workers - self._inbox.alive()
        drained = self._inbox.drained(self.current.job.id, self.current.workers)
        limit_s = self._settings.common.request_timeout_s + DRAIN_GRACE_S
        if not drained and now_ns - self.current.since_ns < limit_s * 1e9:
            return
        if lost and not self.current.voids:
            self.current.voids.append(_lost_text(lost))
        self._finish(self.current)
        pause_s = max(self._settings.idle_s, LOST_PAUSE_S if lost else 0.0)
        self._idle_until_ns = now_ns + int(pause_s * 1e9)
        self.phase = Phase.IDLE

    def _finish(self, current: Climbing) -> None:
        rows = self._inbox.rows(current.job.id)
        rung = measure(
            rows,
            self._window(current),
            concurrency=current.job.users,
            run=current.job.run,
            method=self._method,
            pcm=self._settings.common.accept.startswith(("audio/pcm", "audio/wav")),
            voids=current.voids,
        )
        self.done.append(rung)
        self.current = None
        self._on_rung(Finished(current.job.id, rung, rows))

    def _window(self, current: Climbing) -> Window | None:
        if current.hold_from_ns is None or current.hold_until_ns is None:
            return None
        planned_ns = current.hold_from_ns + int(self._settings.hold_s * 1e9)
        ends_ns = min(current.hold_until_ns, planned_ns)
        start_ns = max(current.hold_from_ns, ends_ns - int(self._settings.measure_window_s * 1e9))
        return Window(start_ns, current.hold_until_ns) if start_ns < current.hold_until_ns else None

    def _check_workers(self) -> None:
        assert self.current is not None
        lost = self.current.workers - self._inbox.alive()
        if lost:
            self.void(_lost_text(lost))

    def _check_answers(self) -> None:
        assert self.current is not None
        since_ns = self._clock.now_ns() - int(DEAD_AFTER_S * 1e9)
        recent = []
        for record in reversed(self._inbox.rows(self.current.job.id).records):
            if record.done_ns < since_ns - int(DEAD_AFTER_S * 1e9):
                break
            if record.done_ns >= since_ns:
                recent.append(record)
        dead = {"server_error", "broken", "timeout", "client_error", "no_audio"}
        if len(recent) < DEAD_LEAST or any(record.outcome not in dead for record in recent):
            return
        if recent[-1].done_ns > since_ns + int(DEAD_AFTER_S * 0.5e9):
            return
        self.abandoned = (
            f"nothing but failures for {DEAD_AFTER_S:.0f} s at N={self.current.job.users}: {recent[0].error}"
        )
        self.void(self.abandoned)


def _lost_text(lost: set[str]) -> str:
    return f"load worker lost: {', '.join(sorted(lost))}"
