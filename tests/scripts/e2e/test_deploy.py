"""From nothing to autoscaling and back with real Terraform, and every call inside the documented operator policy."""

from __future__ import annotations

import fnmatch
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from planner.errors import UsageError
from scripts.aws.clients import control
from scripts.aws.endpoint import describe
from tests.scripts import ladder_artifact, plan_artifact
from tests.scripts.e2e.conftest import ROOT
from tests.scripts.e2e.recording_proxy import recording

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.terraform,
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A rehearsal with nothing in it, behind a recording proxy, and a root module of its own."""
    home = {"HEADROOM_REHEARSAL_DIR": str(tmp_path / "rehearsal"), "HEADROOM_STATE_DIR": str(tmp_path / "state")}
    for key in [key for key in os.environ if key.startswith("AWS_")]:
        monkeypatch.delenv(key)
    for key, value in home.items():
        monkeypatch.setenv(key, value)
    rehearsal = [sys.executable, "-m", "rehearsal"]
    subprocess.run([*rehearsal, "up"], cwd=ROOT, check=True, capture_output=True, timeout=60)
    shown = subprocess.run([*rehearsal, "env"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for line in shown.splitlines():
        key, _, value = line.removeprefix("export ").partition("=")
        monkeypatch.setenv(key, value.strip("'\""))
    skip = shutil.ignore_patterns(".terraform*", "*.tfstate*", "*.auto.tfvars*")
    shutil.copytree(ROOT / "terraform", tmp_path / "terraform", ignore=skip)
    shutil.copytree(ROOT / "container", tmp_path / "root/container", ignore=shutil.ignore_patterns("__pycache__"))
    dockerfile = tmp_path / "root/container/Dockerfile"
    if not dockerfile.exists():
        dockerfile.write_text("FROM scratch\n")
    with recording(os.environ["AWS_ENDPOINT_URL"]) as (url, seen):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        control.cache_clear()
        yield tmp_path, seen
    subprocess.run([*rehearsal, "down"], cwd=ROOT, check=False, timeout=60)
    control.cache_clear()


def runner(home: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", f"scripts.{verb}", "--endpoint", "e1", "--variant", "primary"]
        command += ["--terraform-dir", str(home / "terraform"), *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=400)

    return run


def allowed() -> list[str]:
    policy = json.loads((ROOT / "docs/operator-policy.json").read_text())
    return [action for statement in policy["Statement"] for action in statement["Action"]]


def test_everything_and_back(bare):
    home, seen = bare
    run = runner(home)
    root = ["--root", str(home / "root"), "--env", "ENGINE=replay"]
    result = run("deploy", *root)
    assert result.returncode == 0, result.stderr
    assert "e1 is InService" in result.stdout

    again = run("deploy", *root, "--plan-only")
    assert "No changes." in again.stderr

    plan = plan_artifact.plan(ladder_artifact.identity(describe("e1", "primary")))
    path = home / "plan-m.json"
    plan.save(path)
    plan_artifact.hand_over(home / "terraform", path)
    applied = run("apply_plan")
    assert applied.returncode == 0, applied.stderr
    drift = run("drift", "--model", "m", "--artifacts", str(home))
    assert drift.returncode == 0, drift.stdout
    assert "preflight-ok" in drift.stdout

    (home / "root/container/server.py").write_text("changed\n")
    changed = run("deploy", *root)
    assert changed.returncode == 5
    assert "measured on image" in changed.stderr

    gone = run("destroy")
    assert gone.returncode == 0, gone.stderr
    assert "USD a month" in gone.stdout
    with pytest.raises(UsageError, match="no endpoint"):
        describe("e1", "primary")
    everything = run("destroy", "--all")
    assert everything.returncode == 0, everything.stderr
    assert run("destroy", "--dry-run").stdout.strip() == "nothing is deployed"

    patterns = allowed()
    missing = sorted(a for a in seen if not any(fnmatch.fnmatchcase(a, pattern) for pattern in patterns))
    assert missing == []
