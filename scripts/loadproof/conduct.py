"""One run: hold with scaling suspended, let it go at the surge, watch, and stop when a budget says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from loadtest.openloop import Schedule
from planner.artifacts.records import Anchor, RequestRecord
from planner.artifacts.validate import ScalingActivity
from scripts.aws.freeze import Frozen
from scripts.aws.scaling import ALL_SUSPENDED, Suspended, write_suspended
from scripts.loadproof.observe import Watch
from scripts.loadproof.scenario import STRETCHES, Scenario

POLL_S = 1.0


class Load(Protocol):
    """An open loop; tests play one back."""

    records: list[RequestRecord]
    anchor: Anchor
    started_ns: int

    @property
    def finished(self) -> bool:
        """Nothing more will come."""

    def start(self, schedule: Schedule) -> None:
        """Begin now."""

    def stop(self) -> None:
        """End now."""


@dataclass(frozen=True)
class Budget:
    """What the run may cost; None = no limit."""

    max_minutes: float | None
    max_usd: float | None
    usd_per_h: float | None

    def usd(self, instance_s: float) -> float | None:
        return None if self.usd_per_h is None else instance_s / 3600 * self.usd_per_h

    def exceeded(self, elapsed_s: float, instance_s: float) -> str | None:
        """Which limit is reached, in words."""
        if self.max_minutes is not None and elapsed_s >= 60 * self.max_minutes:
            return f"--max-minutes {self.max_minutes:g}"
        spent = self.usd(instance_s)
        if self.max_usd is not None and spent is not None and spent >= self.max_usd:
            return f"--max-usd {self.max_usd:g}"
        return None


@dataclass(frozen=True)
class Conducted:
    """Raw results of the run."""

    lasted_s: float
    stopped_by: str | None
    activities: list[ScalingActivity]


def conduct(
    held: Frozen,
    load: Load,
    scenario: Scenario,
    budget: Budget,
    alarm_names: list[str],
    make_watch: Callable[[datetime], Watch],
) -> tuple[Watch, Conducted]:
    """Run the scenario on the frozen endpoint; scaling is suspended again before this returns or raises."""
    name, variant, clock = held.live.name, held.live.variant, held.clock
    load.start(scenario.schedule())
    watch = make_watch(clock.now())
    scaling, stopped_by = False, None
    try:
        while not load.finished and watch.elapsed_s() < scenario.ends_s[-1]:
            if not scaling and watch.elapsed_s() >= scenario.surge_begins_s:
                write_suspended(name, variant, Suspended())
                scaling = True
                held.progress.note(f"surge begins: scaling is live, {len(alarm_names)} alarms watched")
            point = watch.look()
            stopped_by = budget.exceeded(watch.elapsed_s(), watch.instance_s)
            if stopped_by is not None:
                held.progress.note(f"stopping: {stopped_by} reached")
                break
            what = STRETCHES[sum(watch.elapsed_s() >= end for end in scenario.ends_s[:3])]
            held.progress.show(what, watch.elapsed_s(), scenario.ends_s[-1], f", {point.current} of {point.desired}")
            clock.sleep(POLL_S)
        lasted_s = watch.elapsed_s()
    finally:
        load.stop()
        if scaling:
            write_suspended(name, variant, ALL_SUSPENDED)
        held.progress.done()
    return watch, Conducted(lasted_s, stopped_by, watch.activities())
