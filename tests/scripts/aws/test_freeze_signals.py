"""Every phase of a freeze, stopped by every signal: the account ends as it began."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from planner.errors import Interrupted, UsageError
from scripts.aws.endpoint import describe
from scripts.aws.freeze import frozen, thaw
from tests.scripts.fake_aws import FakeAws

ROOT = Path(__file__).parents[3]
STEPS = [
    "writing the journal",
    "tagging the endpoint",
    "suspending scaling",
    "pinning",
    "frozen",
    "body",
    "scaled",
    "restoring 2",
    "restoring scaling",
    "removing the journal",
]
BEFORE = {
    "endpoint": {"status": "InService", "desired": 2, "current": 2, "config": "e-cfg", "reason": None, "polls": 0},
    "target": {"min": 1, "max": 4, "suspended": [True, False, False]},
    "policies": [{"PolicyName": "e-scale-out"}],
}


def drive(fake: FakeAws, step: str, signal_name: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.scripts.freeze_driver", str(fake.path), step, signal_name]
    return subprocess.run(command, cwd=ROOT, env=os.environ, capture_output=True, text=True, timeout=60, check=False)


FEW = {"suspending scaling", "scaled", "restoring scaling"}


def every(thorough: str, brief: str) -> list:
    """``thorough`` at every step; ``brief`` at a few, at the rest in the slow suite."""
    slow = pytest.mark.slow
    return [pytest.param(step, thorough) for step in STEPS] + [
        pytest.param(step, brief, marks=() if step in FEW else slow) for step in STEPS
    ]


@pytest.mark.parametrize(("step", "signal_name"), every("SIGTERM", "SIGINT"))
def test_a_stopped_run_restores_by_itself(account, step, signal_name):
    fake = account(**BEFORE)
    before = fake.durable()
    result = drive(fake, step, signal_name)
    assert result.returncode == 130, result.stderr
    assert signal_name in result.stderr
    assert fake.durable() == before


@pytest.mark.parametrize("step", ["writing the journal", "body"])
def test_an_interrupt_that_an_extension_turned_into_its_own_error_is_one(account, clock, step):
    """As pydantic does: PydanticSerializationError("Error serializing to JSON: KeyboardInterrupt")."""
    fake = account(**BEFORE)
    before = fake.durable()

    def on_step(name: str) -> None:
        if name == step:
            try:
                os.kill(os.getpid(), signal.SIGINT)
            except KeyboardInterrupt as interrupt:
                raise ValueError("wrapped") from interrupt

    with (
        pytest.raises(Interrupted, match="SIGINT"),
        frozen(describe("e", "v"), run_id="r1", force=True, ttl_s=600, clock=clock, on_step=on_step),
    ):
        on_step("body")
    assert fake.durable() == before


@pytest.mark.parametrize(("step", "where"), every("another machine", "same machine"))
def test_thaw_restores_what_a_killed_run_left(account, clock, monkeypatch, tmp_path, step, where):
    fake = account(**BEFORE)
    before = fake.durable()
    assert drive(fake, step, "SIGKILL").returncode == -signal.SIGKILL
    if where == "another machine":
        monkeypatch.setenv("HEADROOM_STATE_DIR", str(tmp_path / "elsewhere"))
    thaw("e", "v", clock=clock)
    assert fake.durable() == before
    assert thaw("e", "v", clock=clock).source is None
    assert fake.durable() == before


@pytest.mark.parametrize("step", ["suspending scaling", "body", "removing the journal"])
def test_the_next_run_refuses_and_names_thaw(account, clock, step):
    fake = account(**BEFORE)
    drive(fake, step, "SIGKILL")
    with (
        pytest.raises(UsageError) as refusal,
        frozen(describe("e", "v"), run_id="r2", force=True, ttl_s=1, clock=clock),
    ):
        pass
    assert "r1" in refusal.value.message
    assert "make thaw" in refusal.value.hint
