"""The probe over bidirectional streams against a process that speaks its lines: records, clock, ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from loadtest import bidi, corpus, flags
from loadtest.job import Job
from planner.errors import Undecided, UsageError
from scripts.aws.endpoint import describe
from scripts.scaleout.probe import closed_loop
from scripts.scaleout.sessions import SessionLoop
from tests.scripts import ladder_artifact

FAKE = str(Path(__file__).with_name("fake_sessions.py"))
ROOT = Path(__file__).parents[3]
WAIT_S = 10.0


def job(run: int) -> Job:
    return Job(run, run, 0, 4, "e", "v", "bidi", "lean", "a/b", "c/d", 60.0, 0, ["{}"], [9], session_each=True)


def until(reached: Callable[[], object]) -> None:
    limit_s = time.monotonic() + WAIT_S
    while not reached():
        assert time.monotonic() < limit_s, "never came"
        time.sleep(0.01)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "commands"


@pytest.fixture
def loop(log: Path) -> Iterator[Callable[[str], SessionLoop]]:
    made: list[SessionLoop] = []

    def make(behaviour: str) -> SessionLoop:
        made.append(SessionLoop([job(0), job(1)], (sys.executable, FAKE, behaviour, str(log))))
        return made[-1]

    yield make
    for each in made:
        each.stop()


def test_the_process_is_told_the_job_and_its_requests_become_records(loop, log):
    probe = loop("good")
    before_ns = time.monotonic_ns()
    probe.start(0, 4)
    until(lambda: len(probe.records) >= 3)
    probe.stop()
    first, second = [json.loads(line) for line in log.read_text().splitlines()]
    assert first == {"job": job(0).message(), "index": 0}
    assert second == {"users": 4}
    *answered, last = probe.records
    assert {record.outcome for record in answered} == {"ok"}
    assert last.outcome == "cancelled"
    assert {record.boot_id for record in answered} == {"0123456789ab"}
    assert {record.worker for record in probe.records} == {probe.anchor.worker}
    assert all(before_ns < record.sent_ns < time.monotonic_ns() for record in probe.records)


def test_fewer_users_for_a_reference(loop, log):
    probe = loop("good")
    probe.start(0, 2)
    until(lambda: probe.records)
    first, second = [json.loads(line) for line in log.read_text().splitlines()]
    assert (first["job"]["users"], second) == (2, {"users": 2})


def test_the_anchor_places_the_records_in_utc(loop):
    probe = loop("good")
    probe.start(0, 4)
    until(lambda: probe.records)
    sent_utc_s = (probe.anchor.utc_ns + probe.records[0].sent_ns - probe.anchor.monotonic_ns) / 1e9
    assert sent_utc_s == pytest.approx(time.time(), abs=1.0)


def test_a_process_on_another_clock_is_not_believed(loop):
    probe = loop("other-clock")
    probe.start(0, 4)
    with pytest.raises(Undecided, match=r"5\.0 s off this one's clock"):
        until(lambda: probe.records)


def test_a_process_that_dies_is_an_error_and_not_silence(loop):
    probe = loop("dies")
    probe.start(0, 4)
    with pytest.raises(Undecided, match=r"ended by itself \(exit code 7\)"):
        until(lambda: len(probe.records) > 1)


def test_every_run_has_a_process_of_its_own_and_none_is_left(loop):
    probe = loop("good")
    for run in (0, 1):
        seen = len(probe.records)
        probe.start(run, 4)
        until(lambda seen=seen: len(probe.records) > seen)
        probe.stop()
    assert [record.run for record in probe.records if record.outcome == "cancelled"] == [0, 1]
    assert len({record.error for record in probe.records if record.outcome == "ok"}) == 2
    assert FAKE not in [part for child in psutil.Process().children() for part in child.cmdline()]


def test_a_process_that_does_not_end_is_killed(loop, monkeypatch):
    monkeypatch.setattr(bidi, "END_LIMIT_S", 0.1)
    probe = loop("stuck")
    probe.start(0, 4)
    until(lambda: probe.records)
    probe.stop()
    assert FAKE not in [part for child in psutil.Process().children() for part in child.cmdline()]


def test_the_process_ends_with_a_probe_that_is_killed(log):
    program = f"""
import sys, time
from scripts.scaleout.sessions import SessionLoop
from tests.scripts.scaleout.test_sessions import FAKE, job
probe = SessionLoop([job(0)], (sys.executable, FAKE, "good", {str(log)!r}))
probe.start(0, 4)
while not probe.records:
    time.sleep(0.01)
print(probe.records[0].error, flush=True)
time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline().removeprefix("pid "))
        os.kill(parent.pid, signal.SIGKILL)
    until(lambda: not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE)


def over_bidi() -> SessionLoop:
    live = describe("e", "v")
    made = closed_loop(live, corpus.load("short-clips"), ladder_artifact.identity(live, "bidi"), 10, 2)
    assert isinstance(made, SessionLoop)
    return made


def test_a_ladder_over_bidi_is_probed_over_bidi_with_a_session_an_utterance(account, monkeypatch):
    account()
    monkeypatch.setattr("scripts.scaleout.probe.require_bidi", lambda: None)
    jobs = over_bidi()._jobs
    assert [(each.run, each.users, each.api, each.session_each) for each in jobs] == [
        (0, 10, "bidi", True),
        (1, 10, "bidi", True),
    ]


@pytest.mark.parametrize(
    ("version", "said"),
    [((3, 11, 7), r"needs Python 3\.12 or later, this is 3\.11"), ((3, 12, 1), r"needs the HTTP/2 SDK")],
)
def test_without_the_sdk_one_message_names_python_and_the_extra(account, monkeypatch, version, said):
    account()
    monkeypatch.setattr(flags.importlib.util, "find_spec", lambda _: None)
    with monkeypatch.context() as patched:
        patched.setattr(flags.sys, "version_info", version)
        with pytest.raises(UsageError, match=said) as raised:
            over_bidi()
    assert "-e '.[bidi]'" in raised.value.hint
    assert raised.value.exit_code == 2
