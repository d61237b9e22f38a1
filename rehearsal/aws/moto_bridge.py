"""moto as a WSGI application in a thread pool behind aiohttp."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from aiohttp import web
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

log = logging.getLogger(__name__)

_HOP_BY_HOP = {"content-length", "connection", "transfer-encoding", "date", "server"}


class MotoBridge:
    """Answers what moto knows; what it does not know is a 400, since SDKs retry a 500 for minutes."""

    def __init__(self, threads: int = 8) -> None:
        self._application = DomainDispatcherApplication(_backend_app)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="moto")

    async def handle(self, request: web.Request, body: bytes) -> web.Response:
        """One request, on a thread of the pool."""
        environ = _environ(request, body)
        loop = asyncio.get_running_loop()
        status, headers, content = await loop.run_in_executor(self._pool, self._call, environ)
        return _response(request, status, headers, content)

    def close(self) -> None:
        """Stop the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _call(self, environ: dict[str, Any]) -> tuple[int, list[tuple[str, str]], bytes]:
        started: dict[str, Any] = {}

        def start_response(status: str, headers: list[tuple[str, str]], _: Any = None) -> Any:
            started["status"], started["headers"] = int(status.split()[0]), headers
            return lambda _: None

        parts = self._application(environ, start_response)
        try:
            content = b"".join(parts)
        finally:
            if hasattr(parts, "close"):
                parts.close()
        return _unknown_is_400(started["status"], started["headers"], content)


def _backend_app(service: Any) -> Any:
    """moto's own, but an exception inside becomes an answer."""
    application = create_backend_app(service)
    application.config["PROPAGATE_EXCEPTIONS"] = False
    return application


def _unknown_is_400(
    status: int, headers: list[tuple[str, str]], content: bytes
) -> tuple[int, list[tuple[str, str]], bytes]:
    if status < 500:
        return status, headers, content
    log.error("moto answered %s: %s", status, content[-2000:].decode("utf-8", "replace"))
    body = json.dumps({"__type": "UnknownOperationException", "message": "not part of the rehearsal"}).encode()
    return 400, [("Content-Type", "application/x-amz-json-1.1")], body


def _environ(request: web.Request, body: bytes) -> dict[str, Any]:
    host, _, port = (request.host or "127.0.0.1").partition(":")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": request.rel_url.path.encode().decode("latin-1"),
        "QUERY_STRING": request.raw_path.partition("?")[2],
        "RAW_URI": request.raw_path,
        "REQUEST_URI": request.raw_path,
        "SERVER_NAME": host,
        "SERVER_PORT": port or "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
        "wsgi.input_terminated": True,
    }
    for name, value in request.headers.items():
        key = name.upper().replace("-", "_")
        if key == "CONTENT_TYPE":
            environ[key] = value
        elif key not in ("CONTENT_LENGTH", "TRANSFER_ENCODING"):
            environ[f"HTTP_{key}"] = value
    return environ


def _response(request: web.Request, status: int, headers: list[tuple[str, str]], content: bytes) -> web.Response:
    head = request.method == "HEAD"
    response = web.Response(status=status, body=b"" if head else content)
    for name, value in headers:
        lower = name.lower()
        if lower == "content-type":
            response.headers["Content-Type"] = value
        elif lower == "content-length" and head:
            response.headers["Content-Length"] = value
        elif lower not in _HOP_BY_HOP:
            response.headers.add(name, value)
    return response
