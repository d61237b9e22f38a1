"""Numbers the connections that carry invocations, so that a client's reuse of them can be judged."""

from __future__ import annotations

import asyncio
from weakref import WeakKeyDictionary

from aiohttp import web

from rehearsal.record import Record


class Connections:
    """A connection counts once, with its first invocation."""

    def __init__(self, record: Record) -> None:
        self._record = record
        self._numbers: WeakKeyDictionary[asyncio.BaseTransport, int] = WeakKeyDictionary()

    def number(self, request: web.Request) -> int:
        """0 when the connection is already gone."""
        transport = request.transport
        if transport is None:
            return 0
        if transport not in self._numbers:
            self._numbers[transport] = self._record.connection()
        return self._numbers[transport]
