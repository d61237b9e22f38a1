"""One bounded counter over HTTP and WebSocket: who may wait for the engine, and who is told to come back."""

from __future__ import annotations

import asyncio
from types import TracebackType

from container.errors import RequestError, unavailable


class Slot:
    """One admitted request, queued or executing; releasing twice is harmless."""

    def __init__(self, admission: Admission, depth: int) -> None:
        self._admission = admission
        self._held = True
        self.depth = depth
        """Requests inside at the moment of admission, this one included."""

    def release(self) -> None:
        if self._held:
            self._held = False
            self._admission._leave()

    def __enter__(self) -> Slot:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class Admission:
    """Lives on the event loop; ``limit`` None admits everyone, which is how Q_max is measured."""

    def __init__(self, limit: int | None, retry_after_s: int = 1) -> None:
        self.limit = limit
        self.depth = 0
        self._retry_after_s = retry_after_s
        self._draining = False
        self._empty = asyncio.Event()
        self._empty.set()

    def admit(self) -> Slot:
        """A slot, or the refusal to send at once."""
        if refusal := self.refusal():
            raise refusal
        if self.limit is not None and self.depth >= self.limit:
            raise unavailable(
                "queue_saturated", f"{self.depth} requests are already queued or executing", self._retry_after_s
            )
        self.depth += 1
        self._empty.clear()
        return Slot(self, self.depth)

    def refusal(self) -> RequestError | None:
        """Why nobody at all is admitted."""
        if not self._draining:
            return None
        return unavailable("draining", "this container is shutting down", self._retry_after_s)

    @property
    def draining(self) -> bool:
        return self._draining

    def drain(self) -> None:
        """Admit nobody from now on."""
        self._draining = True

    async def emptied(self) -> None:
        """Return once nobody is inside."""
        await self._empty.wait()

    def _leave(self) -> None:
        self.depth -= 1
        if self.depth == 0:
            self._empty.set()
