"""Takes builds through their phases, a few tenths of a second each, with a log."""

from __future__ import annotations

import asyncio
import time

from rehearsal.codebuild.store import Params
from rehearsal.codebuild.work import BuildFailedError, Work
from rehearsal.fleet.logs import LogSink
from rehearsal.settings import Settings

PHASES = (
    *("SUBMITTED", "QUEUED", "PROVISIONING", "DOWNLOAD_SOURCE", "INSTALL", "PRE_BUILD"),
    *("BUILD", "POST_BUILD", "UPLOAD_ARTIFACTS", "FINALIZING"),
)
PHASE_S = 0.2


class Runs:
    """Builds run in the event loop; they are started from moto's threads."""

    def __init__(self, settings: Settings, work: Work, logs: LogSink) -> None:
        self._settings = settings
        self._work = work
        self._logs = logs
        self._loop = asyncio.get_running_loop()

    def start(self, build: Params) -> None:
        """Begin a build; thread-safe."""
        asyncio.run_coroutine_threadsafe(self._run(build), self._loop)

    async def _run(self, build: Params) -> None:
        for name in PHASES:
            if build["buildComplete"]:
                return
            build["currentPhase"] = name
            self._say(build, f"[Container] Entering phase {name}")
            started = time.time()
            await asyncio.sleep(PHASE_S / self._settings.time_scale)
            failure = self._build(build) if name == "BUILD" else None
            build["phases"] = [*build["phases"], _phase(name, started, failure)]
            if failure:
                _finish(build, "FAILED")
        _finish(build, "SUCCEEDED")

    def _build(self, build: Params) -> str | None:
        """Do the work; why it failed."""
        try:
            exported = self._work.run(build, lambda line: self._say(build, line))
        except BuildFailedError as failed:
            self._say(build, str(failed))
            return str(failed)
        build["exportedEnvironmentVariables"] = [{"name": key, "value": value} for key, value in exported.items()]
        return None

    def _say(self, build: Params, line: str) -> None:
        self._logs.write(build["logs"]["groupName"], build["logs"]["streamName"], line)


def _phase(name: str, started: float, failure: str | None) -> Params:
    ended = time.time()
    context = {"statusCode": "COMMAND_EXECUTION_ERROR", "message": failure}
    return {
        "phaseType": name,
        "phaseStatus": "FAILED" if failure else "SUCCEEDED",
        "startTime": started,
        "endTime": ended,
        "durationInSeconds": round(ended - started),
        "contexts": [context] if failure else [],
    }


def _finish(build: Params, status: str) -> None:
    if not build["buildComplete"]:
        build.update(buildStatus=status, currentPhase="COMPLETED", buildComplete=True, endTime=time.time())
