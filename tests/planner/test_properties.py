"""Monotone in surge, T_total and SLO, whatever the ladder."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner import rule
from planner.instance import Instance, steady_limit_rps
from planner.ladder import Ladder, Step
from planner.measured import Measured
from planner.surge import drain_load_rps, surge
from tests.planner.conftest import plan_of

SMALL = settings(max_examples=15, deadline=None)


def ladder_of(service_s: float, lanes: int, scv: float) -> Ladder:
    """A server with ``lanes`` slots of a fixed mean service time."""
    steps = tuple(
        Step(n, min(n, lanes) / service_s, 1e3 * service_s * max(1, n / lanes), 1.1e3 * service_s * max(1, n / lanes))
        for n in (1, 2, 4, 8, 16, 32)
    )
    return Ladder(steps=steps, service_mean_s=service_s, service_scv=scv)


LADDERS = st.builds(ladder_of, st.floats(0.02, 0.5), st.sampled_from([1, 2, 4]), st.sampled_from([0.01, 0.3, 1.0]))
SURGES = st.floats(1.05, 1.45)
DELAYS = st.floats(20, 900)


@SMALL
@given(LADDERS, SURGES, SURGES, DELAYS)
def test_a_bigger_surge_sheds_more_and_drains_lower(ladder: Ladder, a: float, b: float, delay: float) -> None:
    low, high = sorted((a, b))
    instance = Instance(ladder, 16, 1e6)
    load = 0.8 * instance.capacity_rps
    assert (
        surge(instance, load, 4.0, low, delay).shed_fraction
        <= surge(instance, load, 4.0, high, delay).shed_fraction + 1e-9
    )
    first, second = (drain_load_rps(instance, ratio, delay) for ratio in (low, high))
    assert first is not None
    assert second is not None
    assert second <= first + 3e-4 * instance.capacity_rps


@SMALL
@given(LADDERS, SURGES, DELAYS, DELAYS)
def test_a_longer_delay_sheds_more_and_drains_lower(ladder: Ladder, ratio: float, a: float, b: float) -> None:
    short, long = sorted((a, b))
    instance = Instance(ladder, 16, 1e6)
    load = 0.9 * instance.capacity_rps
    # From empty the chain only fills, so the average share shed only grows.
    assert surge(instance, load, 0.0, ratio, short).shed_fraction <= (
        surge(instance, load, 0.0, ratio, long).shed_fraction + 1e-6
    )
    first, second = (drain_load_rps(instance, ratio, delay) for delay in (short, long))
    assert first is not None
    assert second is not None
    assert second <= first + 3e-3 * instance.capacity_rps
    assert rule.scale_in_cooldown_s(short) <= rule.scale_in_cooldown_s(long)
    assert rule.scale_out_cooldown_s(short) <= rule.scale_out_cooldown_s(long)


@SMALL
@given(LADDERS, st.floats(1.2, 40), st.floats(1.2, 40), SURGES, DELAYS)
def test_a_longer_slo_carries_more(ladder: Ladder, a: float, b: float, ratio: float, delay: float) -> None:
    tight, loose = (1e3 * ladder.service_mean_s * factor for factor in sorted((a, b)))
    first, second = Instance(ladder, 16, tight), Instance(ladder, 16, loose)
    assert (steady_limit_rps(first) or 0) <= (steady_limit_rps(second) or 0) + 1e-9
    load = 0.8 * first.capacity_rps
    assert surge(first, load, 3.0, ratio, delay).slo_attainment <= (
        surge(second, load, 3.0, ratio, delay).slo_attainment + 1e-9
    )
    assert rule.w_max_s(tight, 0.01) <= rule.w_max_s(loose, 0.01)


@SMALL
@given(SURGES, SURGES)
def test_plan_thresholds_fall_as_the_surge_grows(article: Measured, a: float, b: float) -> None:
    small, big = (plan_of(article, surge_ratio=ratio) for ratio in sorted((a, b)))
    assert big.derived.c_scale_max <= small.derived.c_scale_max
    assert big.derived.c_scale_min <= small.derived.c_scale_min
    assert big.derived.max_instances >= small.derived.max_instances
    assert big.surge.shed_fraction >= small.surge.shed_fraction - 1e-9


@SMALL
@given(DELAYS, DELAYS)
def test_plan_gets_no_better_as_t_total_grows(article: Measured, a: float, b: float) -> None:
    short, long = (plan_of(replace(article, t_total_s=delay), rule="drain") for delay in sorted((a, b)))
    # The searches stop within 2e-4 of capacity.
    assert long.derived.utilization_at_trigger <= short.derived.utilization_at_trigger + 3e-4
    assert long.derived.scale_in_cooldown_s >= short.derived.scale_in_cooldown_s


@pytest.mark.parametrize(("ratio", "expected"), [(1.1, 9), (1.2, 4), (1.25, 3), (1.4, 2)])
def test_min_safe_instances(ratio: float, expected: int) -> None:
    h = ratio - 1
    r = (1 - h) / (1 - 2 * h)
    assert rule.min_safe_instances(rule.threshold_ratio(ratio)) == expected
    # What it is for: at n = expected the rest stays at or under C_max after one of n leaves at C_min.
    assert expected / (expected - 1) <= r + 1e-9


@pytest.mark.parametrize(
    ("t_total_s", "out_s", "in_s"),
    [(5, 10, 300), (30, 15, 300), (60, 30, 300), (100, 30, 300), (103.4, 30, 310), (320.248, 30, 960)],
)
def test_cooldowns(t_total_s: float, out_s: int, in_s: int) -> None:
    assert (rule.scale_out_cooldown_s(t_total_s), rule.scale_in_cooldown_s(t_total_s)) == (out_s, in_s)
