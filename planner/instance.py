"""One measured instance: its chain at any load, its capacity, and the loads at which it still meets the SLO."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from planner.firstbyte import FirstByte
from planner.ladder import Ladder
from planner.queueing import Chain, Vector, birth_death, erlang, expected_window_max

SHED_LIMIT = 0.01
"""A surge counts as survived, and a load as carried, while at most this share of requests is shed."""
SLO_SHARE = 0.95
"""The SLO is a p95: this share of the admitted must meet it."""
LOAD_TOLERANCE = 2e-4
"""Search precision of a load, as a share of capacity; under a third of one instance in a fleet of 1 000."""


@dataclass(frozen=True)
class Instance:
    """A ladder with an admission bound and an SLO. Hashable, so that searches are done once."""

    ladder: Ladder
    q_max: int
    slo_ms: float

    @property
    def capacity_rps(self) -> float:
        """X(Q_max): what an instance completes with every slot taken."""
        return self.ladder.rps(self.q_max)

    @property
    def model(self) -> str:
        """Name of the chain in use, for the report."""
        stages = self.ladder.stages
        if stages == 1:
            return "birth-death, exponential service"
        return f"Erlang-{stages:.0f} service" if stages != float("inf") else "deterministic service"

    def chain(self, arrival_rps: float) -> Chain:
        """Open arrivals at this rate, admission at Q_max."""
        rates = _rates(self)
        if self.ladder.stages == 1:
            return birth_death(rates, arrival_rps)
        return erlang(rates, arrival_rps, self.ladder.stages)

    def meets_slo(self, occupancy: Vector) -> bool:
        """p95 of the admitted within the SLO and at most 1 % shed."""
        if occupancy[-1] > SHED_LIMIT:
            return False
        return first_byte(self).within(occupancy, self.slo_ms) >= SLO_SHARE

    def p95_ms(self, occupancy: Vector) -> float:
        """p95 of the first byte over the admitted."""
        return first_byte(self).quantile_ms(occupancy, SLO_SHARE)


@lru_cache(maxsize=256)
def _rates(instance: Instance) -> tuple[float, ...]:
    return instance.ladder.rates_rps(instance.q_max)


@lru_cache(maxsize=256)
def first_byte(instance: Instance) -> FirstByte:
    """First-byte times of this instance."""
    return FirstByte.of(instance.ladder, instance.q_max)


@lru_cache(maxsize=4096)
def mean_occupancy(instance: Instance, arrival_rps: float) -> float:
    """Mean number in the system at an arrival rate."""
    return instance.chain(arrival_rps).mean_occupancy


@lru_cache(maxsize=4096)
def window_max(instance: Instance, arrival_rps: float) -> float:
    """Expected 10 s Maximum of the occupancy at an arrival rate."""
    return expected_window_max(instance.chain(arrival_rps))


@lru_cache(maxsize=256)
def steady_limit_rps(instance: Instance) -> float | None:
    """Largest open-arrival rate one instance carries in steady state; None when it carries none."""
    return largest_load(lambda load: instance.meets_slo(instance.chain(load).occupancy_steady), instance.capacity_rps)


def largest_load(carries: Callable[[float], bool], capacity_rps: float, surge_ratio: float = 1.0) -> float | None:
    """Largest rate that ``carries`` accepts; monotone, and near capacity / surge_ratio in practice."""
    tolerance = LOAD_TOLERANCE * capacity_rps
    low, high = 0.5 * capacity_rps / surge_ratio, 1.1 * capacity_rps / surge_ratio
    if not carries(low):
        low, high = tolerance, low
        if not carries(low):
            return None
    elif carries(high):
        return high
    while high - low > tolerance:
        middle = (low + high) / 2
        if carries(middle):
            low = middle
        else:
            high = middle
    return low
