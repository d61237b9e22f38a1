"""An open loop in a thread of its own: requests leave at intended times, whatever the server does.

A connection is taken from a pool or opened, never waited for. Latency counts from the intended time, so a server that
stalls is charged for every request that became due meanwhile. The thread has its own gevent hub, so that AWS calls of
the main thread never hold up a response.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import gevent
from gevent.pool import Group

from loadtest.agent import Agent, record
from loadtest.corpus import shuffled
from loadtest.exchange import perform
from loadtest.job import Job
from loadtest.stats import nearest_rank
from loadtest.transports import Transport
from planner.artifacts.records import RequestRecord

JOIN_S = 60.0
LATE_MS = 10.0
"""p99 lateness beyond this: the client did not keep its schedule."""
POLL_S = 0.05


@dataclass(frozen=True)
class Schedule:
    """When requests are due, seconds after the start, and which stretch each belongs to."""

    due_s: Sequence[float]
    stretch: Sequence[int]
    """Recorded as the request's rung."""


class OpenLoop(Agent):
    """Sends one schedule; ``records`` grow while it runs."""

    def __init__(self, job: Job, warm_connections: int) -> None:
        super().__init__(_no_messages)
        self.records: list[RequestRecord] = []
        self.started_ns = 0
        self._of_schedule = job
        self._warm = warm_connections
        self._idle: deque[Transport] = deque()
        self._stopping = threading.Event()
        self._finished = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def finished(self) -> bool:
        """Every request of the schedule has ended, or it was stopped."""
        return self._finished.is_set()

    def start(self, schedule: Schedule) -> None:
        """Connect, then begin; returns once the first request may leave."""
        ready = threading.Event()
        self._thread = threading.Thread(target=self._load, args=(schedule, ready), name="open-loop", daemon=True)
        self._thread.start()
        ready.wait(JOIN_S)

    def stop(self) -> None:
        """No request leaves any more; those in flight are cut and recorded as cancelled."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
            self._thread = None

    def _load(self, schedule: Schedule, ready: threading.Event) -> None:
        self.begin(self._of_schedule, 0)
        assert self.dialler is not None
        for _ in range(self._warm):
            transport = self.dialler.transport()
            transport.open()
            self._idle.append(transport)
        order = shuffled(len(self.bodies), f"{self._of_schedule.seed}/open/{self._of_schedule.run}")
        flying = Group()
        self.started_ns = time.monotonic_ns()
        ready.set()
        for due_s, stretch in zip(schedule.due_s, schedule.stretch, strict=True):
            intended_ns = self.started_ns + round(due_s * 1e9)
            self._wait_until(intended_ns)
            if self._stopping.is_set():
                break
            flying.start(gevent.Greenlet(self._send_one, next(order), intended_ns, stretch))
        while flying and not self._stopping.is_set():
            flying.join(timeout=POLL_S)
        flying.kill()
        for transport in self._idle:
            transport.close()
        self._idle.clear()
        self._finished.set()

    def _wait_until(self, intended_ns: int) -> None:
        while not self._stopping.is_set():
            left_s = (intended_ns - time.monotonic_ns()) / 1e9
            if left_s <= 0:
                gevent.sleep(0)
                return
            gevent.sleep(min(left_s, POLL_S))

    def _send_one(self, text: int, intended_ns: int, stretch: int) -> None:
        assert self.dialler is not None
        transport = self._idle.pop() if self._idle else self.dialler.transport()
        self.in_flight += 1
        try:
            found = perform(transport, self.bodies[text], self._of_schedule.timeout_s)
        finally:
            self.in_flight -= 1
        self._idle.append(transport)
        made = record(self.name, self._of_schedule, found, text, intended_ns)
        self.records.append(replace(made, rung=stretch))


def lateness_p99_ms(records: Sequence[RequestRecord]) -> float | None:
    """How far behind its schedule the client sent; None without requests."""
    late = sorted((item.sent_ns - item.intended_ns) / 1e6 for item in records)
    return nearest_rank(late, 0.99) if late else None


def _no_messages(kind: str, message: dict[str, Any]) -> None:
    """One process: nobody to report to."""
