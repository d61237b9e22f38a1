"""GET /ping, GET /metrics, POST /invocations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from container.accounting import Account
from container.admission import Slot
from container.errors import RequestError, as_refusal
from container.logs import wire_log
from container.negotiation import negotiate
from container.parts import PARTS, Parts
from container.replies import Reply, make_reply
from container.request import parse_json
from container.settings import Settings, SettingsError
from container.ws import bidirectional

ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"
LEFTOVERS_S = 2.0
"""For connections that still have bytes to flush when everything admitted has finished."""
_JSON_TYPES = ("application/json", "application/octet-stream")
"""aiohttp reports the second when the header is missing, as it is from a bare boto3 call."""


def error_response(error: RequestError) -> web.Response:
    return web.json_response(error.body(), status=error.status, headers=error.headers())


@web.middleware
async def one_shape(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Every failure before the first byte leaves as the same JSON shape."""
    try:
        return await handler(request)
    except RequestError as error:
        return error_response(error)
    except web.HTTPException as error:
        if error.status < 400:
            raise
        code = {404: "not_found", 405: "method_not_allowed", 413: "body_too_large"}.get(error.status, "bad_request")
        return error_response(RequestError(error.status, code, error.reason))
    except ConnectionError:
        raise
    except Exception as error:  # noqa: BLE001 - the last line of defence: as_refusal logs it
        return error_response(as_refusal(error))


async def ping(request: web.Request) -> web.Response:
    parts = request.app[PARTS]
    ready = parts.health.ready and not parts.admission.draining
    return web.json_response({"status": "ready" if ready else "unavailable"}, status=200 if ready else 503)


async def metrics(request: web.Request) -> web.Response:
    return web.Response(
        text=request.app[PARTS].metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
    )


async def invocations(request: web.Request) -> web.StreamResponse:
    parts = request.app[PARTS]
    with parts.accounts.open("http") as account:
        body = await _body(request, parts)
        with parts.admit(account) as slot:
            speech = _Speech(request, parts, account, slot)
            try:
                async with asyncio.timeout_at(account.arrived_s + parts.settings.request_deadline_s):
                    return await speech.respond(body)
            except (RequestError, TimeoutError) as error:
                return await speech.break_off(as_refusal(error))


async def _body(request: web.Request, parts: Parts) -> bytes:
    """The whole body, or why not. Whatever is refused is read to its end first, else the refusal could be lost."""
    try:
        async with asyncio.timeout(parts.settings.body_timeout_s):
            try:
                _acceptable(request)
                return await request.read()
            except web.HTTPRequestEntityTooLarge:
                await _discard(request)
                limit = parts.settings.max_body_bytes
                raise RequestError(413, "body_too_large", f"the body is larger than {limit} bytes") from None
            except RequestError:
                await _discard(request)
                raise
    except TimeoutError:
        raise RequestError(408, "request_timeout", "the body did not arrive in time") from None
    except web.RequestPayloadError:
        raise RequestError(400, "invalid_body", "the body is not what its headers say") from None


def _acceptable(request: web.Request) -> None:
    if request.content_type not in _JSON_TYPES:
        raise RequestError(415, "unsupported_media_type", f"send application/json, not {request.content_type[:100]}")
    if (request.charset or "utf-8").lower().replace("-", "") not in ("utf8", "usascii"):
        raise RequestError(415, "unsupported_media_type", f"charset {request.charset!r} is not utf-8")
    encoding = request.headers.get("Content-Encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise RequestError(415, "unsupported_media_type", f"send the body as it is, not {encoding[:100]}")


async def _discard(request: web.Request) -> None:
    while await request.content.readany():
        pass


class _Speech:
    """One admitted request, from its body to its last byte."""

    def __init__(self, request: web.Request, parts: Parts, account: Account, slot: Slot) -> None:
        self._request, self._parts, self._account, self._slot = request, parts, account, slot
        self._response: web.StreamResponse | None = None
        self._reply: Reply | None = None

    async def respond(self, body: bytes) -> web.StreamResponse:
        speech = self._parts.parse(parse_json(body))
        self._account.requested(speech)
        accept = ",".join(self._request.headers.getall("Accept", []))
        answer = negotiate(accept, speech.format, "sse" if speech.timestamps else speech.transport)
        reply = self._reply = make_reply(answer, speech.request_id, speech.timestamps)
        async with self._parts.synthesis.speak(speech, self._account.arrived_s) as utterance:
            async for chunk in utterance:
                data = await reply.audio(chunk)
                self._account.sent(chunk)
                response = self._response or await self._begin(answer.content_type, chunk.engine_s)
                await response.write(data)
        if self._response is None:
            raise RequestError(500, "no_audio", "the engine returned no audio")
        await self._response.write(reply.end())
        await self._response.write_eof()
        return self._response

    async def _begin(self, content_type: str, service_s: float) -> web.StreamResponse:
        """Headers leave with the first audio, so that whatever fails before it still has a status."""
        attributes = self._parts.attributes(self._slot, self._account, service_s)
        response = web.StreamResponse(
            headers={"Content-Type": content_type, "Cache-Control": "no-store", ATTRIBUTES: attributes}
        )
        if self._parts.admission.draining:
            response.force_close()
        await response.prepare(self._request)
        self._response = response
        return response

    async def break_off(self, error: RequestError) -> web.StreamResponse:
        """End what began so that the client sees a failure; raises ``error`` when nothing was sent yet."""
        if self._response is None or self._reply is None:
            raise error
        self._account.failure = error
        told = self._reply.failure(error)
        transport = self._request.transport
        if transport is None or transport.get_write_buffer_size():
            told = b""
        if told:
            await self._response.write(told)
            await self._response.write_eof()
        elif transport is not None:
            transport.abort() if transport.get_write_buffer_size() else transport.close()
        return self._response


def make_app(parts: Parts) -> web.Application:
    app = web.Application(client_max_size=parts.settings.max_body_bytes, middlewares=[one_shape])
    app[PARTS] = parts
    app.router.add_get("/ping", ping)
    app.router.add_get("/metrics", metrics)
    app.router.add_post("/invocations", invocations)
    app.router.add_get("/invocations-bidirectional-stream", bidirectional)
    return app


async def _listen(runner: web.AppRunner, settings: Settings) -> None:
    try:
        await web.TCPSite(runner, settings.host, settings.port, backlog=1024).start()
    except OSError as error:
        raise SettingsError([f"HOST={settings.host} PORT={settings.port}: cannot listen ({error.strerror})"]) from None


@asynccontextmanager
async def listening(parts: Parts) -> AsyncIterator[web.AppRunner]:
    """Serve while the block runs. Handlers are cancelled when their client leaves; aiohttp does not by default."""
    runner = web.AppRunner(
        make_app(parts),
        handler_cancellation=True,
        access_log=None,
        auto_decompress=False,
        logger=wire_log(),
        keepalive_timeout=75,
        lingering_time=0,
        shutdown_timeout=LEFTOVERS_S,
    )
    await runner.setup()
    try:
        await _listen(runner, parts.settings)
        yield runner
    finally:
        await runner.cleanup()
