"""A fleet that has scaled keeps its count when its configuration is replaced: both commands pass on the live one."""

from __future__ import annotations

from typing import Any

import pytest

from scripts import apply_plan, deploy, terraform
from scripts.aws.endpoint import describe
from scripts.deployment import guards, settings
from tests.scripts import ladder_artifact, plan_artifact


class Tool:
    """Holds the endpoint and notes the variables of the plan it was asked for."""

    def __init__(self) -> None:
        self.planned: dict[str, Any] = {}

    def resources(self) -> dict[str, bool]:
        return {guards.ENDPOINT_ADDRESS: False, guards.TARGET_ADDRESS: False}

    def deposed_names(self) -> set[str]:
        return set()

    def plan(self, variables: dict[str, Any]) -> None:
        self.planned = variables


@pytest.mark.parametrize("command", [deploy, apply_plan], ids=["deploy", "apply-plan"])
def test_the_live_count_is_passed_on(account, tmp_path, monkeypatch, command):
    account(endpoint={"status": "InService", "desired": 3, "current": 3, "config": "c", "reason": None, "polls": 0})
    settings.save(tmp_path, {"endpoint_name": "e", "image_digest": "sha256:1", "initial_instance_count": 1})
    path = tmp_path / "plan.json"
    plan_artifact.plan(ladder_artifact.identity(describe("e", "v"))).save(path)
    plan_artifact.hand_over(tmp_path, path)
    tool = Tool()
    monkeypatch.setattr(terraform, "ready", lambda _: tool)
    assert command.main(["--endpoint", "e", "--variant", "v", "--terraform-dir", str(tmp_path), "--dry-run"]) == 0
    assert tool.planned["initial_instance_count"] == 3
