"""Profiles: rates, integrals, traces, and arrivals that follow them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from planner.errors import UsageError
from planner.simulate import profiles
from planner.simulate.arrivals import Arrivals


def test_surge_counts_what_its_parts_add_up_to() -> None:
    profile = profiles.surge(10, 1.25, hold_s=60, surge_s=100, after_s=40)
    assert profile.expected_arrivals(0, 200) == pytest.approx(10 * 60 + 12.5 * 100 + 10 * 40)
    assert profile.expected_arrivals(60, 160) == pytest.approx(1250)
    assert profile.surge_s == (60, 160)


def test_ramp_is_a_trapezoid() -> None:
    profile = profiles.ramp(2, 12, hold_s=100, ramp_s=50)
    assert profile.duration_s == 400
    assert profile.expected_arrivals(0, 400) == pytest.approx(2 * 200 + 12 * 100 + 7 * 100)
    assert profile.peak_between(100, 125) == pytest.approx(7)


def test_daily_starts_at_the_trough_and_averages_the_middle() -> None:
    profile = profiles.daily(10, 50)
    assert profile.rates_rps[0] == pytest.approx(10)
    assert profile.peak_rps == pytest.approx(50)
    assert profile.expected_arrivals(0, 86_400) == pytest.approx(30 * 86_400, rel=1e-3)


def test_rate_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("time_s,rate_rps\n100,5\n160,15\n220,15\n", encoding="utf-8")
    profile = profiles.from_csv(path)
    assert profile.name == "trace"
    assert profile.expected_arrivals(0, 120) == pytest.approx(10 * 60 + 15 * 60)


def test_arrival_trace_counts_per_second(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("arrival_s\n7.1\n7.5\n8.3\n9.9\n", encoding="utf-8")
    profile = profiles.from_csv(path)
    assert profile.expected_arrivals(0, 3) == pytest.approx(4)
    assert profile.expected_arrivals(0, 1) == pytest.approx(2)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,b\n1,2\n", "no header"),
        ("", "no header"),
        ("time_s,rate_rps\n0,1\n10,x\n", "not a number"),
        ("time_s,rate_rps\n0,1\n10,-4\n", "not negative"),
        ("time_s,rate_rps\n0,1\n10,nan\n", "finite"),
        ("time_s,rate_rps\n0,1\n", "two points"),
    ],
)
def test_broken_traces_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=complaint):
        profiles.from_csv(path)


def test_a_missing_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        profiles.from_csv(tmp_path / "none.csv")


def test_constant_arrivals_are_poisson() -> None:
    """Exponential gaps by Kolmogorov-Smirnov, across the joints of the stretches."""
    arrivals = Arrivals(profiles.constant(20, 2000), seed=4)
    times = np.concatenate([arrivals.between(10.0 * k, 10.0 * k + 10) for k in range(200)])
    assert stats.kstest(np.diff(times), "expon", args=(0, 1 / 20)).pvalue > 0.01
    counts = np.bincount((times // 1).astype(int))
    assert counts.var() / counts.mean() == pytest.approx(1, abs=0.15)


def test_arrivals_follow_a_changing_rate() -> None:
    profile = profiles.ramp(5, 45, hold_s=10, ramp_s=200)
    times = np.concatenate([Arrivals(profile, 1).between(10.0 * k, 10.0 * k + 10) for k in range(43)])
    scaled = profile.cumulative(times)
    assert stats.kstest(np.diff(scaled), "expon").pvalue > 0.01


def test_every_policy_sees_the_same_arrivals() -> None:
    profile = profiles.constant(50, 100)
    first, again, other = (Arrivals(profile, seed).between(30, 40) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert first.min() >= 30
    assert first.max() < 40
