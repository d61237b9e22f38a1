"""Faults of a response stream: slow, cut differently, broken, silent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from rehearsal.faults import Faults


class StreamBrokenError(Exception):
    """The response cannot be finished; ``kind`` is the exception frame's name, or ``reset``."""

    def __init__(self, kind: str, message: str, code: str = "StreamBroken") -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.code = code


class Distorter:
    """Passes pieces on, as the faults that are on demand. Without faults they pass untouched."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    async def pieces(self, source: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """What the client gets to see of ``source``."""
        sent = 0
        async for piece in source:
            for part in self._cut(piece):
                await self._trouble(sent, len(part))
                sent += len(part)
                yield part

    def _cut(self, piece: bytes) -> list[bytes]:
        if not self._faults.on("cut-parts"):
            return [piece]
        size = max(int(self._faults.number("cut-parts", "bytes")), 1)
        return [piece[start : start + size] for start in range(0, len(piece), size)]

    async def _trouble(self, sent: int, size: int) -> None:
        faults = self._faults
        if faults.on("stream-error") and sent + size > faults.number("stream-error", "after_bytes"):
            raise StreamBrokenError(faults.text("stream-error", "kind"), "The rehearsal broke this stream on request.")
        while faults.on("stall") and sent + size > faults.number("stall", "after_bytes"):
            await asyncio.sleep(0.05)
        if faults.on("slow-reader"):
            await asyncio.sleep(size / faults.number("slow-reader", "bytes_per_s"))
