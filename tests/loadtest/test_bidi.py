"""Bidirectional answers frame by frame, and the whole way where the SDK is installed."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from loadtest import bidi_process
from loadtest.agent import reported
from loadtest.bidi import COMMAND
from loadtest.bidi_process import Answer, BidiProcess
from loadtest.job import Job
from planner.artifacts.qmax import Qmax
from planner.artifacts.records import RequestRecord


def say(**fields: object) -> tuple[bytes, bool]:
    return json.dumps(fields).encode(), True


def test_audio_after_start_and_before_complete() -> None:
    answer = Answer(sent_ns=1)
    assert not answer.take(*say(type="start", boot_id="0a", queue_depth=3))
    assert answer.started_ns is not None
    assert answer.first_audio_ns is None
    assert not answer.take(b"", False)
    assert answer.first_audio_ns is None
    assert not answer.take(b"abcd", False)
    assert not answer.take(*say(type="timing"))
    assert answer.take(*say(type="complete", audio_s=1.0))
    found = answer.exchange()
    assert (found.outcome, found.audio_bytes, found.attributes) == ("ok", 4, "boot_id=0a;queue_depth=3")
    assert found.first_audio_ns is not None


@pytest.mark.parametrize(
    ("frame", "outcome", "status"),
    [
        (say(type="error", error="queue_saturated", message="full"), "rejected", 503),
        (say(type="error", error="internal_error", message="x"), "server_error", 200),
        (say(type="complete"), "no_audio", 200),
    ],
)
def test_everything_else_is_an_outcome(frame: tuple[bytes, bool], outcome: str, status: int) -> None:
    answer = Answer(sent_ns=1)
    assert answer.take(*frame)
    assert (answer.exchange().outcome, answer.exchange().status) == (outcome, status)


def test_a_stream_that_ends_early_is_broken() -> None:
    answer = Answer(sent_ns=1)
    answer.take(b"abcd", False)
    assert answer.exchange().outcome == "broken"


class FakeSession:
    """Answers after ``takes_s``; notes how many streams were opened, ended and closed."""

    counts: dict[str, int]
    takes_s = 0.01

    def __init__(self, job: Job) -> None:  # noqa: ARG002
        self.is_open = False

    async def open(self) -> None:
        self.counts["opened"] += not self.is_open
        self.is_open = True

    async def end(self) -> None:
        self.counts["ended"] += 1
        self.is_open = False

    async def close(self) -> None:
        self.is_open = False

    async def speak(self, body: bytes, answer: Answer) -> None:  # noqa: ARG002
        await asyncio.sleep(self.takes_s)
        answer.take(*say(type="start", boot_id="0a", queue_depth=1))
        answer.take(b"abcd", False)
        answer.take(*say(type="complete"))


@pytest.fixture
def spoken(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[RequestRecord]]:
    """``spoken(session_each=, until=)``: the records of two users that were cut when ``until`` requests had ended."""

    def speak(*, session_each: bool, until: int, takes_s: float = 0.01) -> list[RequestRecord]:
        monkeypatch.setattr(FakeSession, "takes_s", takes_s)
        records: list[RequestRecord] = []

        async def run() -> None:
            async with asyncio.TaskGroup() as group:
                process = BidiProcess("w", group)
                process.take(
                    Job(0, 0, 0, 2, "e", None, "bidi", "lean", "a/b", "c/d", 5.0, 0, ["x"], [1], session_each), 0
                )
                process.want(2)
                while len(records) < until:
                    await asyncio.sleep(0.005)
                    process.report(0.0)
                await asyncio.sleep(0.005)
                await process.cut()
                assert (process.users, process.in_flight) == (0, 0)

        def keep(_: str, status: dict[str, Any]) -> None:
            records.extend(record for record, _ in reported(status))

        monkeypatch.setattr(bidi_process, "_write", keep)
        asyncio.run(run())
        return records

    monkeypatch.setattr(FakeSession, "counts", {"opened": 0, "ended": 0}, raising=False)
    monkeypatch.setattr(bidi_process, "Session", FakeSession)
    monkeypatch.setattr(bidi_process, "failures", lambda: (OSError,))
    return speak


def test_a_ladder_s_user_keeps_its_session(spoken: Callable[..., list[RequestRecord]]) -> None:
    records = spoken(session_each=False, until=6)
    assert {record.boot_id for record in records if record.outcome == "ok"} == {"0a"}
    assert FakeSession.counts == {"opened": 2, "ended": 0}


def test_a_probe_s_utterance_has_a_session_of_its_own(spoken: Callable[..., list[RequestRecord]]) -> None:
    records = spoken(session_each=True, until=6)
    answered = sum(record.outcome == "ok" for record in records)
    cut = sum(record.outcome == "cancelled" for record in records)
    assert FakeSession.counts["ended"] == answered
    assert answered <= FakeSession.counts["opened"] == answered + cut


def test_what_is_out_when_the_process_ends_is_cancelled(spoken: Callable[..., list[RequestRecord]]) -> None:
    records = spoken(session_each=True, until=0, takes_s=30.0)
    assert [record.outcome for record in records] == ["cancelled", "cancelled"]
    assert all(record.first_audio_ns is None and record.done_ns > record.sent_ns for record in records)


def test_the_process_outlives_ctrl_c_and_ends_with_its_stdin() -> None:
    child = subprocess.Popen([*COMMAND, "w"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with child:
        assert child.stdin is not None
        assert child.stdout is not None
        status = json.loads(child.stdout.readline())
        child.send_signal(signal.SIGINT)
        assert json.loads(child.stdout.readline())["anchor"] == status["anchor"]
        child.stdin.close()
        assert child.wait(timeout=10) == 0
    assert status["worker"] == "w"


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("aws_sdk_sagemaker_runtime_http2") is None, reason="needs Python 3.12 and the bidi extra"
)
def test_a_ladder_over_bidirectional_streams(tmp_path: Path) -> None:
    root = str(Path(__file__).resolve().parents[2])
    own = os.environ | {"HEADROOM_REHEARSAL_DIR": str(tmp_path / "rehearsal"), "PYTHONPATH": root}

    def run(*arguments: str, **environment: str) -> str:
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(
            command, env=own | environment, cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout

    service = ["--env", "REPLAY_SERVICE_MEAN_MS=20", "--env", "REPLAY_SERVICE_P95_MS=21"]
    run("rehearsal", "up", "--seed", "--engine", "replay", "--bidi", *service)
    try:
        lines = (line.removeprefix("export ").partition("=") for line in run("rehearsal", "env").splitlines())
        exports = {name: value for name, equals, value in lines if equals}
        flags = [
            "--endpoint",
            "speech-kokoro-82m",
            "--model",
            "m",
            "--transport",
            "bidi",
            "--out",
            str(tmp_path / "out"),
        ]
        quick = ["--rungs", "4,24", "--hold-s", "5", "--measure-window-s", "4", "--slo-ms", "250", "--idle-s", "1"]
        run("loadtest.ladder", *flags, *quick, **exports)
    finally:
        run("rehearsal", "down")
    (path,) = (tmp_path / "out").glob("qmax-m-bidi-*.json")
    assert Qmax.load(path).q_max == 4


def test_the_sdk_is_pinned_in_both_places() -> None:
    root = Path(__file__).resolve().parents[2]
    extra = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]["bidi"]
    [pin] = [line.split(";")[0].replace("[awscrt]", "") for line in extra]
    assert "==" in pin
    assert pin in (root / "constraints.txt").read_text().splitlines()
