"""Share the CPU's cores between the lanes that are busy."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

MOST_LANES = 4


def usable_cores() -> int:
    return len(os.sched_getaffinity(0))


class SharedCores:
    """A call that runs alone gets every core; calls that overlap get a part each.

    One thread a call gives the most throughput, all threads for one call the least latency. The number of threads
    belongs to the calling thread, so concurrent calls do not disturb each other.
    """

    def __init__(self, cores: int | None = None) -> None:
        self.cores = cores or usable_cores()
        self.lanes = min(self.cores, MOST_LANES)
        self._lock = threading.Lock()
        self._busy = 0

    @contextmanager
    def share(self) -> Iterator[None]:
        with self._lock:
            self._busy += 1
            threads = max(1, self.cores // self._busy)
        try:
            torch.set_num_threads(threads)
            yield
        finally:
            with self._lock:
                self._busy -= 1
