"""The conducting process of open-loop traffic: check, freeze if rates are measured, send, restore, publish."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from loadtest import observe, publish, rates, terminal
from loadtest.hold import Hold
from loadtest.inbox import Inbox, RunClock
from loadtest.job import Job, job
from loadtest.measure import utc
from loadtest.rates import Measured
from loadtest.traffic import Surge, busiest_second
from planner.artifacts import records
from planner.artifacts.base import require_writable
from planner.artifacts.qmax import OpenLoop
from planner.errors import AwsError, Undecided, UsageError
from scripts.aws.endpoint import describe, fingerprint, require_in_service

START_DELAY_S = 4.0
"""Connecting and reaching every load process takes less."""
WARM_MOST = 500
WORKERS_LIMIT_S = 60.0


@dataclass(frozen=True)
class Order:
    """What every load process is told: the whole schedule and which share is whose."""

    job: Job
    start_utc_ns: int
    warm: int
    due_s: list[float]
    stretch: list[int]
    shares: dict[str, int]

    def message(self) -> dict[str, Any]:
        """For Runner.send_message."""
        return {
            "job": self.job.message(),
            "start_utc_ns": self.start_utc_ns,
            "warm": self.warm,
            "due_s": self.due_s,
            "stretch": self.stretch,
            "shares": self.shares,
        }


class OpenSession:
    """One open-loop run from its checks to its files."""

    def __init__(self, surge: Surge, announce: Callable[[Order], None], load_processes: int) -> None:
        self._surge = surge
        self._announce = announce
        self._expected = load_processes
        self._run_id = uuid.uuid4().hex[:12]
        self._screen = terminal.Screen()
        common = surge.common
        require_writable(Path(common.out))
        live = describe(common.endpoint, common.variant)
        require_in_service(live)
        self._fingerprint = fingerprint(live, common.workload, common.transport)
        self._hold = Hold(
            live, run_id=self._run_id, force=common.force, ttl_s=1.5 * surge.lasts_s + 900, freeze=surge.rates
        )
        self._clock = RunClock()
        self._inbox = Inbox(self._clock)
        self._since_s = time.monotonic()
        self._order: Order | None = None
        self._voids: list[str] = []
        self._done = False
        self._crash: BaseException | None = None
        self._screen.line(f"{len(surge.schedule.due_s)} requests in {terminal.clock_text(surge.lasts_s)}")

    def receive(self, status: dict[str, Any]) -> None:
        """A report of a load process."""
        self._inbox.receive(status)

    def tick(self) -> int | None:
        """How many load processes should be sending; None ends the load."""
        try:
            return self._tick()
        except BaseException as error:
            self._crash = error
            raise

    def _tick(self) -> int | None:
        alive = self._inbox.alive()
        if self._order is None:
            if len(alive) < self._expected:
                self._check_patience(len(alive))
                return 0
            self._order = self._make_order(sorted(alive))
            self._announce(self._order)
            return len(alive)
        lost = set(self._order.shares) - alive
        if lost and not self._voids:
            self._voids.append(f"load worker lost: {', '.join(sorted(lost))}")
        since_s = (self._clock.now_ns() - self._order.start_utc_ns) / 1e9
        starting = 0 <= since_s < 1 < self._surge.lasts_s / 3
        if starting and not self._voids and (absent := self._inbox.idle(set(self._order.shares))):
            self._voids.append(f"load worker did not start: {', '.join(sorted(absent))}")
        self._show(since_s)
        over = since_s > self._surge.lasts_s
        patience_s = self._surge.lasts_s + self._surge.common.request_timeout_s + 10
        drained = over and self._inbox.drained(0, set(self._order.shares))
        if drained or since_s > patience_s or not alive:
            self._done = True
            return None
        return len(self._order.shares)

    def _check_patience(self, alive: int) -> None:
        if time.monotonic() - self._since_s > WORKERS_LIMIT_S:
            raise Undecided(f"{alive} of {self._expected} load processes reported", "look at the workers' output")

    def _make_order(self, workers: list[str]) -> Order:
        common, schedule = self._surge.common, self._surge.schedule
        users = min(WARM_MOST, busiest_second(schedule)) + 5
        work = job(common, id=0, run=0, rung=0, users=users, variant=common.variant)
        return Order(
            job=work,
            start_utc_ns=self._clock.now_ns() + int(START_DELAY_S * 1e9),
            warm=-(-users // len(workers)),
            due_s=list(schedule.due_s),
            stretch=list(schedule.stretch),
            shares={name: index for index, name in enumerate(workers)},
        )

    def finish(self) -> None:
        """Restore, then write and print; raises for every end but a good one."""
        with self._hold:
            if not self._done:
                if isinstance(self._crash, Exception):
                    raise self._crash
                raise KeyboardInterrupt
            found = self._measured()
        self._publish(found)
        bound = [each for each in found if each.rate.client_bound]
        if bound:
            raise Undecided(
                f"{len(bound)} of {len(found)} stretches measured something else: {bound[0].bound}",
                "a client that is behind: --processes 2, or more machines with --master and --worker; an endpoint that "
                "changed: run it again when nobody else uses it",
            )

    def _changes(self) -> list[str]:
        """What happened to a frozen endpoint meanwhile; without a freeze its count may change."""
        if not self._surge.rates:
            return []
        try:
            reason = observe.change(self._hold.live)
        except UsageError as gone:
            reason = gone.message
        except AwsError:
            reason = None
        return [reason] if reason else []

    def _measured(self) -> list[Measured]:
        assert self._order is not None
        rows = self._inbox.rows(0)
        sent_by = len(self._order.shares)
        voids = [*self._voids, *self._changes()]
        found = rates.measure(self._surge, rows, self._order.start_utc_ns, sent_by, voids)
        self._screen.show("waiting for CloudWatch")
        read = observe.reader(self._hold.live.name, self._hold.live.variant)
        try:
            observe.wait_published(read, utc(found[-1].window.start_ns), utc(found[-1].window.end_ns))
            found = [rates.joined(each, read) for each in found]
        except AwsError as error:
            self._screen.line(f"CloudWatch not read: {error.message}")
        self._screen.show("")
        return found

    def _publish(self, found: list[Measured]) -> None:
        common = self._surge.common
        out = Path(common.out)
        kind = "openloop" if self._surge.rates else "surge"
        name = publish.stem(kind, common.model, self._fingerprint)
        partial = out / f".{self._run_id}.partial.requests.jsonl"
        records.write(partial, [*self._inbox.anchors(), *self._inbox.take_raw(0)])
        print(rates.table(found))
        if not self._surge.rates:
            lines = out / f"{name}.requests.jsonl"
            os.replace(partial, lines)
            print(f"wrote {lines}")
            return
        artifact = OpenLoop(
            provenance=publish.provenance(self._run_id, common.endpoint, common.variant, "loadtest.surge"),
            model=common.model,
            fingerprint=self._fingerprint,
            seed=common.seed,
            slo_ms=common.slo_ms,
            rates=[each.rate for each in found],
        )
        print(f"wrote {publish.save(artifact, partial, out, name)}")

    def _show(self, since_s: float) -> None:
        left = max(0.0, self._surge.lasts_s - since_s)
        self._screen.show(f"{terminal.clock_text(left)} left  {self._inbox.in_flight(0)} in flight")


def describe_plan(surge: Surge) -> str:
    """The dry run's output."""
    lines = [f"{'stretch':<14} {'from':>8} {'to':>8} {'requests':>9}"]
    for index, stretch in enumerate(surge.stretches):
        count = sum(s == index for s in surge.schedule.stretch)
        start, end = terminal.clock_text(stretch.start_s), terminal.clock_text(stretch.end_s)
        lines.append(f"{stretch.name:<14} {start:>8} {end:>8} {count:>9,}")
    frozen = "the endpoint is frozen meanwhile" if surge.rates else "autoscaling stays live"
    lines.append(f"{len(surge.schedule.due_s):,} requests in {terminal.clock_text(surge.lasts_s)}; {frozen}")
    return "\n".join(lines)
