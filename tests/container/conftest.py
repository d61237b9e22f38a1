"""An engine that does as it is told, and the container around it on a free port."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import numpy as np
import pytest

from container.engine.base import SAMPLE_RATE_HZ, EngineDead, EngineError, Prepared, Samples, Segment, StageMarker
from container.http import listening
from container.parts import Parts, assemble
from container.settings import Settings


class ScriptedEngine:
    """One second of audio for ten characters; fails, hangs and dies on command."""

    name = "scripted"
    shared_lanes = False

    def __init__(self, max_batch: int = 1, lanes: int = 1, call_s: float = 0.0) -> None:
        self.max_batch, self.lanes, self.call_s = max_batch, lanes, call_s
        self.calls: list[list[str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.broken: Exception | None = None
        self.living = True

    def load(self, stage: StageMarker) -> None:
        stage("framework_init")
        stage("weights_ready")

    def voices(self) -> tuple[str, ...]:
        return ("anna", "bert", "carla")

    def prepare(self, segments: Sequence[Segment]) -> list[Prepared]:
        if any("unspeakable" in segment.text for segment in segments):
            raise EngineError("nothing in this text can be spoken")
        return [Prepared(segment, tokens=len(segment.text), cost_s=self.call_s) for segment in segments]

    def synthesise(self, batch: Sequence[Prepared]) -> list[Samples]:
        self.calls.append([item.segment.text for item in batch])
        self.entered.set()
        if not self.gate.wait(timeout=20):
            raise EngineDead("the test left the gate shut")
        if self.call_s:
            time.sleep(self.call_s)
        if self.broken is not None:
            raise self.broken
        return [np.full(len(item.segment.text) * SAMPLE_RATE_HZ // 10, 0.5, np.float32) for item in batch]

    def alive(self) -> bool:
        return self.living

    def close(self) -> None:
        self.living = False


@dataclass
class Container:
    """A running container and a client for it."""

    parts: Parts
    engine: Any
    url: str
    client: aiohttp.ClientSession
    unhandled: list[dict[str, Any]] = field(default_factory=list)

    def post(self, payload: Any = None, **arguments: Any) -> Any:
        """POST /invocations; ``payload`` as JSON unless ``data`` is given."""
        if "data" not in arguments:
            arguments["json"] = payload
        return self.client.post(f"{self.url}/invocations", **arguments)

    def talk(self, **arguments: Any) -> Any:
        return self.client.ws_connect(f"{self.url}/invocations-bidirectional-stream", **arguments)

    async def empty(self, within_s: float = 5.0) -> None:
        """Wait until nobody is inside and nothing waits; fails when that takes too long."""
        async with asyncio.timeout(within_s):
            while self.parts.admission.depth or self.parts.scheduler.waiting or self.parts.scheduler.running:
                await asyncio.sleep(0.005)


Start = Callable[..., AbstractAsyncContextManager[Container]]


@pytest.fixture
def start() -> Start:
    """``async with start(engine=..., **settings) as container``; warm unless told otherwise."""

    @asynccontextmanager
    async def run(engine: Any = None, *, warm: bool = True, **settings: Any) -> AsyncIterator[Container]:
        engine = engine or ScriptedEngine()
        parts = assemble(Settings(host="127.0.0.1", port=0, **settings), engine)
        unhandled: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
        if warm:
            parts.health.warm()
        async with listening(parts) as runner, aiohttp.ClientSession() as client:
            host, port = runner.addresses[0]
            yield Container(parts, engine, f"http://{host}:{port}", client, unhandled)
            engine.gate.set() if hasattr(engine, "gate") else None
        parts.synthesis.close()
        parts.scheduler.close()
        assert not unhandled

    return run


@pytest.fixture
def scripted() -> type[ScriptedEngine]:
    return ScriptedEngine


class Process:
    """The container as the platform starts it."""

    def __init__(self, port: int, process: subprocess.Popen[str]) -> None:
        self.port, self.process = port, process
        self.output: list[str] = []
        self._reader = threading.Thread(target=lambda: self.output.extend(process.stdout or []), daemon=True)
        self._reader.start()

    @property
    def rss_mib(self) -> float:
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))

    def get(self, path: str) -> int:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except ConnectionError:
            return 0
        finally:
            connection.close()

    def wait_ready(self) -> None:
        end_s = time.monotonic() + 120
        while self.get("/ping") != 200:
            assert time.monotonic() < end_s, self.output
            assert self.process.poll() is None, self.output
            time.sleep(0.05)

    def speak(self) -> http.client.HTTPResponse:
        self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        body = json.dumps({"text": "A sentence that takes a while."})
        self.connection.request("POST", "/invocations", body, {"Content-Type": "application/json"})
        return self.connection.getresponse()


@contextmanager
def _process(*arguments: str, **env: str):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"HOST": "127.0.0.1", "PORT": str(port), "ENGINE": "replay", "REPLAY_STAGES_S": "warmup_done=0.1"}
    process = subprocess.Popen(
        [sys.executable, "-m", "container.server", *arguments],
        env={**os.environ, "SAGEMAKER_BIND_TO_PORT": "", **settings, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    running = Process(port, process)
    try:
        yield running
    finally:
        process.kill()
        process.wait()
        running._reader.join()
        process.stdout.close()


@pytest.fixture
def container_process():
    """``with container_process("serve", PORT="...") as running``: the container as a process of its own."""
    return _process
