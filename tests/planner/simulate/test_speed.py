"""Cost: an hour at 5 000 rps over 300 instances, a day at 50 rps, each under a minute and 1 GiB; linear in time."""

from __future__ import annotations

import resource
import time
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


def timed(spec: FleetSpec, rate_rps: float, duration_s: float) -> tuple[Run, float]:
    """CPU seconds: other load on the machine does not count."""
    policy = policies.concurrency(37.5, None, out_cooldown_s=30, in_cooldown_s=960)
    begun_s = time.process_time()
    found = simulate(spec, policy, Arrivals(profiles.constant(rate_rps, duration_s), 1))
    return found, time.process_time() - begun_s


def test_an_hour_at_five_thousand_rps_by_its_sixtieth() -> None:
    batched = replace(BIG, kernel="batched")
    timed(batched, 5000, 20)
    _, short_s = timed(batched, 5000, 60)
    found, long_s = timed(batched, 5000, 180)
    assert found.total.offered == pytest.approx(900_000, rel=0.01)
    assert found.total.shed == 0
    assert long_s < 60 * 180 / 3600
    assert long_s / short_s == pytest.approx(3, rel=0.5)


def test_a_day_at_fifty_rps_by_its_fiftieth() -> None:
    timed(SMALL, 50, 100)
    found, took_s = timed(SMALL, 50, 1728)
    assert found.kernel == "exact"
    assert took_s < 60 * 1728 / 86_400


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "rate_rps", "duration_s", "kernel"),
    [pytest.param(BIG, 5000, 3600, "batched", id="hour"), pytest.param(SMALL, 50, 86_400, "exact", id="day")],
)
def test_whole_runs(spec: FleetSpec, rate_rps: float, duration_s: float, kernel: str) -> None:
    begun_s = time.monotonic()
    found, _ = timed(spec, rate_rps, duration_s)
    assert time.monotonic() - begun_s < 60
    assert found.kernel == kernel
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1024**2  # KiB
