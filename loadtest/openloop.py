"""An open loop: requests leave at intended times, whatever the server does.

A connection is taken from a pool or opened, never waited for. Latency counts from the intended time, so a server that
stalls is charged for every request that became due meanwhile. OpenLoop runs in a thread with a gevent hub of its own,
so that AWS calls of the main thread never hold up a response.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import gevent
from gevent.pool import Group

from loadtest.agent import Agent, record
from loadtest.corpus import shuffled
from loadtest.exchange import cut, perform
from loadtest.job import Job
from loadtest.stats import nearest_rank
from loadtest.transports import Transport
from planner.artifacts.records import RequestRecord

JOIN_S = 60.0
LATE_MS = 10.0
"""p99 lateness beyond this: the client did not keep its schedule."""
POLL_S = 0.05
WARM_LIMIT_S = 3.0
"""A connection that takes longer is opened when it is needed."""


@dataclass(frozen=True)
class Schedule:
    """When requests are due, seconds after the start, and which stretch each belongs to."""

    due_s: Sequence[float]
    stretch: Sequence[int]
    """Recorded as the request's rung."""


class Pacer:
    """Sends the requests of one load process when they are due; ``keep`` takes each finished one."""

    def __init__(self, agent: Agent, keep: Callable[[RequestRecord], None], stopping: Callable[[], bool]) -> None:
        self._agent = agent
        self._keep = keep
        self._stopping = stopping
        self._idle: deque[Transport] = deque()

    def warm(self, connections: int) -> None:
        """Connect before the first request is due, all at once: a TLS handshake takes its time."""
        assert self._agent.dialler is not None
        transports = [self._agent.dialler.transport() for _ in range(connections)]
        opening = [gevent.spawn(transport.open) for transport in transports]
        gevent.joinall(opening, timeout=WARM_LIMIT_S)
        gevent.killall(opening)
        self._idle.extend(transports)

    def run(self, schedule: Schedule, started_ns: int) -> None:
        """Until every request has ended or ``stopping``; a late client still sends everything."""
        job = self._agent.job
        assert job is not None
        order = shuffled(len(self._agent.bodies), f"{job.seed}/open/{job.run}/{self._agent.index}")
        flying = Group()
        try:
            for due_s, stretch in zip(schedule.due_s, schedule.stretch, strict=True):
                intended_ns = started_ns + round(due_s * 1e9)
                self._wait_until(intended_ns)
                if self._stopping():
                    break
                flying.start(gevent.Greenlet(self._send_one, job, next(order), intended_ns, stretch))
            while flying and not self._stopping():
                flying.join(timeout=POLL_S)
        finally:
            flying.kill()
            for transport in self._idle:
                transport.close()
            self._idle.clear()

    def _wait_until(self, intended_ns: int) -> None:
        while not self._stopping():
            left_s = (intended_ns - time.monotonic_ns()) / 1e9
            if left_s <= 0:
                gevent.sleep(0)
                return
            gevent.sleep(min(left_s, POLL_S))

    def _send_one(self, job: Job, text: int, intended_ns: int, stretch: int) -> None:
        agent = self._agent
        assert agent.dialler is not None
        transport = self._idle.pop() if self._idle else agent.dialler.transport()
        agent.in_flight += 1
        sent_ns = time.monotonic_ns()
        try:
            found = perform(transport, agent.bodies[text], job.timeout_s)
        except gevent.GreenletExit:
            transport.close()
            found = cut(sent_ns)
        finally:
            agent.in_flight -= 1
        self._idle.append(transport)
        self._keep(replace(record(agent.name, job, found, text, intended_ns), rung=stretch))


class OpenLoop(Agent):
    """Sends one schedule from a thread of its own; ``records`` grow while it runs."""

    def __init__(self, job: Job, warm_connections: int) -> None:
        super().__init__(_no_messages)
        self.records: list[RequestRecord] = []
        self.started_ns = 0
        self._of_schedule = job
        self._warm = warm_connections
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
        pacer = Pacer(self, self.records.append, self._stopping.is_set)
        pacer.warm(self._warm)
        self.started_ns = time.monotonic_ns()
        ready.set()
        pacer.run(schedule, self.started_ns)
        self._finished.set()


def lateness_p99_ms(records: Sequence[RequestRecord]) -> float | None:
    """How far behind its schedule the client sent; None without requests."""
    late = sorted((item.sent_ns - item.intended_ns) / 1e6 for item in records)
    return nearest_rank(late, 0.99) if late else None


def _no_messages(kind: str, message: dict[str, Any]) -> None:
    """One process: nobody to report to."""
