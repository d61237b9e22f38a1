"""The drift test speaks up for trends and shifts and leaves simulated stationary loops alone."""

from __future__ import annotations

import random

import pytest
from scipy import stats as reference

from loadtest.steadiness import block_medians, examine, separable_splits, theil_sen, trend_p


def closed_loop(seed: int, concurrency: int, count: int, cv: float) -> list[float]:
    """Latencies of a FIFO server with N users that send again at once: what a ladder really sees."""
    generator = random.Random(seed)
    shape = 1 / cv**2
    finished = [0.0] * concurrency
    latencies: list[float] = []
    clock = 0.0
    for index in range(count + 3 * concurrency):
        sent = finished[index % concurrency]
        clock = max(clock, sent) + 56 * generator.gammavariate(shape, 1 / shape)
        finished[index % concurrency] = clock
        latencies.append(clock - sent)
    return latencies[3 * concurrency :]


@pytest.mark.parametrize(
    ("concurrency", "count", "cv"),
    [(1, 965, 0.05), (8, 120, 0.5), (5, 1074, 0.3), (60, 1074, 0.05), (60, 1074, 0.5), (20, 400, 1.0), (1, 60, 1.0)],
)
def test_a_stationary_loop_is_not_accused(concurrency: int, count: int, cv: float) -> None:
    runs = [examine(closed_loop(seed, concurrency, count, cv), concurrency) for seed in range(150)]
    assert sum(run.steady is False for run in runs) <= 6


@pytest.mark.parametrize("concurrency", [1, 5, 20, 50])
@pytest.mark.parametrize("factor", [1.3, 0.7])
def test_a_level_shift_is_found_and_named(concurrency: int, factor: float) -> None:
    values = closed_loop(3, concurrency, 1074, 0.1)
    shifted = values[:600] + [value * factor for value in values[600:]]
    found = examine(shifted, concurrency)
    assert found.steady is False
    assert "shift" in found.reason or "drift" in found.reason


@pytest.mark.parametrize("concurrency", [1, 8, 40])
def test_a_trend_is_found_and_named(concurrency: int) -> None:
    values = [v * (1 + 0.4 * i / 1074) for i, v in enumerate(closed_loop(5, concurrency, 1074, 0.1))]
    found = examine(values, concurrency)
    assert found.steady is False
    assert found.drift is not None
    assert found.drift > 0


def test_a_change_too_small_to_matter_is_left_alone() -> None:
    assert examine([100.0 + 0.001 * i for i in range(1000)], 1).steady is True
    assert examine([20.0 + 0.009 * i for i in range(1000)], 1).steady is True


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 20])
def test_too_few_turns_of_the_loop_say_nothing(values: list[float]) -> None:
    assert examine(values, 10).steady is None


def test_drift_is_the_difference_of_the_halves() -> None:
    assert examine([10.0, 10.0, 13.0, 13.0], 1).drift == 3.0


def test_trend_p_agrees_with_kendalls_exact_test() -> None:
    generator = random.Random(2)
    for n in (6, 8, 11):
        for _ in range(20):
            values = [generator.random() for _ in range(n)]
            expected = reference.kendalltau(range(n), values, method="exact").pvalue
            assert trend_p(values) == pytest.approx(expected)


def test_theil_sen_ignores_one_outlier() -> None:
    assert theil_sen([0.0, 1.0, 2.0, 99.0, 4.0, 5.0]) == 1.0


def test_blocks_hold_two_turns_of_the_loop() -> None:
    assert block_medians([float(i) for i in range(105)], 25) == [29.5, 79.5]


@pytest.mark.parametrize(("blocks", "expected"), [(6, ()), (8, ()), (10, (5, 4)), (12, (6, 5, 7, 4, 8))])
def test_splits_stay_inside_the_false_alarm_budget(blocks: int, expected: tuple[int, ...]) -> None:
    assert separable_splits(blocks) == expected
