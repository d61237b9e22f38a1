"""Bidirectional answers frame by frame, and the whole way where the SDK is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from loadtest.bidi_process import Answer
from planner.artifacts.qmax import Qmax


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
