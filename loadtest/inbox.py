"""What the conductor knows of its load processes: last status, records and health, on one clock."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from loadtest.agent import ROW, reported
from planner.artifacts.records import Anchor, RequestRecord

SILENT_AFTER_S = 3.0
"""Twelve missed reports."""


@dataclass(frozen=True)
class RunClock:
    """UTC in ns that never steps: this process's monotonic clock from one reading of the wall clock."""

    monotonic_ns: int = field(default_factory=time.monotonic_ns)
    utc_ns: int = field(default_factory=time.time_ns)

    def now_ns(self) -> int:
        """Now."""
        return self.utc_ns + time.monotonic_ns() - self.monotonic_ns


@dataclass(frozen=True)
class Health:
    """One report of a load process."""

    worker: str
    at_ns: int
    cpu_share: float
    lags_ms: list[float]


@dataclass
class Rows:
    """Everything the load processes sent about one rung; times are UTC ns."""

    records: list[RequestRecord] = field(default_factory=list)
    gaps: list[tuple[int, float]] = field(default_factory=list)
    health: list[Health] = field(default_factory=list)


@dataclass
class _Worker:
    anchor: Anchor
    heard_ns: int
    job: int
    users: int
    in_flight: int
    started: int
    last_started_ns: int


class Inbox:
    """Fed with status messages; a process on another machine lands on our clock through its anchor."""

    def __init__(self, clock: RunClock) -> None:
        self._clock = clock
        self._workers: dict[str, _Worker] = {}
        self._rows: dict[int, Rows] = {}
        self._raw: dict[int, list[RequestRecord]] = {}

    def receive(self, status: dict[str, Any]) -> None:
        """One status message."""
        anchor = Anchor(status["worker"], *status["anchor"])
        offset_ns = anchor.utc_ns - anchor.monotonic_ns
        self._workers[anchor.worker] = _Worker(
            anchor,
            self._clock.now_ns(),
            status["job"],
            status["users"],
            status["in_flight"],
            status["started"],
            status["last_started_ns"] + offset_ns,
        )
        rows = self._rows.setdefault(status["job"], Rows())
        raw = self._raw.setdefault(status["job"], [])
        for record, gap_ms in reported(status):
            raw.append(record)
            rows.records.append(shifted(record, offset_ns))
            if gap_ms is not None:
                rows.gaps.append((record.sent_ns + offset_ns, gap_ms))
        at_ns = status["at_ns"] + offset_ns
        rows.health.append(Health(anchor.worker, at_ns, status["cpu_share"], status["lags_ms"]))

    def rows(self, job: int) -> Rows:
        """Of one rung, on the common clock."""
        return self._rows.get(job, Rows())

    def take_raw(self, job: int) -> Iterable[RequestRecord]:
        """The rung's records as the workers stamped them, once."""
        return self._raw.pop(job, [])

    def anchors(self) -> list[Anchor]:
        """Of every process ever heard."""
        return [worker.anchor for worker in self._workers.values()]

    def alive(self) -> set[str]:
        """Processes that still report."""
        horizon_ns = self._clock.now_ns() - int(SILENT_AFTER_S * 1e9)
        return {name for name, worker in self._workers.items() if worker.heard_ns >= horizon_ns}

    def started(self, job: int) -> tuple[int, int]:
        """Users whose first request is out, and when the last of them sent it."""
        mine = [worker for worker in self._workers.values() if worker.job == job]
        started = sum(worker.started for worker in mine)
        return started, max((worker.last_started_ns for worker in mine if worker.started), default=0)

    def idle(self, workers: set[str]) -> set[str]:
        """Those of ``workers`` that carry no user."""
        return {name for name in workers if self._workers[name].users == 0}

    def in_flight(self, job: int) -> int:
        """Requests out right now, as last reported."""
        return sum(worker.in_flight for worker in self._workers.values() if worker.job == job)

    def drained(self, job: int, workers: set[str]) -> bool:
        """Nothing is out and nobody is left on any of ``workers`` that still reports."""
        mine = [self._workers[name] for name in workers & self.alive()]
        return all(worker.job != job or (worker.users == 0 and worker.in_flight == 0) for worker in mine)


def shifted(record: RequestRecord, offset_ns: int) -> RequestRecord:
    """The same request on another clock."""
    values = {name: getattr(record, name) for name in ROW}
    for name in ("intended_ns", "sent_ns", "headers_ns", "first_audio_ns", "done_ns"):
        if values[name] is not None:
            values[name] += offset_ns
    return RequestRecord(**values)
