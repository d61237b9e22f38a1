"""InvokeEndpointWithBidirectionalStream: event streams both ways over HTTP/2, a WebSocket to the container."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from aiohttp import ClientWebSocketResponse, WSMsgType, WSServerHandshakeError
from aiohttp.client_exceptions import ClientError
from botocore.eventstream import EventStreamBuffer

from rehearsal.aws.service import ApiError
from rehearsal.dataplane import errors, eventstream
from rehearsal.dataplane.invoke import DataPlane
from rehearsal.record import RequestTrace

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

CONTAINER_PATH = "/invocations-bidirectional-stream"
HALF_CLOSED_S = 5.0
"""After the client has ended its side, a container that says nothing for this long is closed. AWS documents nothing."""
CLIENT_ENDS_WITHIN_S = 1.0
"""How long the client may take to end its own side before it is told: Hypercorn drops the whole connection, with the
other streams on it, when data arrives for a stream that has ended."""
NORMAL_CLOSES = (1000, 1001)
_PATH = re.compile(r"/endpoints/(?P<name>[^/]+)/invocations-bidirectional-stream")
_WORDING = {"ValidationError": "InputValidationError", "ServiceUnavailable": "ServiceUnavailableError"}


class Bidi:
    """An ASGI application."""

    def __init__(self, plane: DataPlane) -> None:
        self._plane = plane

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection's request, or the server's own start and stop."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await self._request(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = _PATH.fullmatch(scope["path"])
        if found is None or scope["method"] != "POST":
            await _refuse(send, ApiError("InputValidationError", f"No such operation: {scope['path']}"))
            return
        trace = self._plane.record.arrival(found["name"], 0)
        try:
            await self._session(trace, scope, receive, send)
        except ApiError as error:
            trace.status, trace.outcome = error.status, error.code
            await _refuse(send, error)
        finally:
            trace.end_ns = time.monotonic_ns()

    async def _session(self, trace: RequestTrace, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        fleet, instance = self._plane.route(trace, headers.get("x-amzn-sagemaker-target-variant"))
        with fleet.occupying(instance):
            socket = await self._connect(trace, instance.url)
            try:
                trace.status, trace.headers_ns = 200, time.monotonic_ns()
                await send(_start(trace.variant or ""))
                await self._relay(trace, socket, receive, send)
            finally:
                await socket.close()

    async def _connect(self, trace: RequestTrace, url: str) -> ClientWebSocketResponse:
        region, variant = self._plane.settings.region, trace.variant or ""
        try:
            return await self._plane.http.ws_connect(f"{url}{CONTAINER_PATH}", max_msg_size=0)
        except WSServerHandshakeError as refused:
            trace.container_status = refused.status
            raise errors.model_error(region, trace.endpoint, variant, refused.status, refused.message) from None
        except ClientError:
            hung_up = errors.HUNG_UP.format(variant=variant)
            raise errors.model_error(region, trace.endpoint, variant, 0, hung_up) from None

    async def _relay(self, trace: RequestTrace, socket: ClientWebSocketResponse, receive: Receive, send: Send) -> None:
        half_closed = asyncio.Event()
        upward = asyncio.create_task(_up(receive, socket, half_closed))
        try:
            async for payload, kind in _down(socket, half_closed):
                trace.first_byte_ns = trace.first_byte_ns or time.monotonic_ns()
                trace.bytes += len(payload)
                await send(_body(eventstream.payload_part(payload, DataType=kind, CompletionState="COMPLETE")))
            if socket.close_code in NORMAL_CLOSES or half_closed.is_set():
                trace.outcome = "ok"
            else:
                trace.outcome = "ModelStreamError"
                text = f"The model container closed the connection with code {socket.close_code}."
                await send(_body(eventstream.exception("ModelStreamError", text, ErrorCode="StreamBroken")))
            await asyncio.wait([upward], timeout=CLIENT_ENDS_WITHIN_S)
            await send(_body(b"", more=False))
        finally:
            upward.cancel()
            trace.outcome = trace.outcome or "client_gone"


async def _up(receive: Receive, socket: ClientWebSocketResponse, half_closed: asyncio.Event) -> None:
    """Client to container; SageMaker sends binary frames whatever the payload is."""
    outer = EventStreamBuffer()
    pending = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            await socket.close()
            return
        outer.add_data(message.get("body", b""))
        for event in outer:
            if not event.payload:
                half_closed.set()
                continue
            for inner in _inner(event.payload):
                pending += inner.payload
                if inner.headers.get("CompletionState", "COMPLETE") == "COMPLETE":
                    await socket.send_bytes(pending)
                    pending = b""
        if not message.get("more_body"):
            half_closed.set()
            return


def _inner(payload: bytes) -> Any:
    """Each signed outer event carries an event of its own."""
    buffer = EventStreamBuffer()
    buffer.add_data(payload)
    return buffer


async def _down(socket: ClientWebSocketResponse, half_closed: asyncio.Event) -> AsyncIterator[tuple[bytes, str]]:
    """Container to client, until it closes or both sides have nothing to say."""
    quiet_since = time.monotonic()
    while True:
        try:
            message = await socket.receive(timeout=0.5)
        except TimeoutError:
            if half_closed.is_set() and time.monotonic() - quiet_since > HALF_CLOSED_S:
                return
            continue
        quiet_since = time.monotonic()
        if message.type is WSMsgType.BINARY:
            yield message.data, "BINARY"
        elif message.type is WSMsgType.TEXT:
            yield message.data.encode(), "UTF8"
        else:
            return


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


def _start(variant: str) -> dict[str, Any]:
    headers = [
        (b"content-type", eventstream.CONTENT_TYPE.encode()),
        (b"x-amzn-invoked-production-variant", variant.encode()),
    ]
    return {"type": "http.response.start", "status": 200, "headers": headers}


def _body(data: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def _refuse(send: Send, error: ApiError) -> None:
    code = _WORDING.get(error.code, error.code)
    headers = [(b"content-type", b"application/json"), (b"x-amzn-errortype", code.encode())]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send(_body(ApiError(code, error.message, error.status, **error.fields).body(), more=False))
