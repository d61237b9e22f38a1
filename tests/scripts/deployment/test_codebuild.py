"""Following a build: progress, log tail, failure."""

from __future__ import annotations

from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from planner.errors import AwsError
from scripts.aws.clients import control
from scripts.deployment import codebuild


class Builder:
    """CodeBuild and its log: one page of lines a look."""

    def __init__(self, statuses: list[str], lines: list[str], phases: list[dict[str, Any]] | None = None) -> None:
        self.statuses, self.lines, self.phases = statuses, lines, phases or []
        self.overrides: list[dict[str, str]] = []
        self.looks = 0

    def client(self, service: str, **_: Any) -> Builder:  # noqa: ARG002
        return self

    def start_build(self, projectName: str, environmentVariablesOverride: list[dict[str, str]]) -> dict[str, Any]:
        self.overrides = environmentVariablesOverride
        return {"build": {"id": f"{projectName}:1", "buildStatus": "IN_PROGRESS"}}

    def batch_get_builds(self, ids: list[str]) -> dict[str, Any]:
        status = self.statuses[min(self.looks, len(self.statuses) - 1)]
        self.looks += 1
        logs = {"groupName": "g", "streamName": "s", "deepLink": "https://console/log"}
        exported = [{"name": "IMAGE_DIGEST", "value": "sha256:1"}]
        return {
            "builds": [
                {
                    "id": ids[0],
                    "buildStatus": status,
                    "currentPhase": "BUILD",
                    "logs": logs,
                    "phases": self.phases,
                    "exportedEnvironmentVariables": exported,
                }
            ]
        }

    def get_log_events(self, **request: Any) -> dict[str, Any]:
        if self.looks == 1:
            raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": ""}}, "GetLogEvents")
        start = int(request.get("nextToken", 0))
        return {"events": [{"message": line} for line in self.lines[start:]], "nextForwardToken": str(len(self.lines))}


@pytest.fixture
def built(monkeypatch, clock):
    def run(builder: Builder, **limits: Any) -> codebuild.Built:
        monkeypatch.setenv("AWS_REGION", "us-east-1")
        monkeypatch.setattr(boto3, "client", builder.client)
        control.cache_clear()
        settings = {"typical_s": 60, "limit_s": 600} | limits
        return codebuild.run("p", {"IMAGE_TAG": "src-1"}, clock=clock, **settings)

    yield run
    control.cache_clear()


def test_success_prints_each_line_once(built, capsys):
    builder = Builder(["IN_PROGRESS", "IN_PROGRESS", "SUCCEEDED"], ["one", "two"])
    assert built(builder).exported == {"IMAGE_DIGEST": "sha256:1"}
    err = capsys.readouterr().err
    assert err.count("| one") == err.count("| two") == 1
    assert builder.overrides == [{"name": "IMAGE_TAG", "value": "src-1", "type": "PLAINTEXT"}]


def test_failure_names_phase_message_and_log(built):
    phases = [{"phaseType": "BUILD", "contexts": [{"message": "exit status 1: docker"}]}]
    with pytest.raises(AwsError) as raised:
        built(Builder(["IN_PROGRESS", "FAILED"], ["boom"], phases))
    assert "CodeBuild p FAILED (p:1): BUILD: exit status 1: docker" in raised.value.message
    assert "https://console/log" in raised.value.hint


def test_failure_without_contexts_shows_the_last_line(built):
    with pytest.raises(AwsError, match="no space left"):
        built(Builder(["IN_PROGRESS", "FAILED"], ["...", "no space left"]))


def test_a_build_that_never_ends(built):
    with pytest.raises(AwsError, match="still runs after"):
        built(Builder(["IN_PROGRESS"], []), limit_s=30)
