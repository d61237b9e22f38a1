"""CPU and memory of an instance's processes, as percentages the way SageMaker reports them."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MEMORY_BYTES = os.sysconf("SC_PHYS_PAGES") * _PAGE_BYTES


@dataclass
class Usage:
    """Remembers the last reading, since CPU time is a counter."""

    _cpu_s: float = 0.0
    _at_s: float = field(default_factory=time.monotonic)

    def read(self, group: int) -> dict[str, float]:
        """Of a process group since the last reading; one busy core is 100 %."""
        stats = _stats(group)
        cpu_s = sum(ticks for ticks, _ in stats) / _TICKS_PER_S
        now = time.monotonic()
        percent = 100 * max(cpu_s - self._cpu_s, 0.0) / max(now - self._at_s, 1e-3)
        self._cpu_s, self._at_s = cpu_s, now
        resident = sum(pages for _, pages in stats) * _PAGE_BYTES
        return {"CPUUtilization": percent, "MemoryUtilization": 100 * resident / _MEMORY_BYTES}


def _stats(group: int) -> list[tuple[int, int]]:
    """(CPU ticks, resident pages) of every process in a group."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        if (fields := _fields(entry)) and int(fields[2]) == group:
            found.append((int(fields[11]) + int(fields[12]), int(fields[21])))
    return found


def _fields(process: Path) -> list[str]:
    """After the command's name, which may hold spaces; empty when the process has gone."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []
