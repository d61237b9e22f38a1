"""One instance of a variant: provisioning stages, container, health, draining."""

from __future__ import annotations

import asyncio
import enum
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from aiohttp import ClientError, ClientSession, ClientTimeout

from rehearsal.faults import Faults
from rehearsal.fleet.container import COMMAND, Container
from rehearsal.fleet.load import Load
from rehearsal.fleet.logs import LogSink, log_group
from rehearsal.record import Record
from rehearsal.settings import Settings
from rehearsal.state import StateDir

PING_EVERY_S = 0.1
WATCH_EVERY_S = 5.0
PING_TIMEOUT_S = 2.0
UNHEALTHY_AFTER_PINGS = 3
DRAIN_AT_MOST_S = 60.0

NO_CAPACITY = (
    "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error. "
    "Please retry using a different ML instance type or after some time."
)


class State(enum.StrEnum):
    """Where an instance is in its life."""

    PROVISIONING = "Provisioning"
    STARTING = "Starting"
    IN_SERVICE = "InService"
    DRAINING = "Draining"
    STOPPED = "Stopped"
    FAILED = "Failed"


@dataclass(frozen=True, slots=True)
class Spec:
    """What a variant's instances run."""

    image: str
    environment: dict[str, str]
    instance_type: str
    startup_timeout_s: float


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every instance of a rehearsal shares."""

    settings: Settings
    faults: Faults
    record: Record
    logs: LogSink
    http: ClientSession
    state: StateDir
    command: Sequence[str] = COMMAND


class InstanceFailedError(Exception):
    """The instance will never serve; the message is AWS's failure reason."""


@dataclass(eq=False)
class Instance:
    """Lives in a task of its own; its owner reads ``state`` and ``failure``."""

    endpoint: str
    variant: str
    spec: Spec
    around: Surroundings
    id: str = field(default_factory=lambda: "i-" + secrets.token_hex(8) + "0")
    state: State = State.PROVISIONING
    failure: str | None = None
    load: Load = field(default_factory=Load)
    container: Container | None = None
    counted: bool = False
    """Has been in service; a container that starts again does not change the count."""

    def __post_init__(self) -> None:
        self._routed_from_s = 0.0
        self._note("launched")
        self._task = asyncio.create_task(self._live())

    @property
    def url(self) -> str:
        """Where its container listens."""
        assert self.container is not None
        return f"http://127.0.0.1:{self.container.port}"

    @property
    def serving(self) -> bool:
        """Whether it takes new requests."""
        return self.state is State.IN_SERVICE

    @property
    def routed(self) -> bool:
        """Whether the router has learnt of it; an instance without others does not wait for that."""
        return time.monotonic() >= self._routed_from_s

    def enter(self) -> None:
        """Hand it a request."""
        self.load.enter()
        faults = self.around.faults
        if self.container and faults.on("crash") and self.load.in_flight >= faults.number("crash", "in_flight"):
            faults.clear("crash")
            self._note("fault_crash")
            self.container.kill()

    async def stop(self, drain_s: float = DRAIN_AT_MOST_S, kill_after_s: float = 30.0) -> None:
        """Take no new requests, let the running ones end, then end the container."""
        self._become(State.DRAINING)
        deadline = time.monotonic() + drain_s
        while self.load.in_flight and time.monotonic() < deadline:
            await asyncio.sleep(0.02)
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        if self.container:
            await self.container.stop(kill_after_s)
        self._become(State.STOPPED)

    async def _live(self) -> None:
        try:
            await self._provision()
            while True:
                await self._run_container()
        except InstanceFailedError as failed:
            self.failure = str(failed)
            self._become(State.FAILED, self.failure)
            if self.container:
                await self.container.stop()

    async def _provision(self) -> None:
        await self._stage("provisioning")
        if self.around.faults.on("no-capacity"):
            await asyncio.sleep(self.around.faults.number("no-capacity", "after_s"))
            raise InstanceFailedError(NO_CAPACITY)
        self._print("Starting the container")
        await self._stage("container_start")

    async def _run_container(self) -> None:
        """Start the container and stay until it ends; a crash in service starts it again."""
        self._become(State.STARTING)
        self.container = await Container.start(self.spec.environment, self._print, self.around.command)
        self.around.state.note_process(self.container.pid)
        await self._until_healthy(self.container)
        await self._stage("health_check")
        if self.around.faults.on("rollback"):
            raise InstanceFailedError(self.around.faults.text("rollback", "reason"))
        self._routed_from_s = time.monotonic() + self.around.settings.stage_s("routing")
        self._become(State.IN_SERVICE)
        self.counted = True
        await self._until_broken(self.container)

    async def _until_healthy(self, container: Container) -> None:
        limit_s = self.spec.startup_timeout_s
        faults = self.around.faults
        sick = faults.on("unhealthy")
        if sick:
            limit_s = faults.number("unhealthy", "after_s")
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline and container.exit_code is None:
            if not sick and await self._ping(container):
                self._note("healthy")
                return
            await asyncio.sleep(PING_EVERY_S)
        raise InstanceFailedError(
            f"The primary container for production variant {self.variant} did not pass the ping health check. "
            "Please check CloudWatch logs for this endpoint."
        )

    async def _until_broken(self, container: Container) -> None:
        ended = asyncio.ensure_future(container.exited())
        missed = 0
        while missed < UNHEALTHY_AFTER_PINGS:
            await asyncio.wait({ended}, timeout=WATCH_EVERY_S)
            if ended.done():
                self._note("container_exited", f"exit code {ended.result()}")
                return
            missed = 0 if await self._ping(container) else missed + 1
        self._note("unhealthy")
        self._become(State.STARTING)
        await container.stop()

    async def _ping(self, container: Container) -> bool:
        try:
            async with self.around.http.get(
                f"http://127.0.0.1:{container.port}/ping", timeout=ClientTimeout(total=PING_TIMEOUT_S)
            ) as answer:
                return answer.status == 200
        except (ClientError, TimeoutError):
            return False

    async def _stage(self, name: str) -> None:
        self._note(f"stage_{name}")
        await asyncio.sleep(self.around.settings.stage_s(name))

    def _print(self, line: str) -> None:
        self.around.logs.write(log_group(self.endpoint), f"{self.variant}/{self.id}", line)

    def _become(self, state: State, detail: str = "") -> None:
        if state is not self.state:
            self.state = state
            self._note(state.value.lower(), detail)

    def _note(self, event: str, detail: str = "") -> None:
        self.around.record.event(self.endpoint, self.variant, self.id, event, detail)
