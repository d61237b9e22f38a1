"""Open-loop traffic: which requests are due when, and which stretch of the profile each belongs to."""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from loadtest.flags import Common, Problems, add_common, common, refuse_locust_shape_flags
from loadtest.openloop import Schedule
from planner.artifacts.qmax import Qmax
from planner.errors import UsageError
from planner.simulate import profiles
from planner.simulate.arrivals import Arrivals

DEFAULT_FRACTIONS = "0.3,0.5,0.7,0.8,0.9"
CHUNK_S = 10.0
"""Arrivals are drawn in chunks of this length, as the simulator draws them: same seed, same arrivals."""


@dataclass(frozen=True)
class Stretch:
    """A part of the run that is reported by itself."""

    name: str
    start_s: float
    end_s: float
    measured_from_s: float


@dataclass(frozen=True)
class Surge:
    """A checked command line."""

    common: Common
    rates: bool
    """A ladder of constant rates; the endpoint is frozen for it."""
    stretches: tuple[Stretch, ...]
    schedule: Schedule

    @property
    def lasts_s(self) -> float:
        """Until the last request is due."""
        return self.stretches[-1].end_s


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the open loop's flags to Locust's."""
    add_common(parser)
    add = parser.add_argument
    add(
        "--rates", nargs="?", const=DEFAULT_FRACTIONS, help=f"ladder of fractions of the capacity ({DEFAULT_FRACTIONS})"
    )
    add("--capacity-rps", help="what one instance carries; default: the best rung of --qmax")
    add("--qmax", help="ladder artifact for the capacity; default: the model's newest in --out")
    add("--hold-s", default="120", help="seconds a rate is held (120)")
    add("--measure-window-s", default="90", help="measured seconds at its end (90)")
    add("--idle-s", default="10", help="seconds between rates (10)")
    add("--traffic", help="surge, ramp, daily, constant, or a CSV file (time_s,rate_rps or arrival_s)")
    add("--base-rps", default="10", help="rate of surge and constant, lowest rate of ramp and daily (10)")
    add("--peak-rps", default="20", help="highest rate of ramp and daily (20)")
    add("--ratio", default="1.25", help="what surge multiplies the base by (1.25)")
    add("--lead-s", default="60", help="seconds before the change and after it (60)")
    add("--lasts-s", default="300", help="seconds of surge, ramp, daily curve or constant rate (300)")


def parse(options: Any) -> Surge:
    """Check everything; raises one UsageError with every problem."""
    problems = Problems()
    refuse_locust_shape_flags(options, problems, "the open loop sets rates and times itself: --rates or --traffic")
    shared = common(options, problems)
    if shared.transport == "bidi":
        problems.say("the open loop does not speak bidi", "--transport response-stream or invoke")
    if bool(options.rates) == bool(options.traffic):
        problems.say("give either --rates or --traffic", "--rates for the metric ratio, --traffic surge for a surge")
        problems.stop()
    made = problems.tried(
        lambda: _rates(options, shared, problems) if options.rates else _traffic(options, shared, problems), None
    )
    problems.stop()
    assert made is not None
    if not made.schedule.due_s:
        raise UsageError("no request is due in this traffic", "a higher rate or a longer time")
    return made


def _rates(options: Any, shared: Common, problems: Problems) -> Surge | None:
    hold_s = problems.number("--hold-s", options.hold_s, above=True)
    window_s = problems.number("--measure-window-s", options.measure_window_s, above=True)
    idle_s = problems.number("--idle-s", options.idle_s)
    if window_s > hold_s:
        problems.say(f"--measure-window-s {window_s:g} is longer than --hold-s {hold_s:g}", "lengthen the hold")
    fractions = [problems.number("--rates", item, above=True) for item in options.rates.split(",")]
    capacity_rps = problems.tried(lambda: _capacity(options, shared, problems), math.nan)
    if not all(map(math.isfinite, (hold_s, window_s, idle_s, capacity_rps, *fractions))):
        return None
    starts_s = list(accumulate([hold_s + idle_s] * (len(fractions) - 1), initial=0.0))
    stretches, due_s, stretch = [], [], []
    for index, (fraction, start_s) in enumerate(zip(sorted(fractions), starts_s, strict=True)):
        rate_rps = fraction * capacity_rps
        end_s = start_s + hold_s
        stretches.append(Stretch(f"{rate_rps:.2f} rps", start_s, end_s, end_s - window_s))
        arrivals = draw(profiles.constant(rate_rps, hold_s), shared.seed * 1000 + index)
        due_s += [start_s + at_s for at_s in arrivals]
        stretch += [index] * len(arrivals)
    return Surge(shared, True, tuple(stretches), Schedule(due_s, stretch))


def _capacity(options: Any, shared: Common, problems: Problems) -> float:
    if options.capacity_rps is not None:
        return problems.number("--capacity-rps", options.capacity_rps, above=True)
    ladder = Qmax.load(options.qmax) if options.qmax else _newest(shared)
    best = max((rung.achieved_rps or 0.0 for rung in ladder.ladder if rung.verdict != "invalid"), default=0.0)
    if best <= 0:
        raise UsageError("the ladder has no valid rung with throughput", "make qmax again, or --capacity-rps")
    return best


def _newest(shared: Common) -> Qmax:
    found = sorted(Path(shared.out).glob(f"qmax-{shared.model}-*.json"), key=lambda path: path.stat().st_mtime)
    if not found:
        raise UsageError(f"no ladder of {shared.model} in {shared.out}", "make qmax first, or --capacity-rps")
    return Qmax.load(found[-1])


def _traffic(options: Any, shared: Common, problems: Problems) -> Surge | None:
    trace = None
    if options.traffic not in ("surge", "ramp", "daily", "constant"):
        trace = problems.tried(lambda: _trace(Path(options.traffic), shared), None)
    base_rps = problems.number("--base-rps", options.base_rps)
    peak_rps = problems.number("--peak-rps", options.peak_rps)
    ratio = problems.number("--ratio", options.ratio, above=True)
    lead_s, lasts_s = (
        problems.number(f"--{n}", v) for n, v in (("lead-s", options.lead_s), ("lasts-s", options.lasts_s))
    )
    if not all(map(math.isfinite, (base_rps, peak_rps, ratio, lead_s, lasts_s))):
        return None
    if options.traffic not in ("surge", "ramp", "daily", "constant"):
        return trace
    names: tuple[str, ...]
    if options.traffic == "surge":
        profile = profiles.surge(base_rps, ratio, hold_s=lead_s, surge_s=lasts_s, after_s=lead_s)
        names = ("before", "surge", "after")
    elif options.traffic == "ramp":
        profile = profiles.ramp(base_rps, peak_rps, hold_s=lead_s, ramp_s=lasts_s)
        names = ("low", "up", "high", "down", "low again")
    else:
        low = options.traffic == "constant"
        profile = profiles.constant(base_rps, lasts_s) if low else profiles.daily(base_rps, peak_rps, lasts_s)
        names = (options.traffic,)
    edges = sorted(set(profile.times_s)) if len(names) > 1 else [0.0, profile.duration_s]
    return _cut(shared, draw(profile, shared.seed), names, edges)


def _trace(path: Path, shared: Common) -> Surge:
    exact = _arrivals_of(path)
    if exact is not None:
        return _cut(shared, exact, (path.stem,), [0.0, exact[-1] + 1.0])
    profile = profiles.from_csv(path)
    return _cut(shared, draw(profile, shared.seed), (path.stem,), [0.0, profile.duration_s])


TRACE_HINT = "surge, ramp, daily, constant, or a CSV file with arrival_s or time_s,rate_rps"


def _arrivals_of(path: Path) -> list[float] | None:
    """The arrival times of a trace that states them; None for one that states rates."""
    try:
        with path.open(newline="", encoding="utf-8") as stream:
            rows = list(csv.DictReader(stream))
        if not rows or "arrival_s" not in rows[0]:
            return None
        times_s = sorted(float(row["arrival_s"]) for row in rows)
    except (OSError, UnicodeDecodeError, csv.Error, TypeError, ValueError) as error:
        raise UsageError(f"--traffic {path}: {error}", TRACE_HINT) from None
    return [at_s - times_s[0] for at_s in times_s]


def _cut(shared: Common, due_s: Sequence[float], names: Sequence[str], edges: Sequence[float]) -> Surge:
    stretches = tuple(
        Stretch(name, start_s, end_s, start_s) for name, (start_s, end_s) in zip(names, pairwise(edges), strict=True)
    )
    stretch = np.clip(np.searchsorted(np.array(edges[1:]), due_s, side="right"), 0, len(stretches) - 1)
    return Surge(shared, False, stretches, Schedule(list(due_s), stretch.tolist()))


def draw(profile: profiles.Profile, seed: int) -> list[float]:
    """Poisson arrivals of a profile."""
    arrivals = Arrivals(profile, seed)
    starts_s = np.arange(0.0, profile.duration_s, CHUNK_S)
    chunks = [arrivals.between(float(s), min(float(s) + CHUNK_S, profile.duration_s)) for s in starts_s]
    return [float(at_s) for at_s in np.concatenate(chunks)]


def busiest_second(schedule: Schedule) -> int:
    """Most requests due within one second of the clock."""
    return int(np.bincount(np.asarray(schedule.due_s).astype(int)).max())


def share(schedule: Schedule, index: int, of: int) -> Schedule:
    """What one of several load processes sends: every ``of``-th request, so that together they send exactly all."""
    return Schedule(list(schedule.due_s[index::of]), list(schedule.stretch[index::of]))
