"""Scenario, client side, fleet changes, budget and the conduct of a run, without AWS."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from loadtest.openloop import Schedule
from planner.artifacts.records import Anchor, RequestRecord
from planner.artifacts.validate import FleetPoint
from planner.errors import Interrupted
from scripts.aws.endpoint import describe
from scripts.aws.freeze import frozen
from scripts.loadproof.client_side import stretch
from scripts.loadproof.conduct import Budget, conduct
from scripts.loadproof.observe import Watch, seen
from scripts.loadproof.scenario import Scenario
from tests.scripts.conftest import FastClock
from tests.scripts.fake_aws import FakeAws

SCENARIO = Scenario(instances=1, base_rps=20, surge_ratio=1.5, hold_s=30, surge_s=60, after_s=10, seed=3)


def test_the_schedule_follows_the_scenario() -> None:
    schedule = SCENARIO.schedule()
    counts = Counter(schedule.stretch)
    assert counts[0] == pytest.approx(600, abs=75)
    assert counts[1] == pytest.approx(1800, abs=130)
    assert counts[2] == pytest.approx(200, abs=45)
    assert list(schedule.due_s) == sorted(schedule.due_s)
    assert SCENARIO.schedule() == schedule


def test_a_quiet_stretch_follows_when_asked_for() -> None:
    quiet = replace(SCENARIO, quiet_s=50, quiet_rps=1.0)
    assert quiet.ends_s == (30, 90, 100, 150)
    due = np.array(quiet.schedule().due_s)
    assert (due > 100).sum() == pytest.approx(50, abs=22)


def made(intended_s: float, outcome: str, ttfab_s: float | None = None) -> RequestRecord:
    intended_ns = round(intended_s * 1e9)
    first_ns = None if ttfab_s is None else intended_ns + round(ttfab_s * 1e9)
    return RequestRecord(
        worker="w",
        run=0,
        rung=0,
        intended_ns=intended_ns,
        sent_ns=intended_ns + 1_000_000,
        headers_ns=first_ns,
        first_audio_ns=first_ns,
        done_ns=first_ns or intended_ns + 2_000_000,
        outcome=outcome,  # type: ignore[arg-type]
        error=None,
        status=200,
        bytes=1,
        chars=1,
        text=0,
    )


def test_the_client_side_counts_from_the_intended_time() -> None:
    records = [made(10, "ok", 0.5), made(11, "ok", 3.5), made(12, "rejected"), made(13, "server_error")]
    records += [made(14, "cancelled"), made(25, "ok", 0.1)]
    found = stretch("surge", records, 0, (10.0, 20.0), slo_ms=3000, metric="ttfab")
    assert (found.offered, found.ok, found.shed, found.other) == (4, 2, 1, {"server_error": 1})
    assert found.slo_attainment == 0.25
    assert found.shed_fraction == 0.25
    assert found.ttfab_ms is not None
    assert found.ttfab_ms.n == 2


def test_an_empty_stretch_says_nothing() -> None:
    found = stretch("surge", [], 0, (10.0, 20.0), slo_ms=3000, metric="ttfab")
    assert (found.shed_fraction, found.slo_attainment, found.ttfab_ms) == (None, None, None)


def point(at_s: float, desired: int, current: int) -> FleetPoint:
    return FleetPoint(at_s=at_s, desired=desired, current=current, status="InService")


def test_fleet_changes_are_read_from_the_counts() -> None:
    fleet = [point(0, 1, 1), point(95, 2, 1), point(340, 2, 2), point(700, 1, 2)]
    found = seen(fleet, 1, from_s=60, quiet_from_s=400)
    assert (found.scaled_out_s, found.in_service_s, found.scaled_in_s) == (95, 340, 700)
    assert seen(fleet[:1], 1, 60, 400).scaled_out_s is None


@pytest.mark.parametrize(
    ("budget", "elapsed_s", "instance_s", "reached"),
    [
        (Budget(10, None, 1.4), 599, 0, None),
        (Budget(10, None, 1.4), 600, 0, "--max-minutes 10"),
        (Budget(None, 0.5, 3.6), 0, 499, None),
        (Budget(None, 0.5, 3.6), 0, 500, "--max-usd 0.5"),
        (Budget(None, 0.5, None), 0, 1e9, None),
    ],
)
def test_budget(budget: Budget, elapsed_s: float, instance_s: float, reached: str | None) -> None:
    assert budget.exceeded(elapsed_s, instance_s) == reached


@dataclass
class PlayedBack:
    """A load that answers nothing and remembers that it was stopped."""

    records: list[RequestRecord] = field(default_factory=list)
    anchor: Anchor = field(default_factory=lambda: Anchor("w", 0, 0))
    started_ns: int = 0
    finished: bool = False
    stopped: int = 0
    fail: bool = False

    def start(self, schedule: Schedule) -> None:
        self.schedule = schedule

    def stop(self) -> None:
        self.stopped += 1


def carry_out(clock: FastClock, load: PlayedBack, budget: Budget, scenario: Scenario = SCENARIO) -> Any:
    live = describe("e", "v")
    with frozen(live, run_id="r" * 12, pin_instances=1, ttl_s=600, clock=clock, force=True) as held:
        return conduct(held, load, scenario, budget, [], lambda at: Quiet(live, at, clock, []))


class Quiet(Watch):
    """Without activities, which the fake does not keep."""

    def activities(self) -> list[Any]:
        return []


def suspensions(fake: FakeAws) -> list[bool]:
    """Whether scale-out was suspended, change by change."""
    return [
        request["SuspendedState"]["DynamicScalingOutSuspended"]
        for operation, request in fake.state["calls"]
        if operation == "register_scalable_target"
    ]


def test_scaling_goes_live_with_the_surge_and_is_put_back(account: Callable[..., FakeAws], clock: FastClock) -> None:
    fake = account()
    before, load = fake.durable(), PlayedBack()
    _, conducted = carry_out(clock, load, Budget(None, None, None))
    assert conducted.stopped_by is None
    assert conducted.lasted_s == pytest.approx(100, abs=2)
    assert suspensions(fake) == [True, False, True, False]
    assert load.stopped == 1
    assert fake.durable() == before


def test_a_spent_budget_stops_the_run(account: Callable[..., FakeAws], clock: FastClock) -> None:
    fake = account()
    before = fake.durable()
    _, conducted = carry_out(clock, PlayedBack(), Budget(0.75, None, None))
    assert conducted.stopped_by == "--max-minutes 0.75"
    assert conducted.lasted_s == pytest.approx(45, abs=2)
    assert fake.durable() == before


def test_a_failure_in_the_surge_still_restores(account: Callable[..., FakeAws], clock: FastClock) -> None:
    fake = account()
    before, load = fake.durable(), PlayedBack()

    class Broken(Quiet):
        def look(self) -> FleetPoint:
            if self.elapsed_s() > 50:
                raise KeyboardInterrupt
            return super().look()

    live = describe("e", "v")
    with (
        pytest.raises(Interrupted, match="as it was before"),
        frozen(live, run_id="r" * 12, pin_instances=1, ttl_s=600, clock=clock, force=True) as held,
    ):
        conduct(held, load, SCENARIO, Budget(None, None, None), [], lambda at: Broken(live, at, clock, []))
    assert load.stopped == 1
    assert fake.durable() == before
