"""Load users over bidirectional streams, in a process of their own: the HTTP/2 SDK is asyncio and needs Python 3.12.

Reads commands from stdin, one JSON object a line ({"job", "index"} or {"users"}), and writes to stdout the status
messages that every load process writes. Started by loadtest.bidi; ends when stdin does, what is out then is cut.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from loadtest.agent import LAG_PROBE_S, REPORT_EVERY_S, Agent, cpu_s, record
from loadtest.corpus import shuffled
from loadtest.exchange import Exchange, cut
from loadtest.job import Job
from loadtest.transports.base import SATURATED
from planner.artifacts.records import Outcome

CONNECT_LIMIT_S = 15.0
"""An untrusted certificate hangs instead of failing."""
BACKOFF_S = 0.5
CLOSE_LIMIT_S = 2.0
LONGEST_COMMAND_BYTES = 1 << 26
"""A job carries every text of the corpus."""
END = b'{"type":"end"}'
"""The container closes the stream once everything asked for has been spoken."""


@dataclass
class Answer:
    """One utterance as its frames arrive."""

    sent_ns: int
    started_ns: int | None = None
    first_audio_ns: int | None = None
    audio_bytes: int = 0
    attributes: str = ""
    outcome: Outcome = "broken"
    error: str | None = "the stream ended before the utterance did"

    def take(self, data: bytes, is_text: bool) -> bool:
        """One frame; True when the utterance is over."""
        if not is_text:
            self.audio_bytes += len(data)
            if data and self.first_audio_ns is None:
                self.first_audio_ns = time.monotonic_ns()
            return False
        said = json.loads(data)
        kind = said.get("type")
        if kind == "start":
            self.started_ns = time.monotonic_ns()
            self.attributes = f"boot_id={said.get('boot_id')};queue_depth={said.get('queue_depth')}"
        if kind == "error":
            self.outcome = "rejected" if said.get("error") == SATURATED else "server_error"
            self.error = f"{said.get('error')}: {said.get('message')}"[:300]
        if kind == "complete":
            self.outcome, self.error = ("ok", None) if self.audio_bytes else ("no_audio", "no audio was sent")
        return kind in ("complete", "error", "cancelled")

    def exchange(self) -> Exchange:
        """As the other transports end."""
        return Exchange(
            self.sent_ns,
            self.started_ns,
            self.first_audio_ns,
            time.monotonic_ns(),
            self.outcome,
            self.error,
            503 if self.outcome == "rejected" else 200,
            self.audio_bytes,
            self.attributes,
        )


def failures() -> tuple[type[Exception], ...]:
    """What the SDK and the connection below it raise."""
    from awscrt.exceptions import AwsCrtError
    from smithy_core.exceptions import SmithyError

    return (SmithyError, AwsCrtError, OSError, TimeoutError)


class Session:
    """One user's connection and the stream on it; frames are JSON in UTF-8 or audio."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._client: Any = None
        self._stream: Any = None
        self._events: AsyncIterator[Any] | None = None

    async def open(self) -> None:
        """Have a stream; each new one is a request of its own, which SageMaker routes."""
        if self._stream is not None:
            return
        if self._client is None:
            await self._connect()
        asked = self._models.InvokeEndpointWithBidirectionalStreamInput(
            endpoint_name=self._job.endpoint, target_variant=self._job.variant
        )
        async with asyncio.timeout(CONNECT_LIMIT_S):
            self._stream = await self._client.invoke_endpoint_with_bidirectional_stream(asked)
            _, self._events = await self._stream.await_output()

    async def _connect(self) -> None:
        # Imported here: the package exists for Python 3.12 only.
        from aws_sdk_sagemaker_runtime_http2 import models
        from aws_sdk_sagemaker_runtime_http2.client import AsyncSageMakerRuntimeHTTP2Client
        from aws_sdk_sagemaker_runtime_http2.config import AsyncSageMakerRuntimeHTTP2Config
        from smithy_http.aio.crt import AWSCRTHTTPClient

        class Duplex(AWSCRTHTTPClient):  # type: ignore[misc]
            """The one HTTP client that streams both ways; survives the SDK's deep copy of its configuration."""

            def __deepcopy__(self, _: Any) -> Any:
                return self

        self._models = models
        self._client = AsyncSageMakerRuntimeHTTP2Client(
            await AsyncSageMakerRuntimeHTTP2Config.resolve(transport=Duplex())
        )

    async def end(self) -> None:
        """Let the container close the stream, so that its instance is free before the next request is routed."""
        if self._stream is None:
            return
        with suppress(*failures()):
            async with asyncio.timeout(CLOSE_LIMIT_S):
                await self._send(END)
                await self._stream.input_stream.close()
                assert self._events is not None
                async for _ in self._events:
                    pass
        await self.close()

    async def close(self) -> None:
        """Hang up."""
        if self._stream is None:
            return
        with suppress(*failures()):
            await asyncio.wait_for(self._stream.close(), CLOSE_LIMIT_S)
        self._stream = self._events = None

    async def _send(self, body: bytes) -> None:
        part = self._models.RequestStreamEventPayloadPart(self._models.RequestPayloadPart(bytes_=body))
        await self._stream.input_stream.send(part)

    async def speak(self, body: bytes, answer: Answer) -> None:
        """One utterance."""
        await self._send(body)
        assert self._events is not None
        async for event in self._events:
            value = event.value
            if not hasattr(value, "bytes_"):
                answer.error = f"{type(event).__name__}: {value}"[:300]
                return
            if answer.take(value.bytes_ or b"", value.data_type == "UTF8"):
                return


class BidiProcess(Agent):
    """As many user tasks as asked for."""

    def __init__(self, name: str, group: asyncio.TaskGroup) -> None:
        super().__init__(_write)
        self.name = name
        self._group = group
        self.anchor = type(self.anchor)(name, self.anchor.monotonic_ns, self.anchor.utc_ns)
        self._wanted = 0
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, job: Job, index: int) -> None:
        """A new rung; no SDK client is shared between users."""
        self.index, self.job = index, job
        self.bodies = [body.encode() for body in job.bodies]
        self.in_flight = self.started = self.last_started_ns = self._number = 0
        self._rows.clear()

    def want(self, users: int) -> None:
        """Start tasks, or let the newest end after their request."""
        self._wanted = users
        while self.users < users:
            self.users += 1
            self._number += 1
            task = self._group.create_task(self._user(self._number))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def cut(self) -> None:
        """Stop every user now; requests that are out become cancelled ones."""
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self.report(0.0)

    async def _user(self, number: int) -> None:
        job = self.job
        assert job is not None
        order = shuffled(len(job.bodies), f"{job.seed}/{job.run}/{job.rung}/{self.index}/{number}")
        session, has_started, finished_ns = Session(job), False, None
        try:
            while self.users <= self._wanted:
                text = next(order)
                if not has_started:
                    has_started = True
                    self.started += 1
                    self.last_started_ns = time.monotonic_ns()
                found = await self._one(session, job, text)
                gap_ms = (found.sent_ns - finished_ns) / 1e6 if finished_ns else None
                self.keep(record(self.name, job, found, text, found.sent_ns), gap_ms)
                finished_ns = found.done_ns if found.outcome == "ok" else None
                if found.outcome != "ok":
                    await session.close()
                    session = Session(job)
                    await asyncio.sleep(BACKOFF_S)
                elif job.session_each:
                    await session.end()
            await session.end()
        finally:
            self.users -= 1
            await session.close()

    async def _one(self, session: Session, job: Job, text: int) -> Exchange:
        self.in_flight += 1
        try:
            return await self._perform(session, job, text)
        finally:
            self.in_flight -= 1

    async def _perform(self, session: Session, job: Job, text: int) -> Exchange:
        try:
            await session.open()
        except failures() as error:
            failed = Answer(time.monotonic_ns(), outcome="server_error", error=f"{type(error).__name__}: {error}"[:300])
            return failed.exchange()
        answer = Answer(time.monotonic_ns())
        try:
            async with asyncio.timeout(job.timeout_s):
                await session.speak(self.bodies[text], answer)
        except asyncio.CancelledError:
            self.keep(record(self.name, job, cut(answer.sent_ns), text, answer.sent_ns), None)
            raise
        except TimeoutError:
            answer.outcome, answer.error = "timeout", f"not finished after {job.timeout_s:g} s"
        except failures() as error:
            answer.outcome, answer.error = "broken", f"{type(error).__name__}: {error}"[:300]
        return answer.exchange()

    async def reports(self) -> None:
        """Until cancelled."""
        reported_s, cpu_before_s = time.monotonic(), cpu_s()
        while True:
            before_s = time.monotonic()
            await asyncio.sleep(LAG_PROBE_S)
            now_s = time.monotonic()
            self._lags_ms.append((now_s - before_s - LAG_PROBE_S) * 1e3)
            if now_s - reported_s >= REPORT_EVERY_S:
                used_s = cpu_s()
                self.report((used_s - cpu_before_s) / (now_s - reported_s))
                reported_s, cpu_before_s = now_s, used_s


def _write(_: str, status: dict[str, Any]) -> None:
    # Nobody reads after the other side was killed; its end of stdin ends this process too.
    with suppress(BrokenPipeError):
        os.write(sys.stdout.fileno(), json.dumps(status).encode() + b"\n")


def _hush() -> None:
    """The SDK's thread prints a traceback for every answer that comes in for a request that was cut."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


async def serve(name: str) -> None:
    """Until stdin closes. An error nobody expected ends the process, and its exit code tells."""
    commands = asyncio.StreamReader(limit=LONGEST_COMMAND_BYTES)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    async with asyncio.TaskGroup() as group:
        process = BidiProcess(name, group)
        reports = group.create_task(process.reports())
        async for line in commands:
            command = json.loads(line)
            if "job" in command:
                process.take(Job(**command["job"]), command["index"])
            else:
                process.want(command["users"])
        reports.cancel()
        _hush()
        await process.cut()


if __name__ == "__main__":
    # Ctrl-C reaches the whole process group: whoever started this one decides when it ends.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(serve(sys.argv[1]))
