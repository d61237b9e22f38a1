"""From process start to exit: load, warm up, watch the engine, drain."""

from __future__ import annotations

import asyncio
import time

from aiohttp import WSCloseCode

from container.logs import event
from container.parts import Parts
from container.stages import WARMUP_DONE, Stages

WATCH_PERIOD_S = 1.0
_WARM_UP_TEXTS = (
    "Ready.",
    "The first request must be no slower than the ones that follow, so 2 sentences go through now. Names, too.",
)


async def bring_up(parts: Parts, stages: Stages) -> None:
    """Load and speak once, short and long; only then is the container ready."""
    loop = asyncio.get_running_loop()
    parts.health.loading = True
    await loop.run_in_executor(None, parts.engine.load, stages.mark)
    parts.health.loading = False
    for text in _WARM_UP_TEXTS:
        request = parts.parse({"text": text})
        async with parts.synthesis.speak(request, time.monotonic()) as utterance:
            async for _ in utterance:
                pass
    stages.mark(WARMUP_DONE)
    parts.health.warm()
    event("ready", boot_id=parts.boot_id, engine=parts.engine.name, stages_s=stages.seen)


async def keep_watch(parts: Parts) -> None:
    """Declare the engine dead when it says so or when a call outlasts all reason."""
    stall_s = parts.settings.engine_stall_s
    period_s = min(WATCH_PERIOD_S, stall_s / 4)
    while parts.health.dead is None:
        await asyncio.sleep(period_s)
        if parts.health.ready_once and not parts.engine.alive():
            parts.scheduler.die("the engine reports that it cannot go on")
        elif parts.scheduler.stalled(stall_s):
            parts.scheduler.die(f"a synthesis call is stuck: {stall_s:g} s over what it could have taken")


async def drain(parts: Parts) -> None:
    """Admit nobody, let what plays finish, and give up when the time is over."""
    parts.admission.drain()
    for session in list(parts.sessions):
        session.end(WSCloseCode.GOING_AWAY, b"draining")
    event("draining", in_flight=parts.admission.depth)
    try:
        async with asyncio.timeout(parts.settings.drain_s):
            await parts.admission.emptied()
    except TimeoutError:
        event("drain_timed_out", in_flight=parts.admission.depth)
