"""The container's process: ``python -m container.server serve``."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence

from container import logs
from container.engine.base import EngineError
from container.engine.factory import make_engine
from container.http import listening
from container.lifecycle import bring_up, drain, keep_watch
from container.parts import Parts, assemble
from container.settings import Settings, SettingsError
from container.stages import CONTAINER_STARTED, Stages, process_started_at_s

USAGE = 2
HOW = "usage: python -m container.server [serve]   settings are environment variables: docs/container-api.md"


async def serve(settings: Settings, stages: Stages) -> int:
    """Serve until SIGTERM or SIGINT; the exit status."""
    try:
        parts = assemble(settings, make_engine(settings))
    except EngineError as error:
        raise SettingsError([str(error)]) from None
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with listening(parts) as runner:
        logs.event("listening", addresses=runner.addresses, boot_id=parts.boot_id)
        status = await _run(parts, stages, stop)
        if runner.server is not None:
            runner.server.pre_shutdown()
        await drain(parts)
    return status if _close(parts) else _leave_stuck_threads(status)


async def _run(parts: Parts, stages: Stages, stop: asyncio.Event) -> int:
    """Bring the engine up and wait for the signal; 1 when the engine could not be brought up."""
    tasks = {
        "stop": asyncio.create_task(stop.wait()),
        "up": asyncio.create_task(bring_up(parts, stages)),
        "watch": asyncio.create_task(keep_watch(parts)),
    }
    try:
        await asyncio.wait((tasks["stop"], tasks["up"]), return_when=asyncio.FIRST_COMPLETED)
        if tasks["up"].done() and (error := tasks["up"].exception()) is not None:
            logs.log.error("bring_up_failed", exc_info=error)
            return 1
        await tasks["stop"]
        return 0
    finally:
        for task in tasks.values():
            task.cancel()


def _close(parts: Parts) -> bool:
    parts.synthesis.close()
    idle = parts.scheduler.close() and not parts.health.loading
    if idle:
        parts.engine.close()
    return idle


def _leave_stuck_threads(status: int) -> int:
    """The interpreter would wait for a thread that is inside the engine for ever; the platform would kill us."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _sleep_at_barriers() -> None:
    """Threads of one forward pass that spin for each other starve on a machine where others run too.

    With four busy neighbours on two cores a spinning synthesis took over 40 s, a sleeping one 2 to 3 s. Read by OpenMP
    when torch is imported, so it must come before the engine.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def main(argv: Sequence[str] | None = None) -> int:
    """SageMaker passes ``serve``; everything is set in the environment."""
    words = sys.argv[1:] if argv is None else argv
    if words and words[0] != "serve":
        asked = words[0] in ("-h", "--help")
        print(HOW, file=sys.stdout if asked else sys.stderr)
        return 0 if asked else USAGE
    stages = Stages(process_started_at_s())
    stages.mark(CONTAINER_STARTED)
    try:
        settings = Settings.from_env()
        logs.configure()
        _sleep_at_barriers()
        return asyncio.run(serve(settings, stages))
    except SettingsError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=sys.stderr)
        return USAGE


if __name__ == "__main__":
    sys.exit(main())
