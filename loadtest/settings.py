"""The ladder's own flags, with the published method as defaults."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import Any

from loadtest.flags import Common, Problems, add_common, common, refuse_locust_shape_flags, require_bidi
from planner.artifacts.qmax import Method

PUBLISHED_RUNGS = "1,5,10,20,30,40,50,60"
PUBLISHED_HOLD_S, PUBLISHED_WINDOW_S = 240.0, 60.0
MOST_USERS = 10_000


@dataclass(frozen=True)
class Ladder:
    """A checked command line."""

    common: Common
    rungs: tuple[int, ...]
    hold_s: float
    measure_window_s: float
    idle_s: float
    refine: bool
    runs: int

    def method(self, load_processes: int) -> Method:
        """As the artifact states it."""
        return Method(
            rungs=list(self.rungs),
            hold_s=self.hold_s,
            measure_window_s=self.measure_window_s,
            idle_s=self.idle_s,
            slo_ms=self.common.slo_ms,
            slo_metric=self.common.slo_metric,
            runs=self.runs,
            refine=self.refine,
            load_processes=load_processes,
            seed=self.common.seed,
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the ladder's flags to Locust's."""
    add_common(parser)
    add = parser.add_argument
    add("--rungs", default=PUBLISHED_RUNGS, help=f"concurrency levels ({PUBLISHED_RUNGS})")
    add(
        "--hold-s",
        default=f"{PUBLISHED_HOLD_S:g}",
        help="seconds a rung is held once all its requests are in flight (240)",
    )
    add("--measure-window-s", default=f"{PUBLISHED_WINDOW_S:g}", help="measured seconds at the end of the hold (60)")
    add("--idle-s", default="30", help="seconds between rungs (30)")
    add("--refine", action="store_true", help="bisect between the last pass and the first miss")
    add("--runs", default="1", help="repeat the ladder, report the worst (1)")
    add("--instance-type", default="ml.g5.xlarge", help="for the dry run's estimate (ml.g5.xlarge)")


def parse(options: Any) -> Ladder:
    """Check everything; raises one UsageError with every problem."""
    problems = Problems()
    refuse_locust_shape_flags(options, problems, "the ladder sets users and times itself: --rungs, --hold-s, --idle-s")
    shared = common(options, problems)
    if shared.transport == "bidi":
        problems.tried(require_bidi, None)
    hold_s = problems.number("--hold-s", options.hold_s, above=True)
    window_s = problems.number("--measure-window-s", options.measure_window_s, above=True)
    if window_s > hold_s:
        problems.say(f"--measure-window-s {window_s:g} is longer than --hold-s {hold_s:g}", "lengthen the hold")
    ladder = Ladder(
        common=shared,
        rungs=_rungs(options.rungs, problems),
        hold_s=hold_s,
        measure_window_s=window_s,
        idle_s=problems.number("--idle-s", options.idle_s),
        refine=options.refine,
        runs=problems.integer("--runs", options.runs, least=1),
    )
    problems.stop()
    return ladder


def _rungs(given: str, problems: Problems) -> tuple[int, ...]:
    found: set[int] = set()
    wrong: list[str] = []
    for item in given.split(","):
        try:
            value = float(item)
        except ValueError:
            value = math.nan
        if value in range(1, MOST_USERS + 1):
            found.add(int(value))
        else:
            wrong.append(item.strip() or "an empty item")
    if wrong:
        problems.say(
            f"--rungs {given}: no concurrency: {', '.join(wrong)}",
            f"--rungs takes whole numbers from 1 to {MOST_USERS}, for example {PUBLISHED_RUNGS}",
        )
    return tuple(sorted(found))
