"""Does ConcurrentRequestsPerModel count one instance or the whole variant? AWS does not say; two instances tell."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Literal

Scope = Literal["per_instance", "variant_total", "unknown"]


def scope(readings: Sequence[float], concurrency: int, instances: int) -> Scope:
    """Near ``concurrency / instances`` or near ``concurrency``; unknown without readings or half way between."""
    if not readings or instances < 2:
        return "unknown"
    middle = statistics.median(readings)
    share = concurrency / instances
    gap = concurrency - share
    if middle <= share + 0.4 * gap:
        return "per_instance"
    if middle >= concurrency - 0.4 * gap:
        return "variant_total"
    return "unknown"
