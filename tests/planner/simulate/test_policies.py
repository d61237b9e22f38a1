"""Policies as documented: timing, steps, cooldowns, missing data."""

from __future__ import annotations

import pytest

from planner.simulate import policies
from planner.simulate.policies import FleetView, Policy, Sample, Scheduled, ScheduledAction

Reading = dict[str, float | None]


def drive(policy: Policy, readings: list[Reading], start: int = 4, low: int = 1) -> list[tuple[float, int]]:
    """Feed one sample every 10 s and apply what it asks for at once; returns (time, new count)."""
    desired, changes = start, []
    for number, reading in enumerate(readings, 1):
        empty = {"concurrency_max": None, "invocations_per_instance": None, "gpu_pct": None, "cpu_pct": None}
        sample = Sample(end_s=10.0 * number, **{**empty, **reading})
        wanted = policy.observe(sample, FleetView(10.0 * number, desired, desired))
        if wanted is not None and max(wanted, low) != desired:
            policy.applied(desired, max(wanted, low), 10.0 * number)
            desired = max(wanted, low)
            changes.append((10.0 * number, desired))
    return changes


def at(value: float | None, count: int) -> list[Reading]:
    return [{"concurrency_max": value}] * count


def test_high_resolution_scales_out_in_proportion_after_thirty_seconds() -> None:
    policy = policies.concurrency(37.5, 25, out_cooldown_s=30, in_cooldown_s=960)
    assert drive(policy, at(50, 3)) == [(30.0, 6)]  # ceil(4 x 50 / 37.5)


def test_the_scale_out_cooldown_spaces_steps() -> None:
    policy = policies.concurrency(40, None, out_cooldown_s=30, in_cooldown_s=960)
    assert [when for when, _ in drive(policy, at(44, 9))] == [30.0, 60.0, 90.0]


def test_scale_in_takes_one_instance_per_cooldown_and_stops_at_the_floor() -> None:
    policy = policies.concurrency(37.5, 25, out_cooldown_s=30, in_cooldown_s=300)
    assert drive(policy, at(3, 120), start=4, low=2) == [(180.0, 3), (480.0, 2)]


def test_an_idle_fleet_without_data_still_scales_in() -> None:
    policy = policies.concurrency(37.5, 25, out_cooldown_s=30, in_cooldown_s=300)
    assert drive(policy, at(None, 18), start=2) == [(180.0, 1)]


def test_between_the_thresholds_nothing_happens() -> None:
    policy = policies.concurrency(37.5, 25, out_cooldown_s=30, in_cooldown_s=300)
    assert drive(policy, at(30, 120)) == []


def test_standard_metrics_need_three_minutes_out_and_fifteen_in() -> None:
    policy = policies.requests_per_instance(600, out_cooldown_s=30, in_cooldown_s=300)
    busy = [{"invocations_per_instance": 150.0}] * 18  # 900 a minute
    assert drive(policy, busy) == [(180.0, 6)]
    policy = policies.requests_per_instance(600, out_cooldown_s=30, in_cooldown_s=300)
    quiet = [{"invocations_per_instance": 50.0}] * 90  # 300 a minute
    assert drive(policy, quiet) == [(900.0, 2)]


def test_scale_in_of_target_tracking_starts_ten_per_cent_below() -> None:
    policy = policies.cpu_utilisation(70, out_cooldown_s=30, in_cooldown_s=300)
    assert drive(policy, [{"cpu_pct": 64.0}] * 200) == []
    assert drive(policy, [{"cpu_pct": 40.0}] * 200)


def test_target_tracking_without_data_does_nothing() -> None:
    policy = policies.gpu_utilisation(70, out_cooldown_s=30, in_cooldown_s=300)
    assert drive(policy, [{}] * 200) == []


@pytest.mark.parametrize(("blocked_until_s", "when_s"), [(0, 100.0), (130, 140.0)])
def test_a_scheduled_action_waits_for_the_endpoint(blocked_until_s: float, when_s: float) -> None:
    policy = Scheduled([ScheduledAction(95.0, 7)])
    for number in range(1, 30):
        now_s = 10.0 * number
        sample = Sample(now_s, None, None, None, None)
        wanted = policy.observe(sample, FleetView(now_s, 4, 4))
        if wanted is not None and now_s > blocked_until_s:
            assert (wanted, now_s) == (7, when_s)
            policy.applied(4, 7, now_s)
            return
    pytest.fail("the action never ran")
