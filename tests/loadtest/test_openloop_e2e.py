"""The open loop at speed, against a null server in a process of its own that can be stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loadtest.job import Job
from loadtest.openloop import LATE_MS, OpenLoop, Schedule, lateness_p99_ms
from loadtest.traffic import draw
from planner.artifacts.qmax import OpenLoop as OpenLoopArtifact
from planner.simulate import profiles

pytestmark = pytest.mark.e2e


@pytest.fixture
def null(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "rehearsal", "null", "--port", "0", "--mode", "instant"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    line = server.stdout.readline()
    monkeypatch.setenv("AWS_ENDPOINT_URL", line[line.index("http://") :].split()[0])
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "null")
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.setenv(name, "us-east-1")
    yield server
    server.send_signal(signal.SIGCONT)
    server.terminate()
    server.wait(timeout=20)


def job() -> Job:
    return Job(
        0,
        0,
        0,
        100,
        "e",
        None,
        "response-stream",
        "lean",
        "application/json",
        "audio/pcm",
        20.0,
        0,
        ['{"text":"x"}'],
        [1],
    )


def poisson(rate_rps: float, lasts_s: float) -> Schedule:
    due_s = draw(profiles.constant(rate_rps, lasts_s), 1)
    return Schedule(due_s, [0] * len(due_s))


def run(schedule: Schedule, limit_s: float) -> OpenLoop:
    load = OpenLoop(job(), warm_connections=50)
    load.start(schedule)
    until = time.monotonic() + limit_s
    while not load.finished and time.monotonic() < until:
        time.sleep(0.05)
    load.stop()
    return load


@pytest.mark.usefixtures("null")
def test_500_rps_all_leave_and_lateness_is_known() -> None:
    schedule = poisson(500, 4)
    load = run(schedule, 40)
    assert len(load.records) == len(schedule.due_s)
    assert {record.outcome for record in load.records} == {"ok"}
    late_ms = lateness_p99_ms(load.records)
    assert late_ms is not None
    # On a machine that is busy otherwise it is the client that says so.
    kept = sum((r.sent_ns - r.intended_ns) / 1e6 <= LATE_MS for r in load.records) / len(load.records)
    assert (late_ms <= LATE_MS) == (kept >= 0.99)


@pytest.mark.parametrize("stopped_s", [2.0, pytest.param(6.0, marks=pytest.mark.slow)])
def test_a_stopped_server_makes_rate_times_seconds_requests_late(null: subprocess.Popen[str], stopped_s: float) -> None:
    rate_rps = 100
    threading.Timer(1.0, os.kill, (null.pid, signal.SIGSTOP)).start()
    threading.Timer(1.0 + stopped_s, os.kill, (null.pid, signal.SIGCONT)).start()
    load = run(poisson(rate_rps, stopped_s + 3), 40)
    late = [r for r in load.records if r.ttfab_ms is not None and r.ttfab_ms > 150]
    assert len(late) == pytest.approx((stopped_s - 0.15) * rate_rps, rel=0.35)
    assert max(r.ttfab_ms or 0 for r in late) == pytest.approx(stopped_s * 1e3, rel=0.3)


@pytest.mark.slow
def test_rates_measure_the_metric_ratio(tmp_path: Path) -> None:
    root = str(Path(__file__).resolve().parents[2])
    own = os.environ | {"HEADROOM_REHEARSAL_DIR": str(tmp_path / "rehearsal"), "PYTHONPATH": root}

    def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", *arguments]
        return subprocess.run(line, env=own | environment, cwd=tmp_path, capture_output=True, text=True, check=False)

    service = ["--env", "REPLAY_SERVICE_MEAN_MS=20", "--env", "REPLAY_SERVICE_P95_MS=21"]
    stages = "provisioning=0.1,container_start=0,health_check=0,routing=0"
    assert command("rehearsal", "up", "--seed", "--engine", "replay", "--stages", stages, *service).returncode == 0
    try:
        lines = (
            line.removeprefix("export ").partition("=") for line in command("rehearsal", "env").stdout.splitlines()
        )
        exports = {name: value for name, equals, value in lines if equals}
        flags = ["--endpoint", "speech-kokoro-82m", "--model", "m", "--out", str(tmp_path / "out"), "--force"]
        rates = ["--rates", "0.5", "--capacity-rps", "50", "--hold-s", "22", "--measure-window-s", "21"]
        done = command("loadtest.surge", *flags, *rates, **exports)
    finally:
        command("rehearsal", "down")
    # 4 = a busy machine made the client late, and it said so; the artifact is written all the same.
    assert done.returncode in (0, 4), done.stderr
    (path,) = (tmp_path / "out").glob("openloop-m-response-stream-*.json")
    (rate,) = OpenLoopArtifact.load(path).rates
    assert rate.client_bound == (done.returncode == 4)
    assert rate.offered_rps == pytest.approx(25, rel=0.25)
    assert rate.shed_fraction == 0
    # M/D/1 at half load holds 0.75 on average, the path adds to it; the highest of ten seconds is several times that.
    assert 0.5 < rate.in_flight_mean < 2
    assert rate.metric_ratio is not None
    assert rate.metric_ratio > 2
