"""The control loop: detection, T_total, blocked updates, quota, floor, billing."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest

from planner.simulate import policies, profiles
from planner.simulate.arrivals import Arrivals
from planner.simulate.fleet import Activity, FleetSpec, Run, simulate
from planner.simulate.policies import Policy
from planner.simulate.profiles import Profile
from planner.simulate.scoring import flaps, score
from planner.simulate.service import ServiceModel
from planner.simulate.utilisation import stated

SERVICE = ServiceModel((0.0, 18.0), 0.05)
SPEC = FleetSpec(
    service=SERVICE, slo_s=3.0, bound=50, t_total_s=260.0, start_instances=1, min_instances=1, max_instances=8, seed=2
)
OVERLOAD = profiles.surge(5, 5.0, hold_s=100, surge_s=500, after_s=400)


def headroom() -> Policy:
    return policies.concurrency(37.5, 25, out_cooldown_s=30, in_cooldown_s=960)


def run(spec: FleetSpec = SPEC, profile: Profile = OVERLOAD, policy: Policy | None = None) -> Run:
    return simulate(spec, policy or headroom(), Arrivals(profile, spec.seed))


def first_in_service(found: Run, count: int) -> float:
    return next(point.interval.end_s for point in found.points if point.in_service >= count)


def test_scale_out_takes_detection_plus_t_total() -> None:
    found = run()
    out = found.activities[0]
    # The queue passes 37.5 about 5 s into the surge; three periods, one more until the sample is published.
    assert 130 <= out.at_s <= 150
    assert out.after == 2  # ceil(1 x 50 / 37.5)
    assert first_in_service(found, 2) == pytest.approx(out.at_s + 260, abs=10)


@pytest.mark.parametrize("delay_s", [0, 10, 60])
def test_late_metrics_delay_detection_by_as_much(delay_s: int) -> None:
    on_time, late = (run(replace(SPEC, publish_delay_s=seconds)).activities[0].at_s for seconds in (0, delay_s))
    assert late - on_time == delay_s


def test_a_new_count_is_refused_while_the_endpoint_updates() -> None:
    blocked, free = run(), run(replace(SPEC, updates_overlap=True))
    starts = [activity.at_s for activity in blocked.activities if activity.after > activity.before]
    assert all(later - earlier >= 260 for earlier, later in pairwise(starts))
    assert free.activities[1].at_s - free.activities[0].at_s < 260


def test_quota_refuses_and_the_fleet_stays() -> None:
    found = run(replace(SPEC, quota=1))
    assert found.activities
    assert {activity.outcome for activity in found.activities} == {"quota"}
    assert max(point.in_service for point in found.points) == 1


def test_max_instances_caps() -> None:
    assert max(point.in_service for point in run(replace(SPEC, max_instances=2, t_total_s=30)).points) == 2


def test_an_idle_fleet_scales_in_to_its_floor_with_zeros_or_gaps() -> None:
    quiet = profiles.constant(0.0, 4000)
    for idle in ("zero", "missing"):
        found = run(replace(SPEC, start_instances=4, min_instances=2, idle_metric=idle), quiet)  # type: ignore[arg-type]
        assert found.points[-1].in_service == 2
        assert found.total.offered == 0


def test_billing_starts_when_an_instance_is_asked_for() -> None:
    found = run()
    expected = sum(point.desired * 10 for point in found.points)
    assert found.billed_instance_s == pytest.approx(expected)
    assert found.billed_instance_s > found.total.instance_s


def test_a_saturated_gpu_below_its_target_never_scales() -> None:
    spec = replace(SPEC, gpu=stated(40, SERVICE.capacity_rps))
    assert run(spec, policy=policies.gpu_utilisation(70, out_cooldown_s=30, in_cooldown_s=300)).activities == ()


def test_cpu_that_reaches_its_target_scales() -> None:
    spec = replace(SPEC, cpu=stated(100, SERVICE.capacity_rps))
    found = run(spec, policy=policies.cpu_utilisation(70, out_cooldown_s=30, in_cooldown_s=300))
    assert found.activities[0].at_s == pytest.approx(100 + 3 * 60 + 10, abs=60)


def test_the_same_seed_gives_the_same_run() -> None:
    first, again = run(), run()
    assert first.total.shed == again.total.shed
    assert first.activities == again.activities


def test_both_kernels_tell_the_same_story() -> None:
    exact, batched = (run(replace(SPEC, kernel=kind)) for kind in ("exact", "batched"))  # type: ignore[arg-type]
    assert exact.total.offered == batched.total.offered
    assert exact.total.shed / exact.total.offered == pytest.approx(batched.total.shed / batched.total.offered, abs=0.01)
    assert exact.activities[0].at_s == pytest.approx(batched.activities[0].at_s, abs=10)


def test_score_of_an_overloaded_fixed_instance() -> None:
    """18 of 25 rps are served in the surge: 28 % shed, less what the first 50 slots take."""
    found = run(policy=policies.Fixed())
    scored = score("fixed", "1", SPEC, OVERLOAD, found, usd_per_h=2.0).score
    assert scored.surge_shed_fraction == pytest.approx(1 - 18 / 25 - 50 / (25 * 500), abs=0.01)
    assert scored.usd == pytest.approx(2 * 1000 / 3600)
    assert scored.detection_s is None
    assert scored.slo_attainment == pytest.approx(1 - scored.shed_fraction, abs=0.01)


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([(0, 3, 4), (600, 4, 3), (900, 3, 4)], 1),
        ([(0, 3, 4), (600, 4, 3), (6000, 3, 4)], 0),
        ([(0, 3, 4), (400, 4, 6)], 0),
        ([], 0),
    ],
)
def test_flaps(counts: list[tuple[float, int, int]], expected: int) -> None:
    assert flaps([Activity(*change) for change in counts]) == expected


def test_an_alarm_that_watched_a_suspended_hold_acts_in_the_first_period_after_it() -> None:
    """Over the target all along: three samples are there when scaling is released, or have to come first."""
    calm = replace(SPEC, scaling_from_s=120.0)
    released = {}
    for name, spec in (("watched", replace(calm, watching_from_s=0.0)), ("blind", calm)):
        policy = policies.concurrency(0.5, None, out_cooldown_s=30, in_cooldown_s=300)
        run = simulate(spec, policy, Arrivals(profiles.constant(15.0, 400), 1))
        released[name] = run.activities[0].at_s
    assert released["watched"] == 130
    assert 140 <= released["blind"] <= 160
