"""Statistics by period, resolution and retention."""

from __future__ import annotations

import pytest

from rehearsal.cloudwatch.store import Datapoint, MetricStore, metric_id

NOW = 1_800_000_000.0
"""A whole minute."""
SERIES = metric_id("AWS/SageMaker", "M", [{"Name": "b", "Value": "2"}, {"Name": "a", "Value": "1"}])


@pytest.fixture
def store() -> MetricStore:
    return MetricStore(clock=lambda: NOW)


def put(store: MetricStore, at_s: float, *values: float, high: bool = True) -> None:
    counts: dict[float, float] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    store.put(SERIES, Datapoint.of(at_s, counts, high_resolution=high))


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [
        ("Minimum", 1),
        ("Maximum", 10),
        ("Sum", 55),
        ("Average", 5.5),
        ("SampleCount", 10),
        ("p50", 5),
        ("p90", 9),
        ("p95", 10),
        ("p100", 10),
    ],
)
def test_statistics(store: MetricStore, statistic: str, expected: float) -> None:
    put(store, NOW - 30, *range(1, 8))
    put(store, NOW - 20, 8, 9, 10)
    assert store.statistic(SERIES, statistic, 60, NOW - 60, NOW) == {NOW - 60: expected}


def test_the_order_of_dimensions_does_not_matter_but_each_of_them_does(store: MetricStore) -> None:
    put(store, NOW - 5, 1)
    same = metric_id("AWS/SageMaker", "M", [{"Name": "a", "Value": "1"}, {"Name": "b", "Value": "2"}])
    fewer = metric_id("AWS/SageMaker", "M", [{"Name": "a", "Value": "1"}])
    elsewhere = metric_id("Other", "M", [{"Name": "a", "Value": "1"}, {"Name": "b", "Value": "2"}])
    assert store.statistic(same, "Sum", 10, NOW - 60, NOW)
    assert not store.statistic(fewer, "Sum", 10, NOW - 60, NOW)
    assert not store.statistic(elsewhere, "Sum", 10, NOW - 60, NOW)


def test_periods_are_aligned_and_gaps_are_gaps(store: MetricStore) -> None:
    put(store, NOW - 50, 1)
    put(store, NOW - 41, 2)
    put(store, NOW - 20, 3)
    assert store.statistic(SERIES, "Maximum", 10, NOW - 55, NOW) == {NOW - 50: 2, NOW - 20: 3}


def test_standard_resolution_is_kept_by_the_minute(store: MetricStore) -> None:
    put(store, NOW - 25, 7, high=False)
    assert store.statistic(SERIES, "Sum", 10, NOW - 60, NOW) == {NOW - 60: 7}


def test_high_resolution_is_gone_after_three_hours_without_an_error(store: MetricStore) -> None:
    put(store, NOW - 3 * 3600 - 60, 4)
    assert store.statistic(SERIES, "Sum", 10, NOW - 4 * 3600, NOW) == {}
    assert store.statistic(SERIES, "Sum", 60, NOW - 4 * 3600, NOW) == {NOW - 3 * 3600 - 60: 4}


def test_a_datapoint_can_be_late() -> None:
    clock = [NOW]
    store = MetricStore(clock=lambda: clock[0])
    store.put(SERIES, Datapoint.of(NOW - 10, {1.0: 1.0}, high_resolution=True, visible_from_s=NOW + 30))
    assert store.statistic(SERIES, "Sum", 10, NOW - 60, NOW) == {}
    clock[0] = NOW + 30
    assert store.statistic(SERIES, "Sum", 10, NOW - 60, NOW) == {NOW - 10: 1}


def test_a_statistic_set_has_no_percentiles(store: MetricStore) -> None:
    store.put(SERIES, Datapoint(NOW - 10, low=1, high=5, total=30, samples=10, high_resolution=True))
    assert store.statistic(SERIES, "p50", 10, NOW - 60, NOW) == {}
    assert store.statistic(SERIES, "Average", 10, NOW - 60, NOW) == {NOW - 10: 3}
