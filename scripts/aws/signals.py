"""Ctrl-C, SIGTERM and a closed terminal become one KeyboardInterrupt; a restore in progress is never cut short."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Installed while an endpoint is frozen; gevent hands a KeyboardInterrupt, and only that, to the main greenlet."""

    def __init__(self) -> None:
        self.caught: str | None = None
        self._deferred = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in _HANDLED:
                if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                    continue
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, previous in self._previous.items():
            signal.signal(number, previous if previous is not None else signal.SIG_DFL)

    def defer(self) -> None:
        """From here on signals are only remembered."""
        self._deferred = True

    def _handle(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        first = self.caught is None
        self.caught = self.caught or signal.Signals(number).name
        if first and not self._deferred:
            raise KeyboardInterrupt
