"""How many requests an instance holds, with the extremes and the mean of each reporting window."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """In-flight requests over one window."""

    low: int
    high: int
    mean: float
    seconds: float


class Load:
    """Counts exactly: every entry and exit is seen, nothing is sampled."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self.in_flight = 0
        self._start = self._last = clock()
        self._area = 0.0
        self._low = self._high = 0

    def enter(self) -> None:
        """A request was handed to the instance."""
        self._advance()
        self.in_flight += 1
        self._high = max(self._high, self.in_flight)

    def leave(self) -> None:
        """A request is over, its last byte included."""
        self._advance()
        self.in_flight -= 1
        self._low = min(self._low, self.in_flight)

    def take_window(self) -> Window:
        """Close the window and begin the next."""
        self._advance()
        seconds = self._last - self._start
        mean = self._area / seconds if seconds > 0 else float(self.in_flight)
        window = Window(self._low, self._high, mean, seconds)
        self._begin(self._last)
        return window

    def _begin(self, now: float) -> None:
        self._start = self._last = now
        self._area = 0.0
        self._low = self._high = self.in_flight

    def _advance(self) -> None:
        now = self._clock()
        self._area += self.in_flight * (now - self._last)
        self._last = now
