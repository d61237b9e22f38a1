"""What the concurrency metric of a whole fleet reads: the most requests inside any instance within a window.

Least-outstanding routing fills the emptiest instance first, so the busiest one reaches k + 1 only when all of them hold
k: when the fleet as a whole holds n k + 1. The fleet's total is a birth-death chain. While an instance is free every
request runs at X(1); beyond that the fleet completes n X(total / n). There the rates are set so that the chain drifts
as fast, and its tail falls as fast, as the queue with the measured regularity of service (exponential service needs no
such correction). How often a level is reached follows from the mean first-passage time to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from planner.instance import Instance
from planner.queueing import Vector

PERIOD_S = 10.0
"""The metric's period."""
# Levels less likely than this move no printed digit; the chain is cut off above them.
_NEGLIGIBLE = 1e-7
_FIRST_CUT = 4
# This close to saturation the tail's decay rate is lost in rounding and its limit is used.
_SATURATED = 1e-4
_HALVINGS = 32
_STEEPEST = 20.0


@dataclass(frozen=True)
class Server:
    """One instance of the fleet."""

    rates_rps: tuple[float, ...]
    """X(1) .. X(bound)."""
    stages: float
    """Erlang stages of one service; 1 = exponential, inf = constant."""


@lru_cache(maxsize=64)
def server_of(instance: Instance) -> Server:
    """The planner's instance."""
    return Server(instance.ladder.rates_rps(instance.q_max), instance.ladder.stages)


def reading(server: Server, instances: int, load_rps: float, window_s: float = PERIOD_S) -> float:
    """Expected Maximum over a window, each instance offered ``load_rps``."""
    return sum(reached(server, instances, load_rps, window_s))


def level(server: Server, instances: int, load_rps: float, share: float, window_s: float = PERIOD_S) -> int:
    """Largest number that at least ``share`` of the windows reach."""
    return sum(p >= share for p in reached(server, instances, load_rps, window_s))


@lru_cache(maxsize=65536)
def reached(server: Server, instances: int, load_rps: float, window_s: float = PERIOD_S) -> tuple[float, ...]:
    """P(Maximum >= k) for k = 1, 2, ... up to where it is negligible."""
    top, bound = _FIRST_CUT, len(server.rates_rps)
    while True:
        top = min(top, bound)
        found = _reached(server, instances, load_rps, window_s, top)
        if top == bound or found[-1] < _NEGLIGIBLE:
            return tuple(found.tolist())
        top *= 4


def _reached(server: Server, instances: int, load_rps: float, window_s: float, top: int) -> Vector:
    up, down = _rates(server, instances, load_rps, top)
    weight = np.concatenate(([0.0], np.cumsum(np.log(up[:-1] / down[1:]))))
    steady = np.exp(weight - weight.max())
    steady = np.maximum(steady / steady.sum(), 1e-300)
    below = np.cumsum(steady)
    # From state i to i + 1 on average below / (up steady); a start in steady state below i + 1 adds up the steps left.
    passage_s = np.cumsum(below / (up * steady) * below) / below
    full = instances * np.arange(top)
    unreached = below[full] * np.exp(-window_s / passage_s[full])
    return np.asarray(np.clip(1.0 - unreached, 0.0, 1.0))


def _rates(server: Server, instances: int, load_rps: float, top: int) -> tuple[Vector, Vector]:
    """Births and deaths of the total, 0 to ``instances`` x ``top``."""
    total = np.arange(instances * top + 1)
    each = np.concatenate(([0.0], server.rates_rps))
    alone = np.minimum(total, instances) * server.rates_rps[0]
    death = np.where(total <= instances, alone, instances * np.interp(total / instances, np.arange(len(each)), each))
    birth = np.full(len(total), float(instances * load_rps))
    queued = total > instances
    load = birth[queued] / death[queued]
    distinct, where = np.unique(np.round(load, 4), return_inverse=True)
    pace, tilt = _regular(distinct, server.stages)
    birth[queued] *= pace[where]
    death[queued] = birth[queued] * tilt[where]
    return birth, death


def _regular(load: Vector, stages: float) -> tuple[Vector, Vector]:
    """Births over the arrival rate, and deaths over births, of a queue with Erlang service at these loads.

    The queue's tail falls by exp(-theta) a request, where load (exp(theta) - 1) = stages (1 - exp(-theta / stages)).
    """
    low = np.where(load < 1, 1e-12, -_STEEPEST)
    high = np.where(load < 1, _STEEPEST, -1e-12)
    for _ in range(_HALVINGS):
        theta = (low + high) / 2
        served = theta if np.isinf(stages) else -stages * np.expm1(-theta / stages)
        # Below the outer root the service term wins; a load above 1 has its root on the negative side.
        short = (load * np.expm1(theta) < served) == (load < 1)
        low, high = np.where(short, theta, low), np.where(short, high, theta)
    saturated = np.abs(load - 1) < _SATURATED
    safe = np.where(saturated, 1.0, theta)
    pace = np.where(saturated, (1 + 1 / stages) / 2, (1 - load) / (load * np.expm1(safe)))
    return pace, np.where(saturated, 1.0, np.exp(safe))
