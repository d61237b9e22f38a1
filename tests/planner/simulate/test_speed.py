"""Long simulations: which kernel they take, that nothing is lost, and memory. What they cost: `make bench-planner`."""

from __future__ import annotations

import resource
from dataclasses import replace

import pytest

from planner.simulate import policies, profiles
from planner.simulate.arrivals import Arrivals
from planner.simulate.fleet import FleetSpec, Run, simulate
from planner.simulate.service import ServiceModel

BIG = FleetSpec(
    service=ServiceModel((0.0, 16.08, 16.5, 17.0, 17.4, 17.9), 0.054),
    slo_s=3.0,
    bound=50,
    t_total_s=260,
    start_instances=290,
    min_instances=280,
    max_instances=310,
)
SMALL = replace(BIG, start_instances=4, min_instances=3)


def run(spec: FleetSpec, rate_rps: float, duration_s: float) -> Run:
    policy = policies.concurrency(37.5, None, out_cooldown_s=30, in_cooldown_s=960)
    return simulate(spec, policy, Arrivals(profiles.constant(rate_rps, duration_s), 1))


def test_a_large_fleet_batched_serves_every_request() -> None:
    found = run(replace(BIG, kernel="batched"), 5000, 60)
    assert found.total.offered == pytest.approx(300_000, rel=0.01)
    assert found.total.shed == 0


@pytest.mark.parametrize(
    ("spec", "rate_rps", "duration_s", "kernel"),
    [
        pytest.param(BIG, 5000, 3600, "batched", id="hour", marks=pytest.mark.slow),
        pytest.param(SMALL, 50, 1200, "exact", id="a third of an hour"),
        pytest.param(SMALL, 50, 86_400, "exact", id="day", marks=pytest.mark.slow),
    ],
)
def test_kernel_and_memory(spec: FleetSpec, rate_rps: float, duration_s: float, kernel: str) -> None:
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = run(spec, rate_rps, duration_s)
    assert found.kernel == kernel
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 1024**2
