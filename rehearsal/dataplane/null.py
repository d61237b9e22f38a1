"""A data plane without a container: what a load generator adds is all that is left to measure.

Every payload part begins with a stamp of 16 bytes, big-endian: ``HRNS``, the part's index (uint32) and the server's
CLOCK_MONOTONIC in ns when it wrote the part (uint64). Zero samples (PCM s16le, 24 kHz) follow. With WAV asked for,
the 44-byte header comes first, in the first part, before the stamp.
"""

from __future__ import annotations

import asyncio
import json
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Literal

from aiohttp import web

from rehearsal.dataplane import eventstream

Mode = Literal["instant", "realistic", "stall"]

STAMP = struct.Struct(">4sIQ")
MAGIC = b"HRNS"
SAMPLE_RATE_HZ = 24_000
BYTES_PER_SAMPLE = 2
FIRST_PART_S = 0.100
PART_EVERY_S = 0.120
REALISTIC_PARTS = 8
"""First part at 100 ms, the last at 0.94 s."""
PART_BYTES = 4800
STALL_AFTER_PARTS = 2
UNKNOWN_LENGTH = 0xFFFFFFFF
HOST = "127.0.0.1"


def stamped(index: int, size: int, now_ns: int) -> bytes:
    """One part's payload."""
    return STAMP.pack(MAGIC, index, now_ns).ljust(size, b"\0")


def wav_header() -> bytes:
    """Of a stream whose length is not known yet."""
    rate = SAMPLE_RATE_HZ * BYTES_PER_SAMPLE
    parts = (b"RIFF", UNKNOWN_LENGTH, b"WAVE", b"fmt ", 16, 1, 1, SAMPLE_RATE_HZ, rate, BYTES_PER_SAMPLE, 16)
    return struct.pack("<4sI4s4sIHHIIHH", *parts) + struct.pack("<4sI", b"data", UNKNOWN_LENGTH)


class Null:
    """Answers every endpoint name; counts what it served."""

    def __init__(self, mode: Mode) -> None:
        self._mode = mode
        self.served = 0

    def application(self) -> web.Application:
        """The streaming path, and the count at /_rehearsal/state."""
        app = web.Application()
        app.router.add_post("/endpoints/{name}/invocations-response-stream", self._stream)
        app.router.add_get("/_rehearsal/state", self._state)
        return app

    async def _state(self, _: web.Request) -> web.Response:
        return web.json_response({"mode": self._mode, "served": self.served})

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        wav = _wants_wav(request, body)
        response = web.StreamResponse(
            headers={
                "Content-Type": eventstream.CONTENT_TYPE,
                "X-Amzn-SageMaker-Content-Type": "audio/wav" if wav else "audio/pcm",
                "x-Amzn-Invoked-Production-Variant": "null",
                "X-Amzn-SageMaker-Custom-Attributes": "boot_id=000000000000;queue_depth=1;wait_ms=0;service_ms=0",
            }
        )
        start = time.monotonic()
        await response.prepare(request)
        for index in range(1 if self._mode == "instant" else REALISTIC_PARTS):
            if self._mode != "instant":
                await _until(start + FIRST_PART_S + index * PART_EVERY_S)
            if self._mode == "stall" and index == STALL_AFTER_PARTS:
                await asyncio.Event().wait()
            header = wav_header() if wav and index == 0 else b""
            await response.write(eventstream.payload_part(header + stamped(index, PART_BYTES, time.monotonic_ns())))
        await response.write_eof()
        self.served += 1
        return response


async def serve(port: int, mode: Mode, ready: Callable[[str], None]) -> None:
    """Until cancelled; ``ready`` is called with the URL."""
    runner = web.AppRunner(Null(mode).application(), access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, HOST, port, backlog=4096).start()
    ready(f"http://{HOST}:{runner.addresses[0][1]}")
    try:
        await asyncio.Event().wait()
    finally:
        with suppress(asyncio.CancelledError):
            await runner.cleanup()


def _wants_wav(request: web.Request, body: bytes) -> bool:
    """As the container decides: the body's format wins over Accept, and WAV is the default."""
    asked = json.loads(body).get("format") if body[:1] == b"{" else None
    accept = request.headers.get("X-Amzn-SageMaker-Accept", "")
    return asked == "wav" if asked else accept != "audio/pcm"


async def _until(at: float) -> None:
    await asyncio.sleep(max(at - time.monotonic(), 0))
