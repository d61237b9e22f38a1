"""The endpoint while it is measured: frozen or merely watched, and put back whichever way the program ends."""

from __future__ import annotations

import atexit
import signal
from contextlib import ExitStack
from types import FrameType, TracebackType
from typing import Any, ClassVar, Self

from planner.errors import HeadroomError, Interrupted, report
from scripts.aws.endpoint import LiveEndpoint
from scripts.aws.freeze import frozen
from scripts.aws.signals import Signals


class Hold:
    """Begins when it is made; ``with`` ends it. A program that exits without ending it still restores."""

    current: ClassVar[Hold | None] = None
    """This process's."""

    def __init__(self, live: LiveEndpoint, *, run_id: str, force: bool, ttl_s: float, freeze: bool = True) -> None:
        self._stack = ExitStack()
        self._ended = False
        self._signals: Signals | None = None
        self.live = live
        self.caught: str | None = None
        """The signal that asked for the end; Locust swallows the interrupt it becomes."""
        if freeze:
            held = frozen(live, run_id=run_id, pin_instances=1, force=force, ttl_s=ttl_s)
            self.live = self._stack.enter_context(held).live
        else:
            self._signals = self._stack.enter_context(Signals())
        self._listen()
        Hold.current = self
        atexit.register(self._last_resort)

    def _listen(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.getsignal(number)

            def note(caught: int, frame: FrameType | None, before: Any = before) -> None:
                self.caught = self.caught or signal.Signals(caught).name
                before(caught, frame)

            if callable(before):
                signal.signal(number, note)

    def __enter__(self) -> Self:
        self._ended = True
        self._stack.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        swallowed = self._stack.__exit__(kind, error, trace)
        if self._signals is not None and (self._signals.caught or kind is KeyboardInterrupt):
            raise Interrupted(
                f"stopped by {self._signals.caught or 'an interrupt'}; nothing had been changed"
            ) from None
        return swallowed

    def interrupt(self) -> None:
        """End it as Ctrl-C does; raises Interrupted once everything is restored."""
        if not self._ended:
            with self:
                raise KeyboardInterrupt

    def _last_resort(self) -> None:
        """The interpreter exits and nobody ended the hold."""
        try:
            self.interrupt()
        except HeadroomError as error:
            report(error)
