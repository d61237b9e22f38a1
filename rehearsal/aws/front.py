"""One port for everything: our own JSON services, moto for the rest, faults of the control plane in front."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Mapping

from aiohttp import web

from rehearsal.aws.moto_bridge import MotoBridge
from rehearsal.aws.service import ApiError, JsonService
from rehearsal.faults import Faults

log = logging.getLogger(__name__)

JSON = "application/x-amz-json-1.1"
LARGEST_BODY_BYTES = 5 << 30


class ControlPlane:
    """Looks at X-Amz-Target to tell whose request it is."""

    def __init__(self, services: Mapping[str, JsonService], moto: MotoBridge, faults: Faults) -> None:
        self._services = services
        self._moto = moto
        self._faults = faults

    async def handle(self, request: web.Request) -> web.Response:
        """Any control-plane request."""
        body = await request.read()
        prefix, _, operation = request.headers.get("X-Amz-Target", "").partition(".")
        action = operation or _action(request, body)
        try:
            self._trouble(action)
            if service := self._services.get(prefix):
                return _answer(200, json.dumps(service.call(operation, body)).encode())
        except ApiError as error:
            log.info("%s %s refused: %s %s", prefix, action, error.code, error.message)
            return _answer(error.status, error.body())
        return await asyncio.shield(self._moto.handle(request, body))

    def _trouble(self, action: str) -> None:
        if self._faults.hits("throttle", action):
            raise ApiError("ThrottlingException", "Rate exceeded")
        if self._faults.hits("server-error", action):
            raise ApiError("InternalFailure", "The rehearsal failed this call on request.", 500)


def _answer(status: int, body: bytes) -> web.Response:
    headers = {"x-amzn-RequestId": secrets.token_hex(16)}
    return web.Response(status=status, body=body, headers=headers, content_type=JSON)


def _action(request: web.Request, body: bytes) -> str:
    """Query protocols carry the action in the body, CBOR in the path."""
    if "/operation/" in request.path:
        return request.path.rpartition("/")[2]
    if body.startswith(b"Action="):
        return body[7:].partition(b"&")[0].decode("ascii", "replace")
    return f"{request.method} {request.path}"
