"""One load process: its users' requests, the records they leave, and what it reports twice a second.

Nothing here knows Locust; ladder.py and surge.py hand in the way messages are sent.
"""

from __future__ import annotations

import os
import random
import resource
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import gevent

from loadtest.corpus import shuffled
from loadtest.exchange import Exchange, cut, perform
from loadtest.job import Dialler, Job
from loadtest.transports import Transport
from planner.artifacts.records import Anchor, RequestRecord

REPORT_EVERY_S = 0.25
LAG_PROBE_S = 0.02
"""Shorter than any lag worth calling the client the limit."""
QUICK_FAILURE_S = 1.0
BACKOFF_S = (0.1, 2.0)

Send = Callable[[str, dict[str, Any]], None]


def worker_name() -> str:
    """Unique among the processes of one run."""
    return f"{socket.gethostname()}-{os.getpid()}"


def cpu_s() -> float:
    """CPU seconds this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def attributes(text: str) -> dict[str, str]:
    """``a=1;b=2`` as the container's response attribute carries it."""
    pairs = (item.partition("=") for item in text.split(";"))
    return {key.strip(): value.strip() for key, separator, value in pairs if separator}


class Agent:
    """Counts what is in flight, keeps records until they are reported."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.name = worker_name()
        self.anchor = Anchor(self.name, time.monotonic_ns(), time.time_ns())
        self.index = 0
        self.job: Job | None = None
        self.bodies: list[bytes] = []
        self.dialler: Dialler | None = None
        self.in_flight = 0
        self.users = 0
        self.started = 0
        self.last_started_ns = 0
        self.relayed = False
        self.relay: object | None = None
        self._number = 0
        self._rows: list[list[Any]] = []
        self._lags_ms: list[float] = []

    def pass_on(self, kind: str, status: dict[str, Any]) -> None:
        """A report made elsewhere for this process."""
        self.relayed = True
        self._send(kind, status)

    def begin(self, job: Job, index: int) -> None:
        """Take over a rung; the users come after it. ``index`` numbers the load processes of a run."""
        self.index, self.job, self.dialler = index, job, Dialler(job)
        self.bodies = [body.encode() for body in job.bodies]
        self.in_flight = self.started = self.last_started_ns = self._number = 0
        self._rows.clear()

    def speaker(self) -> Speaker:
        """A new user."""
        self._number += 1
        return Speaker(self, self._number)

    def keep(self, record: RequestRecord, gap_ms: float | None) -> None:
        """A finished request."""
        self._rows.append([*(getattr(record, name) for name in ROW), gap_ms])

    def watch(self) -> None:
        """Report until killed; between reports, measure how late the event loop runs."""
        reported_s, cpu_before_s = time.monotonic(), cpu_s()
        while True:
            before_s = time.monotonic()
            gevent.sleep(LAG_PROBE_S)
            now_s = time.monotonic()
            self._lags_ms.append((now_s - before_s - LAG_PROBE_S) * 1e3)
            if now_s - reported_s >= REPORT_EVERY_S and not self.relayed:
                used_s = cpu_s()
                self.report((used_s - cpu_before_s) / (now_s - reported_s))
                reported_s, cpu_before_s = now_s, used_s

    def report(self, cpu_share: float) -> None:
        """Send everything new."""
        rows, lags_ms, self._rows, self._lags_ms = self._rows, self._lags_ms, [], []
        self._send(
            STATUS,
            {
                "worker": self.name,
                "anchor": [self.anchor.monotonic_ns, self.anchor.utc_ns],
                "at_ns": time.monotonic_ns(),
                "job": self.job.id if self.job else -1,
                "users": self.users,
                "in_flight": self.in_flight,
                "started": self.started,
                "last_started_ns": self.last_started_ns,
                "rows": rows,
                "lags_ms": lags_ms,
                "cpu_share": cpu_share,
            },
        )


STATUS = "headroom_status"
"""Load process to conductor."""
JOB = "headroom_job"
"""Conductor to load processes."""
ROW = tuple(RequestRecord.__dataclass_fields__)


def reported(status: dict[str, Any]) -> Iterator[tuple[RequestRecord, float | None]]:
    """The finished requests of a report, each with the gap before it in ms."""
    for *values, gap_ms in status["rows"]:
        yield RequestRecord(**dict(zip(ROW, values, strict=True))), gap_ms


class Speaker:
    """One user: one request outstanding, the next as soon as the answer is complete."""

    def __init__(self, agent: Agent, number: int) -> None:
        assert agent.job is not None
        assert agent.dialler is not None
        self._agent = agent
        self._job = agent.job
        self._transport: Transport = agent.dialler.transport()
        key = f"{self._job.seed}/{self._job.run}/{self._job.rung}/{agent.index}/{number}"
        self._order = shuffled(len(self._job.bodies), key)
        self._random = random.Random(key)
        self._finished_ns: int | None = None
        self._failures = 0
        self._has_started = False
        agent.users += 1

    def connect(self) -> None:
        """Before the first request, so that its time contains no handshake."""
        self._transport.open()

    def leave(self) -> None:
        """The user stops."""
        self._agent.users -= 1
        self._transport.close()

    def speak(self) -> None:
        """One request; after a quick failure a pause, so that a refusing server is not hammered."""
        text = next(self._order)
        agent = self._agent
        agent.in_flight += 1
        if not self._has_started:
            self._has_started = True
            agent.started += 1
            agent.last_started_ns = time.monotonic_ns()
        try:
            found = self._perform(text)
        finally:
            agent.in_flight -= 1
        if found.outcome == "ok":
            self._failures = 0
        elif (found.done_ns - found.sent_ns) / 1e9 < QUICK_FAILURE_S:
            self._failures += 1
            least, most = BACKOFF_S
            gevent.sleep(min(most, least * 2 ** (self._failures - 1)) * self._random.uniform(0.5, 1.0))

    def _perform(self, text: int) -> Exchange:
        sent_ns = time.monotonic_ns()
        try:
            found = perform(self._transport, self._agent.bodies[text], self._job.timeout_s)
        except gevent.GreenletExit:
            self._transport.close()
            self._agent.keep(self._record(cut(sent_ns), text, sent_ns), None)
            raise
        gap_ms = (found.sent_ns - self._finished_ns) / 1e6 if self._finished_ns and self._failures == 0 else None
        self._finished_ns = found.done_ns
        self._agent.keep(self._record(found, text, found.sent_ns), gap_ms)
        return found

    def _record(self, found: Exchange, text: int, intended_ns: int) -> RequestRecord:
        return record(self._agent.name, self._job, found, text, intended_ns)


def record(worker: str, job: Job, found: Exchange, text: int, intended_ns: int) -> RequestRecord:
    """The raw line of one request."""
    said = attributes(found.attributes)
    return RequestRecord(
        worker=worker,
        run=job.run,
        rung=job.rung,
        intended_ns=intended_ns,
        sent_ns=found.sent_ns,
        headers_ns=found.headers_ns,
        first_audio_ns=found.first_audio_ns,
        done_ns=found.done_ns,
        outcome=found.outcome,
        error=found.error,
        status=found.status,
        bytes=found.audio_bytes,
        chars=job.chars[text],
        text=text,
        boot_id=said.get("boot_id"),
        queue_depth=_number(said.get("queue_depth"), int),
        service_ms=_number(said.get("service_ms"), float),
    )


def _number(text: str | None, kind: Callable[[str], Any]) -> Any:
    """None for a container that says something else under this name."""
    try:
        return kind(text) if text is not None else None
    except ValueError:
        return None
