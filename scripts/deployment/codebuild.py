"""Start a CodeBuild build and follow it: phase, log tail, and a clear word when it fails."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from planner.errors import AwsError
from scripts.aws.clients import aws_errors, control, error_code
from scripts.aws.waiting import Clock, Progress, persist

POLL_S = 3.0
RETRY_LIMIT_S = 300.0
_LAST_LINES = 12


@dataclass(frozen=True)
class Built:
    """A build that succeeded."""

    id: str
    exported: dict[str, str]


def run(
    project: str,
    variables: dict[str, str],
    *,
    typical_s: float,
    limit_s: float,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> Built:
    """Start ``project`` and wait for its end."""
    clock = clock or Clock()
    progress = progress or Progress(clock)
    overrides = [{"name": name, "value": value, "type": "PLAINTEXT"} for name, value in variables.items()]
    with aws_errors(f"starting CodeBuild project {project}"):
        build = control("codebuild").start_build(projectName=project, environmentVariablesOverride=overrides)["build"]
    build_id = str(build["id"])
    progress.note(f"CodeBuild {build_id} started")
    log = _Log()
    started = clock.monotonic()
    while build["buildStatus"] == "IN_PROGRESS":
        elapsed_s = clock.monotonic() - started
        if elapsed_s > limit_s:
            raise AwsError(f"build {build_id} still runs after {elapsed_s:.0f} s", "follow it in the CodeBuild console")
        progress.show(f"{project}: {build.get('currentPhase', 'QUEUED')}", elapsed_s, typical_s)
        clock.sleep(POLL_S)
        build = persist(lambda: _describe(build_id), clock, RETRY_LIMIT_S)
        log.print_new(build)
    progress.done()
    log.print_new(build)
    if build["buildStatus"] != "SUCCEEDED":
        raise AwsError(_failure(project, build, log), _where(build))
    exported = {item["name"]: item["value"] for item in build.get("exportedEnvironmentVariables", [])}
    return Built(build_id, exported)


class _Log:
    """Prints each log line once."""

    def __init__(self) -> None:
        self.last: list[str] = []
        self._token: str | None = None

    def print_new(self, build: dict[str, Any]) -> None:
        logs = build.get("logs", {})
        group, stream = logs.get("groupName"), logs.get("streamName")
        if not group or not stream:
            return
        while True:
            request: dict[str, Any] = {"logGroupName": group, "logStreamName": stream, "startFromHead": True}
            if self._token is not None:
                request["nextToken"] = self._token
            page = _log_page(request)
            if page is None:
                return
            lines = [event["message"].rstrip() for event in page["events"]]
            for line in lines:
                print(f"  | {line}", file=sys.stderr)
            self.last = [*self.last, *lines][-_LAST_LINES:]
            if not lines or page["nextForwardToken"] == self._token:
                return
            self._token = page["nextForwardToken"]


def _log_page(request: dict[str, Any]) -> dict[str, Any] | None:
    with aws_errors("reading the build's log"):
        try:
            return dict(control("logs").get_log_events(**request))
        except ClientError as error:
            if error_code(error) == "ResourceNotFoundException":
                return None
            raise


def _describe(build_id: str) -> dict[str, Any]:
    with aws_errors(f"reading build {build_id}"):
        return dict(control("codebuild").batch_get_builds(ids=[build_id])["builds"][0])


def _failure(project: str, build: dict[str, Any], log: _Log) -> str:
    contexts = [
        f"{phase['phaseType']}: {context['message']}"
        for phase in build.get("phases", [])
        for context in phase.get("contexts", [])
        if context.get("message")
    ]
    reason = contexts[0] if contexts else (log.last[-1] if log.last else "no reason given")
    return f"CodeBuild {project} {build['buildStatus']} ({build['id']}): {reason}"


def _where(build: dict[str, Any]) -> str:
    link = build.get("logs", {}).get("deepLink")
    return f"full log: {link}" if link else f"aws codebuild batch-get-builds --ids {build['id']}"
