"""Keep what the allocator holds close to what is in use."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

ARENAS = 1
LARGE_SAMPLES = 100_000
"""Audio of a call, about four seconds, above which it leaves holes in the heap that shorter ones never fill."""
_M_ARENA_MAX = -8
_LIBC = ctypes.CDLL(None)


def bound_arenas() -> None:
    """One heap for all threads, where the C library is glibc: heaps of their own cannot join their free blocks."""
    mallopt: Callable[[int, int], int] | None = getattr(_LIBC, "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, ARENAS)


def release_after(samples: int) -> None:
    """Give free pages back to the system after a large call. Short calls keep theirs: faulting them in costs time."""
    trim: Callable[[int], int] | None = getattr(_LIBC, "malloc_trim", None)
    if trim is not None and samples >= LARGE_SAMPLES:
        trim(0)
