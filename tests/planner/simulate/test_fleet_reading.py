"""The fleet's reading against an event-by-event count and against exact chains, and the thresholds chosen from it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from planner.artifacts.qmax import Qmax
from planner.fleet_fit import FIRES, SURE, fires_from_rps, fit, flaps_below, scales_in_from_rps, settled
from planner.fleet_reading import Server, level, reached, reading
from planner.queueing import birth_death, erlang, expected_window_max
from planner.simulate.service import ServiceModel, from_ladder
from tests.planner.simulate.fleet_metric import window_maxima

ARTICLE = Path(__file__).parents[3] / "examples" / "article"
TRIGGER_RPS = 14.35


@pytest.fixture(scope="module")
def service() -> ServiceModel:
    return from_ladder([Qmax.load(ARTICLE / "qmax.json")])


@pytest.fixture(scope="module")
def server(service: ServiceModel) -> Server:
    return service.server(50)


@pytest.mark.parametrize("instances", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("load", [0.2, 0.54, 0.8, 0.9])
def test_reading_agrees_with_counting(service: ServiceModel, server: Server, instances: int, load: float) -> None:
    counted = np.mean(window_maxima(service, 50, instances, load * 17.9))
    assert reading(server, instances, load * 17.9) == pytest.approx(counted, rel=0.15)


def test_reading_of_many_agrees_with_counting(service: ServiceModel, server: Server) -> None:
    counted = np.mean(window_maxima(service, 50, 40, 0.54 * 17.9, periods=12))
    assert reading(server, 40, 0.54 * 17.9) == pytest.approx(counted, rel=0.1)


def test_lanes_agree_with_counting() -> None:
    """Four lanes an instance, exponential work: the corrections for regular service vanish."""
    service = ServiceModel((0.0, 5.0, 10.0, 15.0, 20.0), 1.0)
    for instances in (1, 4):
        counted = np.mean(window_maxima(service, 30, instances, 14.0, periods=120))
        assert reading(service.server(30), instances, 14.0) == pytest.approx(counted, rel=0.12)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8, 0.9])
@pytest.mark.parametrize("stages", [1.0, 4.0, math.inf])
def test_one_instance_agrees_with_the_exact_chain(load: float, stages: float) -> None:
    rates = (16.0,) * 40
    chain = birth_death(rates, 16 * load) if stages == 1 else erlang(rates, 16 * load, stages)
    assert reading(Server(rates, stages), 1, 16 * load) == pytest.approx(expected_window_max(chain), rel=0.08)


def test_more_instances_read_less_and_more_load_reads_more(server: Server) -> None:
    by_size = [reading(server, n, TRIGGER_RPS) for n in (1, 2, 3, 5, 8, 20, 50)]
    assert by_size == sorted(by_size, reverse=True)
    assert by_size[0] > 3 * by_size[-1]
    by_load = [reading(server, 5, load) for load in (2, 5, 9, 14, 17, 17.9, 19)]
    assert by_load == sorted(by_load)
    assert by_load[-1] > 49


def test_longer_windows_read_more(server: Server) -> None:
    assert reading(server, 5, TRIGGER_RPS, 60.0) > reading(server, 5, TRIGGER_RPS, 10.0)
    assert all(0 <= p <= 1 for p in reached(server, 5, TRIGGER_RPS, 60.0))


@pytest.mark.parametrize(("low", "high"), [(1, 1), (1, 2), (2, 4), (3, 7), (1, 60), (1, 349), (100, 349)])
def test_every_size_in_the_range_fires_at_the_trigger(server: Server, low: int, high: int) -> None:
    found = fit(server, TRIGGER_RPS, low, high)
    assert found.covered_to == high
    assert 0 < found.threshold < found.target < 50
    for instances in range(low, high + 1, max(1, (high - low) // 25)):
        at_trigger = reached(server, instances, TRIGGER_RPS)
        assert at_trigger[found.out_level - 1] >= FIRES
        if instances > low:
            less_rps = TRIGGER_RPS * (instances - 1) / instances
            assert reached(server, instances, less_rps, 180.0)[found.in_level] >= SURE


def test_counted_periods_fire_at_the_trigger_and_stay_above_the_scale_in_level(
    service: ServiceModel, server: Server
) -> None:
    found = fit(server, TRIGGER_RPS, 1, 7)
    for instances in (2, 5, 7):
        at_trigger = window_maxima(service, 50, instances, TRIGGER_RPS, periods=90)
        assert np.mean([peak > found.target for peak in at_trigger]) >= FIRES - 0.05
        less_rps = TRIGGER_RPS * (instances - 1) / instances
        minutes = window_maxima(service, 50, instances, less_rps, periods=60, period_s=60.0)
        quiet = [all(peak < found.threshold for peak in minutes[i : i + 3]) for i in range(58)]
        assert not any(quiet)


def test_a_range_no_target_serves_is_covered_in_part(server: Server) -> None:
    found = fit(server, TRIGGER_RPS, 1, 3000)
    assert found.covered_to is not None
    assert 349 < found.covered_to < 3000
    assert level(server, found.covered_to, TRIGGER_RPS, FIRES) == 2
    assert level(server, found.covered_to + 20, TRIGGER_RPS, FIRES) < 2


def test_nothing_is_covered_where_the_trigger_load_is_hardly_any(server: Server) -> None:
    found = fit(server, 0.05, 4, 9)
    assert found.covered_to is None
    assert found.target == 1.9


def test_one_slot_has_a_target_below_one() -> None:
    found = fit(Server((16.0,), 1.0), 0.16, 1, 70)
    assert (found.target, found.threshold) == (0.9, 0.5)


def test_small_fleets_fire_early_and_settle_above_what_the_load_needs(server: Server) -> None:
    found = fit(server, TRIGGER_RPS, 1, 349)
    loads = [fires_from_rps(server, n, found.out_level) for n in (1, 5, 20, 349)]
    assert loads == sorted(loads)
    assert loads[-1] <= TRIGGER_RPS
    kept = settled(server, 10.0, 1, 349, found.out_level)
    assert kept > 1
    assert 10.0 / kept <= fires_from_rps(server, kept, found.out_level)
    assert 10.0 / (kept - 1) > fires_from_rps(server, kept - 1, found.out_level)


def test_scale_in_is_left_alone_by_scale_out_from_a_small_size_on(server: Server) -> None:
    found = fit(server, TRIGGER_RPS, 1, 7)
    quiet_from = flaps_below(server, found, 1, 7)
    assert quiet_from < 7
    for instances in range(quiet_from + 1, 8):
        then_rps = scales_in_from_rps(server, instances, found.in_level) * instances / (instances - 1)
        assert then_rps < fires_from_rps(server, instances - 1, found.out_level)


def test_a_measurement_scales_the_levels(server: Server) -> None:
    found = fit(server, TRIGGER_RPS, 1, 4)
    assert (found.out_level, found.in_level) == (4, 2)
    assert (found.scaled(1.5, 50).out_level, found.scaled(1.5, 50).in_level) == (6, 3)
    low = found.scaled(0.1, 50)
    assert (low.out_level, low.in_level) == (2, 0)
