"""Traffic over time: a piecewise-linear rate, from shapes or from a CSV trace."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from planner.errors import UsageError
from planner.simulate.service import FloatArray

# A daily curve drawn with a point every five minutes is smooth at the scale instances start.
_DAILY_STEP_S = 300.0
_LONGEST_S = 31 * 86_400.0


@dataclass(frozen=True)
class Profile:
    """Rate against time: straight lines between points, constant after the last."""

    name: str
    times_s: tuple[float, ...]
    rates_rps: tuple[float, ...]
    surge_s: tuple[float, float] | None = None
    """When the surge begins and ends, for profiles that have one."""

    def __post_init__(self) -> None:
        if len(self.times_s) != len(self.rates_rps) or len(self.times_s) < 2:
            raise UsageError(f"profile {self.name}: needs at least two points")
        if not all(map(math.isfinite, (*self.times_s, *self.rates_rps))) or min(self.rates_rps) < 0:
            raise UsageError(f"profile {self.name}: rates and times must be finite and not negative")
        if self.times_s[0] != 0 or any(b < a for a, b in pairwise(self.times_s)):
            raise UsageError(f"profile {self.name}: times must start at 0 and not run backwards")
        if not 0 < self.duration_s <= _LONGEST_S:
            raise UsageError(
                f"profile {self.name}: lasts {self.duration_s:g} s",
                f"simulate more than 0 and at most {_LONGEST_S:g} s (31 days)",
            )

    @property
    def duration_s(self) -> float:
        return self.times_s[-1]

    @property
    def peak_rps(self) -> float:
        return max(self.rates_rps)

    def cumulative(self, at_s: FloatArray) -> FloatArray:
        """Expected arrivals in [0, at]: the exact integral of the piecewise-linear rate."""
        times, rates = np.array(self.times_s), np.array(self.rates_rps)
        areas = np.concatenate([[0.0], np.cumsum(np.diff(times) * (rates[1:] + rates[:-1]) / 2)])
        segment = np.clip(np.searchsorted(times, at_s, side="right") - 1, 0, len(times) - 2)
        width = np.diff(times)[segment]
        into = np.minimum(at_s - times[segment], width)
        slope = np.divide(np.diff(rates)[segment], width, out=np.zeros_like(width), where=width > 0)
        total: FloatArray = areas[segment] + rates[segment] * into + slope * into**2 / 2
        return total

    def expected_arrivals(self, start_s: float, end_s: float) -> float:
        """Mean number of arrivals between two times."""
        before, after = self.cumulative(np.array([start_s, end_s]))
        return float(after - before)

    def peak_between(self, start_s: float, end_s: float) -> float:
        """Highest rate between two times."""
        inside = [r for t, r in zip(self.times_s, self.rates_rps, strict=True) if start_s <= t <= end_s]
        edges = np.interp([start_s, end_s], self.times_s, self.rates_rps)
        return float(max([*inside, *edges]))


def constant(rate_rps: float, duration_s: float) -> Profile:
    """The same rate throughout."""
    return Profile("constant", (0.0, duration_s), (rate_rps, rate_rps))


def surge(base_rps: float, ratio: float, *, hold_s: float, surge_s: float, after_s: float) -> Profile:
    """Hold, multiply by ``ratio`` for ``surge_s``, back."""
    high, end_s = base_rps * ratio, hold_s + surge_s
    times = (0.0, hold_s, hold_s, end_s, end_s, end_s + after_s)
    return Profile("surge", times, (base_rps, base_rps, high, high, base_rps, base_rps), surge_s=(hold_s, end_s))


def ramp(low_rps: float, high_rps: float, *, hold_s: float, ramp_s: float) -> Profile:
    """Low, a straight climb to high, high, a straight descent, low."""
    moments = np.cumsum([0.0, hold_s, ramp_s, hold_s, ramp_s, hold_s])
    rates = (low_rps, low_rps, high_rps, high_rps, low_rps, low_rps)
    return Profile("ramp", tuple(map(float, moments)), rates)


def daily(trough_rps: float, peak_rps: float, duration_s: float = 86_400.0) -> Profile:
    """One sine a day, from the trough through the peak and back."""
    times = np.linspace(0, duration_s, max(3, round(duration_s / _DAILY_STEP_S) + 1))
    rates = trough_rps + (peak_rps - trough_rps) * (1 - np.cos(2 * np.pi * times / duration_s)) / 2
    return Profile("daily", tuple(map(float, times)), tuple(map(float, rates)))


def from_csv(path: Path) -> Profile:
    """A trace with the header ``time_s,rate_rps``, or ``arrival_s`` with one request a line (counted per second)."""
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: cannot be read: {error}", "pass a CSV file") from None
    columns = set(rows[0]) if rows else set()
    try:
        if {"time_s", "rate_rps"} <= columns:
            points = sorted((float(row["time_s"]), float(row["rate_rps"])) for row in rows)
            first_s = points[0][0]
            return Profile(path.stem, tuple(t - first_s for t, _ in points), tuple(r for _, r in points))
        if "arrival_s" in columns:
            return _counted(path.stem, np.sort(np.array([float(row["arrival_s"]) for row in rows])))
    except (TypeError, ValueError) as error:
        raise UsageError(f"{path}: not a number: {error}", "every value must be a plain decimal") from None
    raise UsageError(
        f"{path}: no header time_s,rate_rps or arrival_s", "name the columns time_s,rate_rps (or arrival_s) in line 1"
    )


def _counted(name: str, arrivals_s: FloatArray) -> Profile:
    counts = np.bincount((arrivals_s - arrivals_s[0]).astype(int))
    times, rates = [], []
    for second, count in enumerate(counts.tolist()):
        times += [float(second), float(second + 1)]
        rates += [float(count)] * 2
    return Profile(name, tuple(times), tuple(rates))
