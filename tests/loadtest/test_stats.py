"""Quantiles and their bounds against scipy, published tables and coverage by simulation."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from scipy import stats as reference

from loadtest.stats import lower_rank, nearest_rank, summarise, upper_rank


@pytest.mark.parametrize(
    ("values", "q", "expected"),
    [
        ([1.0], 0.5, 1.0),
        ([1.0, 2.0], 0.5, 1.0),
        ([1.0, 2.0, 3.0], 0.5, 2.0),
        (list(map(float, range(1, 101))), 0.95, 95.0),
        (list(map(float, range(1, 21))), 0.95, 19.0),
        (list(map(float, range(1, 60))), 0.95, 57.0),
        ([15.0, 20.0, 35.0, 40.0, 50.0], 0.05, 15.0),
        ([15.0, 20.0, 35.0, 40.0, 50.0], 0.3, 20.0),
        ([15.0, 20.0, 35.0, 40.0, 50.0], 0.4, 20.0),
        ([15.0, 20.0, 35.0, 40.0, 50.0], 1.0, 50.0),
    ],
)
def test_nearest_rank(values: list[float], q: float, expected: float) -> None:
    assert nearest_rank(values, q) == expected


def test_nearest_rank_of_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no values"):
        nearest_rank([], 0.5)


def test_upper_bound_needs_59_values() -> None:
    assert upper_rank(58, 0.95) is None
    assert upper_rank(59, 0.95) == 59


@pytest.mark.parametrize("n", [59, 60, 93, 124, 500, 1074, 20_000])
def test_ranks_are_the_tightest_that_scipy_allows(n: int) -> None:
    upper, lower = upper_rank(n, 0.95), lower_rank(n, 0.95)
    assert upper is not None
    assert lower is not None
    assert reference.binom.cdf(upper - 1, n, 0.95) >= 0.95 > reference.binom.cdf(upper - 2, n, 0.95)
    assert reference.binom.sf(lower - 1, n, 0.95) >= 0.95 > reference.binom.sf(lower, n, 0.95)


def test_two_values_bound_from_below_but_not_from_above() -> None:
    assert lower_rank(2, 0.95) == 1
    assert upper_rank(2, 0.95) is None


def test_coverage_on_a_skewed_distribution() -> None:
    generator = np.random.default_rng(7)
    truth = float(reference.lognorm.ppf(0.95, 1.0))
    samples = np.sort(generator.lognormal(size=(4000, 200)), axis=1)
    upper, lower = upper_rank(200, 0.95), lower_rank(200, 0.95)
    assert upper is not None
    assert lower is not None
    assert (samples[:, upper - 1] >= truth).mean() >= 0.945
    assert (samples[:, lower - 1] <= truth).mean() >= 0.945


def test_summary_orders_and_keeps_misses_out_of_the_mean() -> None:
    values = [float(v) for v in range(1, 101)]
    random.Random(1).shuffle(values)
    summary = summarise([*values, math.inf])
    assert summary is not None
    assert (summary.n, summary.mean, summary.p50, summary.p95, summary.p99) == (101, 50.5, 50.0, 95.0, 99.0)
    assert summary.p95_upper == 100.0


def test_bound_that_falls_on_a_miss_is_missing() -> None:
    summary = summarise([1.0] * 50 + [math.inf] * 50)
    assert summary is not None
    assert summary.p95_upper is None
    assert summary.p95_lower is None


@pytest.mark.parametrize("values", [[], [math.inf]])
def test_no_answers_no_summary(values: list[float]) -> None:
    assert summarise(values) is None
