"""A service that is not speech, from the rehearsal to a plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.artifacts.qmax import Qmax

ROOT = Path(__file__).parents[2]
NAMES = ["--endpoint", "embeddings", "--variant", "main"]
BODY = ["--transport", "invoke", "--accept", "application/json", "--body-template", "@examples/embedding/body.json"]


@pytest.mark.e2e
@pytest.mark.slow
def test_an_embedding_endpoint_is_measured_by_its_whole_response_and_planned(tmp_path: Path) -> None:
    own = os.environ | {
        "HEADROOM_REHEARSAL_DIR": str(tmp_path / "rehearsal"),
        "HEADROOM_STATE_DIR": str(tmp_path / "s"),
    }

    def run(*arguments: str, **environment: str) -> str:
        command = [sys.executable, "-m", *arguments]
        done = subprocess.run(command, env=own | environment, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    server = f"{sys.executable} {ROOT / 'examples/embedding/server.py'}"
    run("rehearsal", "up", "--seed", *NAMES, "--env", "EMBED_SERVICE_MS=40", "--command", server)
    try:
        lines = (line.removeprefix("export ").partition("=") for line in run("rehearsal", "env").splitlines())
        exports = {name: value.strip("'\"") for name, equals, value in lines if equals}
        quick = ["--rungs", "1,4,8", "--hold-s", "5", "--measure-window-s", "4", "--idle-s", "1", "--slo-ms", "250"]
        out = ["--model", "embeddings", "--out", str(tmp_path)]
        run("loadtest.ladder", *NAMES, *out, *BODY, "--slo-metric", "latency", *quick, **exports)
    finally:
        run("rehearsal", "down")
    (path,) = tmp_path.glob("qmax-embeddings-invoke-*.json")
    assert Qmax.load(path).q_max == 4
    asked = ["--qmax", str(path), "--assume-t-total-s", "60", "--slo-ms", "250", "--peak-rps", "40", "--rule", "drain"]
    plan = json.loads(run("planner", "plan", *asked, "--out", str(tmp_path), "--json"))
    assert plan["derived"]["max_instances"] >= 2
