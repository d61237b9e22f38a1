"""InvokeEndpoint and InvokeEndpointWithResponseStream: route, pass on, map errors, record."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, web

from rehearsal.aws.service import ApiError
from rehearsal.cloudwatch.publisher import Publisher
from rehearsal.dataplane import errors, eventstream, report
from rehearsal.dataplane.connections import Connections
from rehearsal.dataplane.distort import Distorter, StreamBrokenError
from rehearsal.fleet.instance import Instance
from rehearsal.fleet.variant import Fleet
from rehearsal.record import Record, RequestTrace
from rehearsal.sagemaker.endpoints import Endpoints
from rehearsal.settings import Settings

LONGEST_ERROR_TEXT = 4096
LONGEST_CUSTOM_ATTRIBUTES = 1024
CUSTOM_ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"
TARGET_VARIANT = "X-Amzn-SageMaker-Target-Variant"
_PASSED_ON = ("Content-Type", CUSTOM_ATTRIBUTES, "X-Amzn-SageMaker-Inference-Id", "X-Amzn-SageMaker-Session-Id")
_TOO_LATE = "The model did not finish its response in the time SageMaker allows."
_CUT_OFF = "The connection to the model container was reset or closed."

Deliver = Callable[[web.Request, RequestTrace, ClientResponse], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class DataPlane:
    """What an invocation needs."""

    settings: Settings
    endpoints: Endpoints
    http: ClientSession
    record: Record
    publisher: Publisher
    distorter: Distorter
    connections: Connections

    def add_routes(self, app: web.Application) -> None:
        """SageMaker Runtime's paths."""
        app.router.add_post("/endpoints/{name}/invocations", self.whole)
        app.router.add_post("/endpoints/{name}/invocations-response-stream", self.streamed)

    async def whole(self, request: web.Request) -> web.StreamResponse:
        """InvokeEndpoint."""
        return await self._invoke(request, request.headers.get("Accept"), self._collect)

    async def streamed(self, request: web.Request) -> web.StreamResponse:
        """InvokeEndpointWithResponseStream."""
        return await self._invoke(request, request.headers.get("X-Amzn-SageMaker-Accept"), self._relay)

    async def _invoke(self, request: web.Request, accept: str | None, deliver: Deliver) -> web.StreamResponse:
        trace = self.record.arrival(request.match_info["name"], self.connections.number(request))
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        if accept:
            headers["Accept"] = accept
        try:
            body = await request.read()
            fleet, instance = self.route(trace, request.headers.get(TARGET_VARIANT))
            try:
                with fleet.occupying(instance):
                    async with await self._ask(trace, instance, body, headers) as answer:
                        return await deliver(request, trace, answer)
            finally:
                trace.end_ns = time.monotonic_ns()
                report.publish(self.publisher, trace, fleet.current)
        except ApiError as error:
            trace.status, trace.outcome = error.status, error.code
            return errors.response(error)
        except (asyncio.CancelledError, ConnectionResetError):
            trace.outcome = "client_gone"
            raise
        finally:
            trace.end_ns = trace.end_ns or time.monotonic_ns()

    def route(self, trace: RequestTrace, wanted: str | None) -> tuple[Fleet, Instance]:
        """Variants share by weight; within one, the fleet chooses."""
        endpoint = self.endpoints.all.get(trace.endpoint)
        if endpoint is None or endpoint.status in ("Creating", "Failed", "Deleting"):
            raise errors.endpoint_not_found(trace.endpoint)
        fleets = [fleet for fleet in endpoint.live.fleets if wanted in (None, fleet.variant)]
        if not fleets:
            raise ApiError("ValidationError", f"Variant {wanted} not found for Request")
        fleet = fleets[0] if len(fleets) == 1 else random.choices(fleets, [each.weight for each in fleets])[0]
        instance = fleet.choose()
        if instance is None:
            raise errors.no_instance(trace.endpoint)
        trace.variant, trace.instance, trace.routed_ns = fleet.variant, instance.id, time.monotonic_ns()
        return fleet, instance

    async def _ask(
        self, trace: RequestTrace, instance: Instance, body: bytes, headers: dict[str, str]
    ) -> ClientResponse:
        """The container's response, headers received; anything but success is a ModelError."""
        limit = ClientTimeout(total=self.settings.invocation_limit_s)
        try:
            answer = await self.http.post(f"{instance.url}/invocations", data=body, headers=headers, timeout=limit)
            trace.headers_ns, trace.container_status = time.monotonic_ns(), answer.status
            if 200 <= answer.status < 300:
                return answer
            text = (await answer.text(errors="replace"))[:LONGEST_ERROR_TEXT]
        except TimeoutError:
            raise self._model_error(trace, 0, errors.TIMED_OUT.format(variant=trace.variant)) from None
        except ClientError:
            raise self._model_error(trace, 0, errors.HUNG_UP.format(variant=trace.variant)) from None
        raise self._model_error(trace, answer.status, text)

    def _model_error(self, trace: RequestTrace, status: int, text: str) -> ApiError:
        return errors.model_error(self.settings.region, trace.endpoint, trace.variant or "", status, text)

    async def _collect(self, request: web.Request, trace: RequestTrace, answer: ClientResponse) -> web.StreamResponse:
        try:
            content = await answer.read()
        except TimeoutError:
            raise self._model_error(trace, 0, errors.TIMED_OUT.format(variant=trace.variant)) from None
        except ClientError:
            raise self._model_error(trace, 0, errors.HUNG_UP.format(variant=trace.variant)) from None
        response = web.Response(body=content, headers=_headers(trace, answer))
        response.headers["Content-Type"] = answer.headers.get("Content-Type", "application/octet-stream")
        await response.prepare(request)
        trace.first_byte_ns = time.monotonic_ns()
        await response.write_eof()
        trace.status, trace.outcome, trace.bytes = 200, "ok", len(content)
        return response

    async def _relay(self, request: web.Request, trace: RequestTrace, answer: ClientResponse) -> web.StreamResponse:
        """Each piece leaves as it comes. Once the response has begun, errors travel inside it."""
        response = web.StreamResponse(headers=_headers(trace, answer))
        response.headers["Content-Type"] = eventstream.CONTENT_TYPE
        response.headers["X-Amzn-SageMaker-Content-Type"] = answer.headers.get("Content-Type", "")
        await response.prepare(request)
        trace.status = 200
        try:
            async for piece in self.distorter.pieces(_pieces(answer)):
                trace.first_byte_ns = trace.first_byte_ns or time.monotonic_ns()
                trace.bytes += len(piece)
                await response.write(eventstream.payload_part(piece))
            trace.outcome = "ok"
        except StreamBrokenError as broken:
            trace.outcome = broken.kind
            if broken.kind == "reset":
                _reset(request)
                return response
            await response.write(eventstream.exception(broken.kind, broken.message, ErrorCode=broken.code))
        await response.write_eof()
        return response


async def _pieces(answer: ClientResponse) -> AsyncIterator[bytes]:
    """The container's bytes as they arrive; its failures as what SageMaker calls them."""
    try:
        async for piece in answer.content.iter_any():
            yield piece
    except TimeoutError:
        raise StreamBrokenError("ModelStreamError", _TOO_LATE, "ModelInvocationTimeExceeded") from None
    except ClientError:
        raise StreamBrokenError("ModelStreamError", _CUT_OFF, "StreamBroken") from None


def _headers(trace: RequestTrace, answer: ClientResponse) -> dict[str, str]:
    """Of the container's own headers only these pass."""
    headers = {"x-Amzn-Invoked-Production-Variant": trace.variant or "", "x-amzn-RequestId": f"{trace.id:032x}"}
    custom = answer.headers.get(CUSTOM_ATTRIBUTES)
    if custom and len(custom) <= LONGEST_CUSTOM_ATTRIBUTES:
        headers[CUSTOM_ATTRIBUTES] = custom
    return headers


def _reset(request: web.Request) -> None:
    if isinstance(request.transport, asyncio.WriteTransport):
        request.transport.abort()
