"""How many instances carry a rate: by what one instance serves, or by the published formula."""

from __future__ import annotations

import math
from dataclasses import dataclass

from planner.instance import Instance, steady_limit_rps


@dataclass(frozen=True)
class Served:
    """A fleet at a rate, arrivals split evenly and Poisson at each instance."""

    instances: int
    offered_rps: float
    served_rps: float
    shed_fraction: float
    p95_ms: float
    meets_slo: bool


def per_instance_limit_rps(instance: Instance, trigger_load_rps: float) -> float | None:
    """min(load that meets the SLO in steady state, load at the scale-out trigger).

    Above the first requests are late or shed; above the second the policy asks for more than max_instances.
    """
    carried = steady_limit_rps(instance)
    return None if carried is None else min(carried, trigger_load_rps)


def throughput_instances(rate_rps: float, limit_rps: float) -> int:
    """ceil(lambda / limit)."""
    return max(1, math.ceil(round(rate_rps / limit_rps, 9)))


def serve(instance: Instance, instances: int, rate_rps: float) -> Served:
    """What ``instances`` do with ``rate_rps``; LEAST_OUTSTANDING routing splits no worse than evenly at random."""
    chain = instance.chain(rate_rps / instances)
    occupancy = chain.occupancy_steady
    shed = max(float(occupancy[-1]), 0.0)
    return Served(
        instances=instances,
        offered_rps=rate_rps,
        served_rps=rate_rps * (1 - shed),
        shed_fraction=shed,
        p95_ms=instance.p95_ms(occupancy),
        meets_slo=instance.meets_slo(occupancy),
    )
