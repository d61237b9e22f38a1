"""Users of one load process with a scripted transport: counting, back-off, cancellation, reports."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import gevent
import pytest

from loadtest.agent import ROW, STATUS, Agent, attributes
from loadtest.job import Job
from loadtest.transports import Failure, Stream

ATTRIBUTES = "boot_id=0123456789ab;queue_depth=3;wait_ms=1.5;service_ms=55.9"


class Scripted:
    """A transport whose answers a test decides."""

    def __init__(self, answer: Callable[[], Iterator[bytes]]) -> None:
        self.answer = answer
        self.sent: list[bytes] = []
        self.closed = 0

    def open(self) -> None:
        pass

    def close(self) -> None:
        self.closed += 1

    def send(self, body: bytes) -> Stream:
        self.sent.append(body)
        return Stream(time.monotonic_ns(), 200, "audio/pcm", ATTRIBUTES, self.answer())


class Dialler:
    def __init__(self, transport: Any) -> None:
        self._transport = transport

    def transport(self) -> Any:
        return self._transport


@pytest.fixture
def statuses() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def agent(statuses: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.setattr("loadtest.agent.Dialler", lambda _: Dialler(None))
    made = Agent(lambda kind, body: statuses.append({"kind": kind} | body))
    made.begin(Job(3, 0, 2, 2, "e", None, "response-stream", "lean", "a/b", "c/d", 5.0, 0, ["one", "two"], [3, 3]), 0)
    return made


def rows(statuses: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [dict(zip([*ROW, "gap_ms"], row, strict=True)) for status in statuses for row in status["rows"]]


def test_a_request_becomes_a_record(agent: Agent, statuses: list[dict[str, Any]]) -> None:
    transport = Scripted(lambda: iter([b"ab", b"cd"]))
    agent.dialler = Dialler(transport)  # type: ignore[assignment]
    user = agent.speaker()
    user.speak()
    user.speak()
    user.leave()
    agent.report(0.25)
    (status,) = statuses
    assert (status["kind"], status["job"], status["users"], status["in_flight"], status["started"]) == (
        STATUS,
        3,
        0,
        0,
        1,
    )
    first, second = rows(statuses)
    assert {first["text"], second["text"]} == {0, 1}
    assert (first["outcome"], first["bytes"], first["rung"]) == ("ok", 4, 2)
    assert (first["boot_id"], first["queue_depth"], first["service_ms"]) == ("0123456789ab", 3, 55.9)
    assert first["intended_ns"] == first["sent_ns"] <= first["first_audio_ns"] <= first["done_ns"]
    assert first["gap_ms"] is None
    assert 0 <= second["gap_ms"] < 50


def test_a_refusing_server_is_not_hammered(agent: Agent, statuses: list[dict[str, Any]]) -> None:
    def refuse() -> Iterator[bytes]:
        raise Failure("rejected", "queue_saturated", 503)

    transport = Scripted(refuse)
    agent.dialler = Dialler(transport)  # type: ignore[assignment]
    user = agent.speaker()
    with gevent.Timeout(0.5, False):
        while True:
            user.speak()
    assert 2 <= len(transport.sent) <= 5
    agent.report(0.0)
    assert {row["outcome"] for row in rows(statuses)} == {"rejected"}
    assert agent.in_flight == 0


def test_a_killed_user_leaves_a_cancelled_record(agent: Agent, statuses: list[dict[str, Any]]) -> None:
    def hang() -> Iterator[bytes]:
        gevent.sleep(30)
        yield b""

    transport = Scripted(hang)
    agent.dialler = Dialler(transport)  # type: ignore[assignment]
    user = agent.speaker()
    speaking = gevent.spawn(user.speak)
    gevent.sleep(0.02)
    assert agent.in_flight == 1
    speaking.kill()
    agent.report(0.0)
    assert [row["outcome"] for row in rows(statuses)] == ["cancelled"]
    assert agent.in_flight == 0
    assert transport.closed == 1


def test_reports_carry_loop_lag_and_cpu(agent: Agent, statuses: list[dict[str, Any]]) -> None:
    watching = gevent.spawn(agent.watch)
    gevent.sleep(0.1)
    time.sleep(0.06)  # blocks the event loop on purpose
    gevent.sleep(0.3)
    watching.kill()
    assert statuses
    lags = [lag for status in statuses for lag in status["lags_ms"]]
    assert max(lags) >= 30
    assert all(0 <= status["cpu_share"] <= 1.5 for status in statuses)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", {}), ("boot_id=1a", {"boot_id": "1a"}), (" a=1; b=x=y;c", {"a": "1", "b": "x=y"})],
)
def test_attributes(text: str, expected: dict[str, str]) -> None:
    assert attributes(text) == expected


def test_attributes_of_another_service_are_not_ours(agent: Agent, statuses: list[dict[str, Any]]) -> None:
    class Foreign(Scripted):
        def send(self, body: bytes) -> Stream:
            self.sent.append(body)
            return Stream(time.monotonic_ns(), 200, "x/y", "service_ms=fast;queue_depth=;trace", iter([b"z"]))

    agent.dialler = Dialler(Foreign(lambda: iter([])))  # type: ignore[assignment]
    agent.speaker().speak()
    agent.report(0.0)
    (row,) = rows(statuses)
    assert (row["outcome"], row["service_ms"], row["queue_depth"], row["boot_id"]) == ("ok", None, None, None)
