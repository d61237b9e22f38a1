"""The open loop against a server that stops answering for a while."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from loadtest.job import Job
from loadtest.openloop import OpenLoop, Schedule, lateness_p99_ms


def job(**changes: Any) -> Job:
    values: dict[str, Any] = {
        "id": 0,
        "run": 0,
        "rung": 0,
        "users": 50,
        "endpoint": "speech",
        "variant": None,
        "api": "response-stream",
        "client": "lean",
        "content_type": "application/json",
        "accept": "audio/pcm",
        "timeout_s": 5.0,
        "seed": 0,
        "bodies": ["{}"],
        "chars": [2],
    }
    return Job(**(values | changes))


def run(schedule: Schedule, limit_s: float = 15, **changes: Any) -> OpenLoop:
    load = OpenLoop(job(**changes), warm_connections=5)
    load.start(schedule)
    until = time.monotonic() + limit_s
    while not load.finished and time.monotonic() < until:
        time.sleep(0.02)
    load.stop()
    return load


def test_every_request_leaves_when_it_is_due(scripted: Any) -> None:
    schedule = Schedule([i / 100 for i in range(150)], [i // 75 for i in range(150)])
    load = run(schedule)
    assert len(load.records) == len(scripted.calls) == 150
    assert sorted(record.intended_ns - load.started_ns for record in load.records) == [
        i * 10_000_000 for i in range(150)
    ]
    assert [record.rung for record in sorted(load.records, key=lambda r: r.intended_ns)] == [0] * 75 + [1] * 75
    late = lateness_p99_ms(load.records)
    assert late is not None
    assert late < 100


def test_a_stalled_server_is_charged_for_every_request_that_became_due(scripted: Any, payload_part: Any) -> None:
    resume = threading.Event()
    stalled_s, rate_rps = 1.2, 50

    def script(call: Any) -> None:
        if len(scripted.calls) > 25:
            resume.wait(10)
        call.stream([payload_part(b"audio")])

    scripted.script = script
    threading.Timer(0.5 + stalled_s, resume.set).start()
    load = run(Schedule([i / rate_rps for i in range(125)], [0] * 125))
    late = [record for record in load.records if (record.ttfab_ms or 0) > 100]
    # Not five, the number of warm connections: everything due in the stall but its last 0.1 s.
    assert len(late) == pytest.approx((stalled_s - 0.1) * rate_rps, abs=8)
    assert {record.outcome for record in load.records} == {"ok"}
    assert len(load.records) == 125


def test_stopping_cuts_what_is_in_flight(scripted: Any, payload_part: Any) -> None:
    scripted.script = lambda call: call.stream([payload_part(b"a")], end=False)
    load = OpenLoop(job(), warm_connections=2)
    load.start(Schedule([0.0, 0.01, 30.0], [0, 0, 0]))
    time.sleep(0.2)
    load.stop()
    assert [record.outcome for record in load.records] == ["cancelled", "cancelled"]
    assert load.in_flight == 0
