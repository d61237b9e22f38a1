"""How audio is put on the wire: bare bytes of a file, or server-sent events."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any, Protocol

from container.audio import Mp3Encoder, make_encoder
from container.engine.base import SAMPLE_RATE_HZ
from container.errors import RequestError
from container.negotiation import Answer
from container.utterance import Chunk


class Reply(Protocol):
    """Turns chunks into bytes for one response."""

    async def audio(self, chunk: Chunk) -> bytes:
        """Bytes for this chunk; may be empty while an encoder gathers."""

    def end(self) -> bytes:
        """Bytes after the last chunk."""

    def failure(self, error: RequestError) -> bytes:
        """Bytes that tell of a failure in-band; empty where the transport has no way to."""


class BinaryReply:
    """The file itself; a failure is a connection that ends too early."""

    def __init__(self, format_name: str) -> None:
        self._encoder = make_encoder(format_name)

    async def audio(self, chunk: Chunk) -> bytes:
        if isinstance(self._encoder, Mp3Encoder):
            return await asyncio.to_thread(self._encoder.encode, chunk.samples, whole=chunk.last)
        return self._encoder.encode(chunk.samples, whole=chunk.last)

    def end(self) -> bytes:
        return self._encoder.finish()

    def failure(self, error: RequestError) -> bytes:
        del error
        return b""


class SseReply:
    """Events audio (base64), then exactly one of done and error."""

    def __init__(self, format_name: str, request_id: str, timestamps: bool) -> None:
        self._binary = BinaryReply(format_name)
        self._format, self._request_id, self._timestamps = format_name, request_id, timestamps
        self._index = 0
        self._audio_s = 0.0

    async def audio(self, chunk: Chunk) -> bytes:
        data = await self._binary.audio(chunk)
        event: dict[str, Any] = {"index": self._index, "audio": base64.b64encode(data).decode("ascii")}
        if self._timestamps:
            event |= timing(chunk, self._audio_s)
        self._index += 1
        self._audio_s += chunk.audio_s
        return _event("audio", event)

    def end(self) -> bytes:
        rest = self._binary.end()
        tail = _event("audio", {"index": self._index, "audio": base64.b64encode(rest).decode("ascii")}) if rest else b""
        return tail + _event(
            "done",
            {
                "request_id": self._request_id,
                "format": self._format,
                "sample_rate_hz": SAMPLE_RATE_HZ,
                "audio_s": round(self._audio_s, 4),
            },
        )

    def failure(self, error: RequestError) -> bytes:
        return _event("error", error.body())


def make_reply(answer: Answer, request_id: str, timestamps: bool) -> Reply:
    return SseReply(answer.format, request_id, timestamps) if answer.sse else BinaryReply(answer.format)


def timing(chunk: Chunk, start_s: float) -> dict[str, Any]:
    """Which words sound when, to the segment."""
    return {"text": chunk.text, "start_s": round(start_s, 4), "end_s": round(start_s + chunk.audio_s, 4)}


def _event(name: str, data: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
