"""Choose the kernel: exact wherever it is affordable, batched for large fleets."""

from __future__ import annotations

from typing import Literal

import numpy as np

from planner.simulate.batched import STEP_SHARE, BatchedKernel
from planner.simulate.exact import ExactKernel
from planner.simulate.interval import Kernel, TtfabBins
from planner.simulate.routing import Routing
from planner.simulate.service import ServiceModel

KernelChoice = Literal["auto", "exact", "batched"]

# Measured microseconds on one core: an event and its search over instances; a step and its vectors.
_EVENT_US, _EVENT_US_PER_INSTANCE = 0.8, 0.027
_STEP_US, _STEP_US_PER_INSTANCE = 16.0, 0.05
# Below this many seconds of expected work nothing is gained by approximating.
_AFFORDABLE_S = 15.0


def choose(service: ServiceModel, *, arrivals: float, span_s: float, instances: int, bound: int | None) -> KernelChoice:
    """Exact unless it would take long and batched would be quicker."""
    if bound is None:
        return "exact"
    exact_s = arrivals * (_EVENT_US + _EVENT_US_PER_INSTANCE * instances) / 1e6
    steps = span_s * service.rates_rps[1] / STEP_SHARE
    batched_s = steps * (_STEP_US + _STEP_US_PER_INSTANCE * instances) / 1e6
    return "exact" if exact_s <= max(_AFFORDABLE_S, batched_s) else "batched"


def build(
    choice: KernelChoice,
    service: ServiceModel,
    *,
    instances: int,
    bound: int | None,
    routing: Routing,
    bins: TtfabBins,
    rng: np.random.Generator,
) -> Kernel:
    """A kernel of the chosen kind; an unbounded queue is always exact."""
    if choice == "batched" and bound is not None:
        return BatchedKernel(service, instances=instances, bound=bound, routing=routing, bins=bins, rng=rng)
    return ExactKernel(service, instances=instances, bound=bound, routing=routing, bins=bins, rng=rng)
