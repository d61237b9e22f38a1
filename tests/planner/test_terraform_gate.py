"""Terraform's own gate accepts what the planner writes, and refuses what the planner calls infeasible."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from planner.artifacts.qmax import Qmax
from planner.artifacts.ttotal import Ttotal
from planner.measured import measured
from planner.tfvars import tfvars
from tests.planner.conftest import plan_of

GATE = Path(__file__).parents[2] / "terraform" / "modules" / "plan_gate"
DIGEST = "sha256:8b1b96bc4dc0b30ddd84d8fe37af7c490937333c44a9f8f7d77b918c3d7eaced"

pytestmark = [
    pytest.mark.terraform,
    pytest.mark.skipif(shutil.which("terraform") is None, reason="terraform is not installed"),
]


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    folder = tmp_path / "gate"
    shutil.copytree(GATE, folder)
    terraform(folder, "init", "-backend=false", "-input=false")
    deployed = {
        "instance_type": "ml.g5.xlarge",
        "image_digest": DIGEST,
        "model_data_url": None,
        "container_environment": {},
    }
    (folder / "deployed.auto.tfvars.json").write_text(json.dumps({"deployed": deployed}))
    return folder


def terraform(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CHECKPOINT_DISABLE": "1", "NO_COLOR": "1"}
    return subprocess.run(
        ["terraform", *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False, env=environment
    )


@pytest.mark.parametrize("rule", ["headroom", "drain"])
def test_accepts_a_feasible_plan(gate: Path, qmax: Qmax, ttotal: Ttotal, rule: str) -> None:
    plan = plan_of(measured([qmax], [ttotal]), rule=rule)
    path = gate / "plan.json"
    path.write_text(plan.model_dump_json())
    (gate / "plan.auto.tfvars").write_text(tfvars(path))
    done = terraform(gate, "apply", "-auto-approve", "-input=false", "-no-color")
    assert done.returncode == 0, done.stderr
    outputs = json.loads(terraform(gate, "output", "-json").stdout)
    accepted = outputs["plan"]["value"]
    for name in (
        "min_instances",
        "max_instances",
        "scaling_target_value",
        "scale_in_threshold",
        "first_chunk_alarm_ms",
    ):
        assert accepted[name] == pytest.approx(getattr(plan.derived, name))
    assert outputs["faults"]["value"] == []


def test_refuses_unconverted_units(gate: Path, qmax: Qmax, ttotal: Ttotal) -> None:
    blind = qmax.model_copy(update={"ladder": [r.model_copy(update={"metric_ratio": None}) for r in qmax.ladder]})
    path = gate / "plan.json"
    path.write_text(plan_of(measured([blind], [ttotal])).model_dump_json())
    (gate / "plan.auto.tfvars").write_text(tfvars(path))
    done = terraform(gate, "apply", "-auto-approve", "-input=false", "-no-color")
    assert done.returncode != 0
    assert "not in the units the alarm reads" in " ".join(done.stderr.replace("│", " ").split())
