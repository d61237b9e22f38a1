"""Startup stage markers: the lines that say, from the log alone, where a cold start spent its time."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

CONTAINER_STARTED = "container_started"
FRAMEWORK_INIT = "framework_init"
WEIGHTS_READY = "weights_ready"
WARMUP_DONE = "warmup_done"

_IMPORTED_AT_S = time.time()


def process_started_at_s() -> float:
    """When the kernel started this process (Unix seconds); the time of this import where /proc is missing."""
    try:
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    except OSError:
        return _IMPORTED_AT_S
    age_s = uptime_s - int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return min(_IMPORTED_AT_S, time.time() - age_s)


class Stages:
    """Prints ``=== STAGE <name> t=<UTC ms> elapsed_s=<since process start> ===``, each name once."""

    def __init__(self, started_at_s: float) -> None:
        self._started_at_s = started_at_s
        self.seen: dict[str, float] = {}

    def mark(self, name: str) -> None:
        if name in self.seen:
            return
        now_s = time.time()
        self.seen[name] = now_s - self._started_at_s
        print(f"=== STAGE {name} t={now_s * 1000:.0f} elapsed_s={self.seen[name]:.3f} ===", flush=True, file=sys.stdout)
