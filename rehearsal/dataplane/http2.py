"""Serves the bidirectional API: TLS and HTTP/2 on a port of its own, since its SDK speaks nothing else."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import Any

from hypercorn.asyncio import serve
from hypercorn.config import Config

from rehearsal.dataplane.tls import Identity

HOST = "127.0.0.1"
END_WITHIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Http2Server:
    """A listening server; ``url`` is what AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME_HTTP2 is set to."""

    url: str
    stop: asyncio.Event
    task: asyncio.Task[None]

    async def close(self) -> None:
        """Stop listening and end what is open."""
        self.stop.set()
        await self.task


def start(application: Any, identity: Identity) -> Http2Server:
    """Listen on a free port."""
    listener = socket.create_server((HOST, 0))
    port = listener.getsockname()[1]
    config = Config()
    config.bind = [f"fd://{listener.detach()}"]
    config.certfile = str(identity.certificate)
    config.keyfile = str(identity.key)
    config.alpn_protocols = ["h2"]
    config.accesslog = None
    config.graceful_timeout = END_WITHIN_S
    stop = asyncio.Event()

    async def until_stopped() -> None:
        await stop.wait()

    task = asyncio.create_task(serve(application, config, shutdown_trigger=until_stopped))
    return Http2Server(f"https://{HOST}:{port}", stop, task)
