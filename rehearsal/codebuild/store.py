"""Projects and builds, and CodeBuild's operations on them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import Any

from moto.codebuild.exceptions import (
    InvalidInputException,
    ResourceAlreadyExistsException,
    ResourceNotFoundException,
)

from rehearsal.settings import ACCOUNT

Params = dict[str, Any]
Runner = Callable[["Params"], None]
"""Starts the work of a build; called with the build, which it keeps up to date."""


class CodeBuild:
    """Every operation takes the request's parameters and returns the answer's."""

    def __init__(self, region: str, run: Runner) -> None:
        self._region = region
        self._run = run
        self._projects: dict[str, Params] = {}
        self._builds: dict[str, Params] = {}

    def create_project(self, asked: Params) -> Params:
        """Kept as given, with what AWS fills in."""
        name = asked["name"]
        if name in self._projects:
            raise ResourceAlreadyExistsException(f"Project already exists: {self._arn('project', name)}")
        source = asked["source"]
        if source["type"] == "NO_SOURCE" and not source.get("buildspec"):
            raise InvalidInputException("Project source type NO_SOURCE needs an inline buildspec")
        if source["type"] != "NO_SOURCE" and not source.get("location"):
            raise InvalidInputException("Project source location is required")
        now = time.time()
        self._projects[name] = {
            "encryptionKey": f"arn:aws:kms:{self._region}:{ACCOUNT}:alias/aws/s3",
            "timeoutInMinutes": 60,
            "queuedTimeoutInMinutes": 480,
            "cache": {"type": "NO_CACHE"},
            "badge": {"badgeEnabled": False},
            "projectVisibility": "PRIVATE",
            **asked,
            "arn": self._arn("project", name),
            "created": now,
            "lastModified": now,
        }
        return {"project": self._projects[name]}

    def update_project(self, asked: Params) -> Params:
        """What is given replaces what was."""
        project = self._project(asked["name"])
        project.update({**asked, "name": project["name"], "lastModified": time.time()})
        return {"project": project}

    def batch_get_projects(self, asked: Params) -> Params:
        """By name or ARN."""
        known = {name: self._projects.get(_plain(name)) for name in asked["names"]}
        return {
            "projects": [project for project in known.values() if project],
            "projectsNotFound": [name for name, project in known.items() if not project],
        }

    def list_projects(self, _: Params) -> Params:
        """Names."""
        return {"projects": sorted(self._projects)}

    def delete_project(self, asked: Params) -> Params:
        """Nothing happens to one that does not exist."""
        self._projects.pop(_plain(asked["name"]), None)
        return {}

    def start_build(self, asked: Params) -> Params:
        """The work begins at once."""
        project = self._project(asked["projectName"])
        number = sum(build["projectName"] == project["name"] for build in self._builds.values()) + 1
        build_id = f"{project['name']}:{uuid.uuid4()}"
        group, stream = _log_of(project, build_id)
        build: Params = {
            "id": build_id,
            "arn": self._arn("build", build_id),
            "buildNumber": number,
            "startTime": time.time(),
            "currentPhase": "QUEUED",
            "buildStatus": "IN_PROGRESS",
            "buildComplete": False,
            "projectName": project["name"],
            "source": project["source"],
            "artifacts": {"location": ""},
            "environment": {
                **project["environment"],
                "environmentVariables": _variables(project, asked.get("environmentVariablesOverride") or []),
            },
            "serviceRole": project["serviceRole"],
            "phases": [],
            "logs": {
                "groupName": group,
                "streamName": stream,
                "deepLink": f"https://{self._region}.console.aws.amazon.com/cloudwatch/home#logsV2:log-groups/{group}",
            },
            "timeoutInMinutes": project["timeoutInMinutes"],
            "initiator": "rehearsal",
        }
        self._builds[build_id] = build
        self._run(build)
        return {"build": build}

    def batch_get_builds(self, asked: Params) -> Params:
        """As far as they have come."""
        found = [self._builds[each] for each in asked["ids"] if each in self._builds]
        return {"builds": found, "buildsNotFound": [each for each in asked["ids"] if each not in self._builds]}

    def list_builds(self, _: Params) -> Params:
        """Newest first."""
        return {"ids": list(reversed(self._builds))}

    def list_builds_for_project(self, asked: Params) -> Params:
        """Newest first."""
        self._project(asked["projectName"])
        ids = [each for each, build in self._builds.items() if build["projectName"] == asked["projectName"]]
        return {"ids": list(reversed(ids))}

    def stop_build(self, asked: Params) -> Params:
        """The work ends at its next phase."""
        if asked["id"] not in self._builds:
            raise ResourceNotFoundException(f"Build {asked['id']} does not exist")
        build = self._builds[asked["id"]]
        if not build["buildComplete"]:
            build.update(buildStatus="STOPPED", currentPhase="COMPLETED", buildComplete=True, endTime=time.time())
        return {"build": build}

    def _project(self, name: str) -> Params:
        project = self._projects.get(_plain(name))
        if project is None:
            raise ResourceNotFoundException(f"Project cannot be found: {self._arn('project', _plain(name))}")
        return project

    def _arn(self, kind: str, name: str) -> str:
        return f"arn:aws:codebuild:{self._region}:{ACCOUNT}:{kind}/{name}"


def _plain(name_or_arn: str) -> str:
    """Callers may give a project's ARN for its name."""
    return name_or_arn.rpartition("project/")[2]


def variables_of(build: Params) -> dict[str, str]:
    """The environment a build's commands see."""
    return {item["name"]: item["value"] for item in build["environment"]["environmentVariables"]}


def _variables(project: Params, overrides: list[Params]) -> list[Params]:
    by_name = {item["name"]: item for item in project["environment"].get("environmentVariables", [])}
    by_name.update({item["name"]: item for item in overrides})
    return list(by_name.values())


def _log_of(project: Params, build_id: str) -> tuple[str, str]:
    configured = project.get("logsConfig", {}).get("cloudWatchLogs", {})
    group = configured.get("groupName") or f"/aws/codebuild/{project['name']}"
    stream = build_id.partition(":")[2]
    prefix = configured.get("streamName")
    return group, f"{prefix}/{stream}" if prefix else stream
