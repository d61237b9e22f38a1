"""Waiting on AWS: a clock that tests replace, a progress line, and calls that outlive throttling."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from planner.errors import AwsError
from scripts.aws.clients import is_transient

T = TypeVar("T")

_LEAD = "\r\x1b[K"


@dataclass
class Clock:
    """Time and sleep in one place; looked up at the call, because gevent replaces them."""

    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    monotonic: Callable[[], float] = lambda: time.monotonic()
    sleep: Callable[[float], None] = lambda seconds: time.sleep(seconds)


@dataclass
class Progress:
    """One line on stderr: rewritten on a terminal, otherwise printed when it says something new or every minute."""

    clock: Clock = field(default_factory=Clock)
    _last: str = ""
    _printed_at: float = float("-inf")

    def show(self, what: str, elapsed_s: float, typical_s: float | None = None, more: str = "") -> None:
        """``what`` with the time it has taken and the time it usually takes."""
        typical = f" (typically {typical_s:.0f} s)" if typical_s is not None else ""
        self._emit(what, f"{what}: {max(0.0, elapsed_s):.0f} s{typical}{more}")

    def note(self, text: str) -> None:
        """A line that stays."""
        _print(f"{_LEAD if sys.stderr.isatty() else ''}{text}\n")
        self._last = ""

    def done(self) -> None:
        """End the rewritten line."""
        if sys.stderr.isatty() and self._last:
            _print("\n")
        self._last = ""

    def _emit(self, key: str, text: str) -> None:
        now = self.clock.monotonic()
        if sys.stderr.isatty():
            _print(f"{_LEAD}{text}")
        elif key != self._last or now - self._printed_at >= 60:
            _print(f"{text}\n")
            self._printed_at = now
        self._last = key


def _print(text: str) -> None:
    with suppress(OSError):  # a closed terminal must not stop a restore
        sys.stderr.write(text)
        sys.stderr.flush()


def persist(call: Callable[[], T], clock: Clock, limit_s: float) -> T:
    """Repeat a call that fails for a passing reason, backing off, until ``limit_s`` is over."""
    started, pause_s = clock.monotonic(), 0.5
    while True:
        try:
            return call()
        except AwsError as error:
            if not _passing(error) or clock.monotonic() - started >= limit_s:
                raise
        clock.sleep(pause_s)
        pause_s = min(2 * pause_s, 10.0)


def _passing(error: AwsError) -> bool:
    cause = error.__cause__
    return isinstance(cause, (ClientError, BotoCoreError)) and is_transient(cause)
