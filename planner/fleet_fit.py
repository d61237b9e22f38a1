"""Two thresholds that hold for every fleet size a plan allows, in whole requests as the alarms compare them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from planner.fleet_reading import PERIOD_S, Server, level, reached

FIRES = 0.8
"""A level counts as read at a load when this share of the 10 s periods reaches it: three in a row are then common."""
SURE = 0.99
"""Where scaling in would put the rest past the trigger, this share of three-minute stretches must forbid it."""
EVEN = 0.5
"""At a load where this share of periods (or stretches) reaches its level, an alarm may as well fire as wait."""
SCALE_IN_S = 180.0
"""The scale-in alarm needs three minutes in a row below its threshold."""
UNDER = 0.1
"""The target lies this far under its level: the metric counts whole requests, and equal is not above."""
LOWEST = 2
"""A busy instance reads 1, so a target that tells loads apart needs at least 2."""

_LANDMARKS = (2, 3, 4, 5, 6, 8, 10, 15, 20, 35, 50, 100, 200, 500, 1000)
_PRECISION = 0.01
# Beyond this size one instance more or less changes the load too little to undo a scale-in.
_SMALL = 8


@dataclass(frozen=True)
class Fit:
    """Levels in whole requests: scale out at ``out_level`` and above, in at ``in_level`` and below."""

    out_level: int
    in_level: int
    covered_to: int | None
    """Largest fleet whose alarm fires at the trigger load or earlier; None = not even the smallest."""

    @property
    def target(self) -> float:
        """Just under the level: the alarm is strictly above."""
        return round(self.out_level - UNDER, 6)

    @property
    def threshold(self) -> float:
        """Between the level that still counts as quiet and the next."""
        return self.in_level + 0.5

    def scaled(self, factor: float, bound: int) -> Fit:
        """Levels where a measurement read ``factor`` times what the model expects."""
        lowest = min(LOWEST, bound)
        out_level = min(bound, max(lowest, int(self.out_level * factor)))
        return replace(self, out_level=out_level, in_level=max(0, min(out_level - 1, int(self.in_level * factor))))


def fit(server: Server, trigger_rps: float, low: int, high: int) -> Fit:
    """For ``low`` to ``high`` instances with ``trigger_rps`` each.

    Readings fall as a fleet grows, so the largest one decides the target. Where it reads too little to tell loads
    apart, the largest fleet that still does decides, and the fit covers no more than that.
    """
    lowest = min(LOWEST, len(server.rates_rps))
    covered = _largest(server, trigger_rps, low, high, lowest)
    out_level = lowest if covered is None else level(server, covered, trigger_rps, FIRES)
    return Fit(out_level, _in_level(server, trigger_rps, low, covered or high, out_level), covered)


def fires_from_rps(server: Server, instances: int, out_level: int) -> float:
    """Load an instance at which every other 10 s period reaches ``out_level``."""
    return _load_at(server, instances, out_level, PERIOD_S)


def scales_in_from_rps(server: Server, instances: int, in_level: int) -> float:
    """Load an instance at which every other three-minute stretch stays at or under ``in_level``."""
    return _load_at(server, instances, in_level + 1, SCALE_IN_S)


def settled(server: Server, rate_rps: float, low: int, high: int, out_level: int) -> int:
    """Smallest fleet at which a steady rate no longer fires the scale-out alarm; ``high`` when all do."""
    while low < high:
        middle = (low + high) // 2
        if rate_rps / middle <= fires_from_rps(server, middle, out_level):
            high = middle
        else:
            low = middle + 1
    return low


def flaps_below(server: Server, found: Fit, low: int, high: int) -> int:
    """Smallest fleet from which on a scale-in leaves a load that does not fire scale-out again."""
    quiet_from = low
    for instances in range(max(low, 1) + 1, min(high, _SMALL) + 1):
        then_rps = scales_in_from_rps(server, instances, found.in_level) * instances / (instances - 1)
        if then_rps >= fires_from_rps(server, instances - 1, found.out_level):
            quiet_from = instances
    return quiet_from


def sizes(low: int, high: int) -> list[int]:
    """Both ends and landmarks between: readings change smoothly with the size."""
    return sorted({low, high, *(n for n in _LANDMARKS if low < n < high)})


def _largest(server: Server, trigger_rps: float, low: int, high: int, lowest: int) -> int | None:
    """Largest fleet that reads at least ``lowest`` at the trigger load."""
    if level(server, high, trigger_rps, FIRES) >= lowest:
        return high
    if level(server, low, trigger_rps, FIRES) < lowest:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if level(server, middle, trigger_rps, FIRES) >= lowest:
            low = middle
        else:
            high = middle
    return low


def _in_level(server: Server, trigger_rps: float, low: int, high: int, out_level: int) -> int:
    """Largest level that forbids scale-in wherever it would put the rest past the trigger."""
    allowed = [
        level(server, instances, trigger_rps * (instances - 1) / instances, SURE, SCALE_IN_S) - 1
        for instances in sizes(max(low + 1, 2), max(high, 2))
    ]
    return max(0, min(out_level - 1, *allowed))


@lru_cache(maxsize=4096)
def _load_at(server: Server, instances: int, k: int, window_s: float) -> float:
    """Load at which half of the windows reach ``k``."""
    low, high = 0.0, max(server.rates_rps)
    while high - low > _PRECISION * max(server.rates_rps):
        middle = (low + high) / 2
        tail = reached(server, instances, middle, window_s)
        if (tail[k - 1] if k <= len(tail) else 0.0) < EVEN:
            low = middle
        else:
            high = middle
    return high
