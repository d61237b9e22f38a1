"""Load users over bidirectional streams, in a process of their own: the HTTP/2 SDK is asyncio and needs Python 3.12.

Reads commands from stdin, one JSON object a line ({"job", "index"} or {"users"}), and writes to stdout the status
messages that every load process writes. Started by loadtest.bidi.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from loadtest.agent import LAG_PROBE_S, REPORT_EVERY_S, Agent, cpu_s, record
from loadtest.corpus import shuffled
from loadtest.exchange import Exchange
from loadtest.job import Job
from loadtest.transports.base import SATURATED
from planner.artifacts.records import Outcome

CONNECT_LIMIT_S = 15.0
"""An untrusted certificate hangs instead of failing."""
BACKOFF_S = 0.5


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
    """One user's stream; frames are JSON in UTF-8 or audio."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._stream: Any = None
        self._events: AsyncIterator[Any] | None = None

    async def open(self) -> None:
        """Connect, unless connected."""
        if self._stream is not None:
            return
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
        client = AsyncSageMakerRuntimeHTTP2Client(await AsyncSageMakerRuntimeHTTP2Config.resolve(transport=Duplex()))
        asked = models.InvokeEndpointWithBidirectionalStreamInput(
            endpoint_name=self._job.endpoint, target_variant=self._job.variant
        )
        async with asyncio.timeout(CONNECT_LIMIT_S):
            self._stream = await client.invoke_endpoint_with_bidirectional_stream(asked)
            _, self._events = await self._stream.await_output()

    async def close(self) -> None:
        """End the session."""
        if self._stream is None:
            return
        with suppress(*failures()):
            await asyncio.wait_for(self._stream.close(), 2)
        self._stream = self._events = None

    async def speak(self, body: bytes, answer: Answer) -> None:
        """One utterance."""
        part = self._models.RequestStreamEventPayloadPart(self._models.RequestPayloadPart(bytes_=body))
        await self._stream.input_stream.send(part)
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

    def __init__(self, name: str) -> None:
        super().__init__(_write)
        self.name = name
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
            task = asyncio.create_task(self._user(self._number))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _user(self, number: int) -> None:
        job = self.job
        assert job is not None
        order = shuffled(len(job.bodies), f"{job.seed}/{job.run}/{job.rung}/{self.index}/{number}")
        session, has_started, finished_ns = Session(job), False, None
        while self.users <= self._wanted:
            text = next(order)
            self.in_flight += 1
            if not has_started:
                has_started = True
                self.started += 1
                self.last_started_ns = time.monotonic_ns()
            found = await self._one(session, self.bodies[text], job.timeout_s)
            self.in_flight -= 1
            gap_ms = (found.sent_ns - finished_ns) / 1e6 if finished_ns else None
            self.keep(record(self.name, job, found, text, found.sent_ns), gap_ms)
            finished_ns = found.done_ns if found.outcome == "ok" else None
            if found.outcome != "ok":
                await session.close()
                await asyncio.sleep(BACKOFF_S)
        self.users -= 1
        await session.close()

    async def _one(self, session: Session, body: bytes, timeout_s: float) -> Exchange:
        try:
            await session.open()
        except failures() as error:
            failed = Answer(time.monotonic_ns(), outcome="server_error", error=f"{type(error).__name__}: {error}"[:300])
            return failed.exchange()
        answer = Answer(time.monotonic_ns())
        try:
            async with asyncio.timeout(timeout_s):
                await session.speak(body, answer)
        except TimeoutError:
            answer.outcome, answer.error = "timeout", f"not finished after {timeout_s:g} s"
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
    sys.stdout.write(json.dumps(status) + "\n")
    sys.stdout.flush()


async def serve(name: str) -> None:
    """Until stdin closes."""
    process = BidiProcess(name)
    reports = asyncio.create_task(process.reports())
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        if "job" in command:
            process.take(Job(**command["job"]), command["index"])
        else:
            process.want(command["users"])
    reports.cancel()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
