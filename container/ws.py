"""GET /invocations-bidirectional-stream: JSON frames in, audio frames out while the text is still being spoken."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

from aiohttp import WSCloseCode, WSMsgType, web

from container.accounting import Account
from container.engine.base import SAMPLE_RATE_HZ
from container.errors import RequestError, as_refusal, invalid
from container.parts import PARTS, Parts
from container.replies import BinaryReply, timing
from container.request import SpeechRequest, parse_json

HEARTBEAT_S = 20.0
"""A peer that answers no ping for this long is gone."""
TOLERATED_ERRORS = 10
"""Unusable messages after which the session ends: the other side does not speak this protocol."""
CLOSE_S = 2.0
"""How long the closing handshake may take."""
TELL_S = 1.0
"""How long telling a slow reader about a failure may take."""


async def bidirectional(request: web.Request) -> web.StreamResponse:
    parts = request.app[PARTS]
    if refusal := parts.refusal():
        raise refusal
    socket = web.WebSocketResponse(
        heartbeat=HEARTBEAT_S, timeout=CLOSE_S, max_msg_size=parts.settings.max_body_bytes, compress=False
    )
    if not socket.can_prepare(request).ok:
        raise RequestError(426, "upgrade_required", "this path takes WebSocket connections only")
    await socket.prepare(request)
    session = Session(parts, socket, request.transport)
    parts.sessions.add(session)
    try:
        await session.run()
    finally:
        parts.sessions.discard(session)
    return socket


class Session:
    """One connection: utterances are spoken one after another, in the order they came."""

    def __init__(self, parts: Parts, socket: web.WebSocketResponse, transport: asyncio.Transport | None) -> None:
        self._parts, self._socket, self._transport = parts, socket, transport
        self._pending: deque[SpeechRequest] = deque()
        self._work = asyncio.Event()
        self._current: tuple[SpeechRequest, asyncio.Task[None]] | None = None
        self._account: Account | None = None
        self._ending: tuple[int, bytes] | None = None
        self._errors = 0
        self._idle_since_s = time.monotonic()

    @property
    def busy(self) -> bool:
        return self._current is not None or bool(self._pending)

    async def run(self) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                speaker = group.create_task(self._speak_in_turn())
                await self._listen()
                speaker.cancel()
        except* ConnectionError:
            pass  # the client left while it was being told something
        finally:
            for request in self._pending:
                self._parts.accounts.note("websocket", "disconnected", request.request_id)

    def end(self, code: int, reason: bytes) -> None:
        """Close once everything asked for has been spoken; at once when nothing is."""
        self._ending = (code, reason)
        self._work.set()

    async def _listen(self) -> None:
        """Always waiting for a frame, because that is also what answers pings."""
        idle_s = self._parts.settings.ws_idle_timeout_s
        while not self._socket.closed:
            try:
                frame = await self._socket.receive(timeout=idle_s)
            except TimeoutError:
                if not self.busy and time.monotonic() - self._idle_since_s >= idle_s * 0.9:
                    await self._socket.close(code=WSCloseCode.OK, message=b"idle")
                continue
            if frame.type in (WSMsgType.TEXT, WSMsgType.BINARY):
                await self._take(frame.data)

    async def _take(self, data: str | bytes) -> None:
        try:
            self._handle(parse_json(data))
        except RequestError as error:
            self._errors += 1
            self._parts.accounts.note("websocket", error.code)
            await self._tell("error", **error.body())
        if self._errors > TOLERATED_ERRORS:
            await self._socket.close(code=WSCloseCode.POLICY_VIOLATION, message=b"too many unusable messages")

    def _handle(self, fields: dict[str, Any]) -> None:
        kind = fields.pop("type", "speak")
        if kind == "speak":
            self._enqueue(fields)
        elif kind == "cancel":
            self._cancel(fields.get("request_id"))
        elif kind == "end":
            self.end(WSCloseCode.OK, b"")
        else:
            raise invalid("unknown_type", "type must be speak, cancel or end")

    def _enqueue(self, fields: dict[str, Any]) -> None:
        if len(self._pending) >= self._parts.settings.ws_max_pending:
            raise RequestError(429, "too_many_pending", f"{len(self._pending)} utterances wait on this connection")
        if "transport" in fields:
            raise invalid("invalid_request", "transport has no meaning in a bidirectional stream")
        self._pending.append(self._parts.parse(fields))
        self._work.set()

    def _cancel(self, request_id: object) -> None:
        """Take back one utterance, or all of them; unknown ids are no error, they may just have finished."""
        for waiting in [item for item in self._pending if request_id in (None, item.request_id)]:
            self._pending.remove(waiting)
            self._parts.accounts.note("websocket", "cancelled", waiting.request_id)
        if self._current and request_id in (None, self._current[0].request_id):
            if self._account is None:  # its task has not had its first turn, and now it never will
                self._parts.accounts.note("websocket", "cancelled", self._current[0].request_id)
            else:
                self._account.when_cancelled = "cancelled"
            self._current[1].cancel()

    async def _speak_in_turn(self) -> None:
        try:
            while self._pending or not self._ending:
                if self._pending:
                    await self._speak_next()
                else:
                    self._idle_since_s = time.monotonic()
                    self._work.clear()
                    await self._work.wait()
            await self._socket.close(code=self._ending[0], message=self._ending[1])
        except ConnectionError:
            return

    async def _speak_next(self) -> None:
        request = self._pending.popleft()
        task = asyncio.create_task(self._utter(request))
        self._current = (request, task)
        try:
            await asyncio.wait([task])
        finally:
            task.cancel()
            self._current = self._account = None
        await self._report(request, task)

    async def _report(self, request: SpeechRequest, task: asyncio.Task[None]) -> None:
        """Tell how an utterance ended when it did not complete."""
        if task.cancelled():
            await self._tell("cancelled", request_id=request.request_id)
        elif (error := task.exception()) is not None and not isinstance(error, ConnectionError):
            refusal = as_refusal(error)
            await self._tell("error", request_id=request.request_id, **refusal.body())
            if refusal.code == "engine_dead":
                await self._socket.close(code=WSCloseCode.INTERNAL_ERROR, message=b"engine_dead")

    async def _utter(self, request: SpeechRequest) -> None:
        with self._parts.accounts.open("websocket", request) as account:
            self._account = account
            with self._parts.admit(account) as slot:
                async with asyncio.timeout_at(account.arrived_s + self._parts.settings.request_deadline_s):
                    await self._say("start", **self._header(request), queue_depth=slot.depth)
                    await self._stream(request, account)

    async def _stream(self, request: SpeechRequest, account: Account) -> None:
        reply = BinaryReply(request.format or "pcm")
        async with self._parts.synthesis.speak(request, account.arrived_s) as utterance:
            async for chunk in utterance:
                data = await reply.audio(chunk)
                if request.timestamps:
                    await self._say("timing", request_id=request.request_id, **timing(chunk, account.audio_s))
                account.sent(chunk)
                await self._socket.send_bytes(data)
        if rest := reply.end():
            await self._socket.send_bytes(rest)
        wait_ms = round((account.wait_s or 0.0) * 1000, 3)
        await self._say("complete", request_id=request.request_id, audio_s=round(account.audio_s, 4), wait_ms=wait_ms)

    def _header(self, request: SpeechRequest) -> dict[str, Any]:
        return {
            "request_id": request.request_id,
            "format": request.format or "pcm",
            "sample_rate_hz": SAMPLE_RATE_HZ,
            "boot_id": self._parts.boot_id,
        }

    async def _say(self, kind: str, **fields: Any) -> None:
        await self._socket.send_json({"type": kind, **fields})

    async def _tell(self, kind: str, **fields: Any) -> None:
        """Say it soon or give the connection up: a peer that reads nothing must not hold the session."""
        if self._socket.closed:
            return
        try:
            async with asyncio.timeout(TELL_S):
                await self._say(kind, **fields)
        except TimeoutError:
            if self._transport is not None:
                self._transport.abort()
