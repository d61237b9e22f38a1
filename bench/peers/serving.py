"""Start a server, wait until it is well, stop it."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp

from bench.peers.designs import Design
from planner.errors import Undecided

READY_WITHIN_S = 300.0
"""fastkokoro rewrites the graph at its first start."""
STOP_WITHIN_S = 30.0
ANSWER_WITHIN_S = 180.0


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def all_running(designs: Sequence[Design], logs: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """Every server loaded and idle; only the one whose turn it is gets work."""
    timeout = aiohttp.ClientTimeout(total=ANSWER_WITHIN_S)
    async with AsyncExitStack() as stack:
        connector = aiohttp.TCPConnector(limit=0)
        client = await stack.enter_async_context(aiohttp.ClientSession(connector=connector, timeout=timeout))
        for design in designs:
            await stack.enter_async_context(running(client, design, logs / f"{design.name}.log"))
        yield client


@asynccontextmanager
async def running(client: aiohttp.ClientSession, design: Design, log: Path) -> AsyncIterator[None]:
    with log.open("w") as output:
        process = subprocess.Popen(
            design.command, env={**os.environ, **design.environment}, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            await ready(client, design, process, log)
            yield
        finally:
            process.terminate()
            try:
                process.wait(STOP_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


async def ready(client: aiohttp.ClientSession, design: Design, process: subprocess.Popen[bytes], log: Path) -> None:
    end_s = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < end_s:
        if process.poll() is not None:
            raise Undecided(f"{design.name} ended with status {process.returncode}", last_words(log))
        try:
            async with client.get(design.url + design.health) as response:
                if response.status == 200:
                    return
        except aiohttp.ClientConnectionError:
            pass
        await asyncio.sleep(0.2)
    raise Undecided(f"{design.name} was not ready within {READY_WITHIN_S:g} s", last_words(log))


def last_words(log: Path) -> str:
    return "its last lines: " + " | ".join(log.read_text(errors="replace").splitlines()[-5:])
