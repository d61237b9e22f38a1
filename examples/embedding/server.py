"""A text-embedding service in the SageMaker container contract: another endpoint that Headroom can measure.

The vectors are real (signed feature hashing of character trigrams, Weinberger et al. 2009); the time a model
would need is scripted, EMBED_SERVICE_MS a request, EMBED_LANES requests at a time.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import sys
import time

import numpy as np
from aiohttp import web

DIMENSIONS = 256


def embed(text: str) -> list[float]:
    """Unit vector of length DIMENSIONS; texts that share trigrams lie close together."""
    vector = np.zeros(DIMENSIONS)
    padded = f"  {text.lower()}  "
    for start in range(len(padded) - 2):
        digest = hashlib.blake2b(padded[start : start + 3].encode(), digest_size=8).digest()
        bucket = int.from_bytes(digest[:4], "little") % DIMENSIONS
        vector[bucket] += 1.0 if digest[4] & 1 else -1.0
    norm = float(np.linalg.norm(vector))
    return [round(float(x), 6) for x in (vector / norm if norm else vector)]


class Service:
    """Queues in arrival order; the queue is bounded by MAX_QUEUE_DEPTH when that is set."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.service_s = float(environment.get("EMBED_SERVICE_MS", "20")) / 1000
        self.lanes = asyncio.Semaphore(int(environment.get("EMBED_LANES", "1")))
        bound = environment.get("MAX_QUEUE_DEPTH")
        self.bound = int(bound) if bound else None
        self.boot_id = secrets.token_hex(6)
        self.inside = 0

    async def ping(self, _: web.Request) -> web.Response:
        return web.Response()

    async def invoke(self, request: web.Request) -> web.Response:
        try:
            text = json.loads(await request.read())["inputs"]
            if not isinstance(text, str) or not text.strip():
                raise ValueError
        except (ValueError, KeyError, TypeError):
            message = 'the body must be {"inputs": "<text>"}'
            return web.json_response({"error": "bad_request", "message": message}, status=400)
        if self.bound is not None and self.inside >= self.bound:
            body = {"error": "queue_saturated", "message": f"{self.bound} requests are queued or running"}
            return web.json_response(body, status=503, headers={"Retry-After": "1"})
        self.inside += 1
        depth = self.inside
        try:
            return await self._answer(text, depth)
        finally:
            self.inside -= 1

    async def _answer(self, text: str, depth: int) -> web.Response:
        arrived = time.monotonic()
        async with self.lanes:
            started = time.monotonic()
            vector = embed(text)
            await asyncio.sleep(max(0.0, started + self.service_s - time.monotonic()))
            service_ms = (time.monotonic() - started) * 1000
        wait_ms = (started - arrived) * 1000
        attributes = f"boot_id={self.boot_id};queue_depth={depth};wait_ms={wait_ms:.1f};service_ms={service_ms:.1f}"
        return web.json_response({"embedding": vector}, headers={"X-Amzn-SageMaker-Custom-Attributes": attributes})


def application(environment: dict[str, str]) -> web.Application:
    """The aiohttp application, configured from ``environment``."""
    service = Service(environment)
    app = web.Application(client_max_size=1 << 20)
    app.router.add_get("/ping", service.ping)
    app.router.add_post("/invocations", service.invoke)
    return app


def stage(name: str, began: float) -> None:
    """The marker that T_total's stages are read from."""
    print(f"=== STAGE {name} t={int(time.time() * 1000)} elapsed_s={time.monotonic() - began:.3f} ===", flush=True)


def main() -> None:
    began = time.monotonic()
    for name in ("container_started", "framework_init", "weights_ready", "warmup_done"):
        stage(name, began)
    port = int(os.environ.get("SAGEMAKER_BIND_TO_PORT", "8080"))
    web.run_app(application(dict(os.environ)), port=port, print=None, handler_cancellation=True)


if __name__ == "__main__":
    sys.exit(main())
