"""The load half of the harness, one process: N of the ladder's users against the null server, raw figures as JSON."""

from __future__ import annotations

from gevent import monkey

monkey.patch_all()

import json  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
from collections.abc import Iterator  # noqa: E402
from dataclasses import replace  # noqa: E402
from typing import Any  # noqa: E402

import gevent  # noqa: E402
from gevent.event import Event  # noqa: E402

from bench.harness import STAMP  # noqa: E402
from loadtest.agent import REPORT_EVERY_S, Agent, cpu_s  # noqa: E402
from loadtest.inbox import Inbox, RunClock  # noqa: E402
from loadtest.job import Dialler, Job  # noqa: E402
from loadtest.transports import Stream, Transport  # noqa: E402

MAGIC = b"HRNS"
WARM_UP_S = 3.0
DRAIN_S = 20.0
TEXT = '{"text":"The meeting starts at noon.","format":"pcm"}'


class StampReader:
    """A transport that compares the server's stamp in each part with the moment the part reached us."""

    def __init__(self, inner: Transport, lags_ms: list[float]) -> None:
        self._inner, self._lags_ms = inner, lags_ms
        self.open, self.close = inner.open, inner.close

    def send(self, body: bytes) -> Stream:
        """As the inner one, watching the parts."""
        stream = self._inner.send(body)
        return replace(stream, pieces=self._watched(stream.pieces))

    def _watched(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            now_ns = time.monotonic_ns()
            if piece[:4] == MAGIC:
                self._lags_ms.append((now_ns - STAMP.unpack_from(piece)[2]) / 1e6)
            yield piece


class StampingDialler(Dialler):
    """Dials transports whose parts are compared."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self.lags_ms: list[float] = []

    def transport(self) -> Transport:
        """Wrapped."""
        return StampReader(super().transport(), self.lags_ms)


def main(client: str, concurrency: int, seconds: float) -> dict[str, Any]:
    """Warm up, measure, sum up."""
    clock = RunClock()
    inbox = Inbox(clock)
    agent = Agent(lambda _, status: inbox.receive(status))
    work = Job(
        id=0,
        run=0,
        rung=0,
        users=concurrency,
        endpoint="null",
        variant=None,
        api="response-stream",
        client=client,
        content_type="application/json",
        accept="audio/pcm",
        timeout_s=30.0,
        seed=0,
        bodies=[TEXT],
        chars=[27],
    )
    agent.begin(work, 0)
    dialler = agent.dialler = StampingDialler(work)
    watch = gevent.spawn(agent.watch)
    stop = Event()
    users = [gevent.spawn(_speak, agent, stop) for _ in range(concurrency)]
    gevent.sleep(WARM_UP_S)
    dialler.lags_ms.clear()
    start_ns, cpu_before_s = clock.now_ns(), cpu_s()
    gevent.sleep(seconds)
    end_ns, cpu_after_s = clock.now_ns(), cpu_s()
    lags_ms = list(dialler.lags_ms)
    stop.set()
    gevent.joinall(users, timeout=DRAIN_S)
    gevent.sleep(2 * REPORT_EVERY_S)
    gevent.killall([watch, *users])
    rows = inbox.rows(0)
    ended = [r for r in rows.records if start_ns <= r.done_ns < end_ns]
    elapsed_s = (end_ns - start_ns) / 1e9
    return {
        "ttfab_ms": [r.ttfab_ms for r in ended if r.ttfab_ms is not None],
        "lag_ms": lags_ms,
        "gap_ms": [gap for at_ns, gap in rows.gaps if start_ns <= at_ns < end_ns],
        "loop_lag_ms": [lag for h in rows.health if start_ns <= h.at_ns < end_ns for lag in h.lags_ms],
        "cpu_share": (cpu_after_s - cpu_before_s) / elapsed_s,
        "requests_per_s": sum(r.outcome == "ok" for r in ended) / elapsed_s,
        "failed": sum(r.outcome != "ok" for r in ended),
    }


def _speak(agent: Agent, stop: Event) -> None:
    speaker = agent.speaker()
    speaker.connect()
    while not stop.is_set():
        speaker.speak()
    speaker.leave()


if __name__ == "__main__":
    json.dump(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])), sys.stdout)
