"""Several policies on the same arrivals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from planner.artifacts.simulation import PolicyRun
from planner.simulate.arrivals import Arrivals
from planner.simulate.contenders import Contender
from planner.simulate.fleet import FleetSpec, simulate
from planner.simulate.profiles import Profile
from planner.simulate.scoring import score


def compare(
    contenders: Sequence[Contender],
    profile: Profile,
    spec: FleetSpec,
    usd_per_h: float | None,
    progress: Callable[[str], None] = lambda _: None,
) -> list[PolicyRun]:
    """Run each contender from its own starting fleet; arrivals are the same to the request."""
    arrivals = Arrivals(profile, spec.seed)
    runs = []
    for contender in contenders:
        progress(contender.name)
        low, high = contender.limits or (spec.min_instances, spec.max_instances)
        mine = replace(spec, start_instances=contender.start_instances, min_instances=low, max_instances=high)
        run = simulate(mine, contender.make(), arrivals)
        runs.append(score(contender.name, contender.setting, mine, profile, run, usd_per_h))
    return runs
