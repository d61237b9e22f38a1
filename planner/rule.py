"""The published rule: thresholds, cooldowns and bounds as closed formulas of the two measurements."""

from __future__ import annotations

import math
from dataclasses import dataclass

SURGE_LIMIT = 1.5
"""At h = 0.5 the published scale-in threshold (1 - 2h) Q_max is zero: the rule has no answer from here on."""
SCALE_OUT_COOLDOWN_S = (10, 30)
"""Published clamp: no shorter than one period of the high-resolution metric, no longer than three."""
SCALE_IN_FLOOR_S = 300
"""Published floor, Application Auto Scaling's own default cooldown."""


@dataclass(frozen=True)
class Thresholds:
    """Mean occupancy of one instance."""

    c_scale_max: float
    c_scale_min: float


def headroom(surge_ratio: float) -> float:
    """h = surge_ratio - 1."""
    return surge_ratio - 1.0


def published_thresholds(q_max: int, surge_ratio: float) -> Thresholds:
    """C_scale_max = (1 - h) Q_max, C_scale_min = (1 - 2h) Q_max."""
    h = headroom(surge_ratio)
    return Thresholds(c_scale_max=(1 - h) * q_max, c_scale_min=(1 - 2 * h) * q_max)


def threshold_ratio(surge_ratio: float) -> float:
    """r = C_scale_max / C_scale_min = (1 - h) / (1 - 2h)."""
    h = headroom(surge_ratio)
    return (1 - h) / (1 - 2 * h)


def min_safe_instances(ratio: float) -> int | None:
    """ceil(r / (r - 1)): below it the rest of the fleet lands above C_scale_max when one instance leaves."""
    if ratio <= 1.0:
        return None
    return math.ceil(_unfuzzed(ratio / (ratio - 1)))


def w_max_s(slo_ms: float, service_p95_s: float) -> float:
    """W_max = SLO - S_p95: the wait a request can afford."""
    return slo_ms / 1e3 - service_p95_s


def published_utilization(c_scale_max: float) -> float:
    """rho = C / (1 + C): the M/M/1 mean occupancy C = rho / (1 - rho), inverted."""
    return c_scale_max / (1 + c_scale_max)


def scale_out_cooldown_s(t_total_s: float) -> int:
    """clamp(T_total / 2, 10, 30), whole seconds."""
    low, high = SCALE_OUT_COOLDOWN_S
    return int(min(max(t_total_s / 2, low), high))


def scale_in_cooldown_s(t_total_s: float) -> int:
    """max(300, 3 T_total) floored to whole 10 s."""
    return int(max(SCALE_IN_FLOOR_S, 3 * t_total_s) // 10 * 10)


def published_instances(rate_rps: float, service_mean_s: float, c_scale_max: float) -> int:
    """ceil(lambda S / C_scale_max) with the uncontended service time S."""
    return max(1, math.ceil(_unfuzzed(rate_rps * service_mean_s / c_scale_max)))


def _unfuzzed(value: float) -> float:
    """3.0000000000000004 means 3 before a ceiling."""
    return round(value, 9)
