"""The conducting process of a ladder: check, freeze, climb, watch, restore, publish."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent

from loadtest import estimate, observe, publish, terminal
from loadtest.conductor import Conductor, Finished, Phase
from loadtest.hold import Hold
from loadtest.inbox import Inbox, RunClock
from loadtest.job import Job
from loadtest.measure import slo_values
from loadtest.settings import PUBLISHED_HOLD_S, PUBLISHED_WINDOW_S, Ladder
from planner.artifacts import records
from planner.artifacts.base import require_writable
from planner.artifacts.fingerprint import ADMISSION_BOUND_ENV
from planner.artifacts.qmax import Qmax, Rung
from planner.errors import AwsError, FactFails, Undecided, UsageError
from scripts.aws.endpoint import LiveEndpoint, describe, fingerprint

WATCH_EVERY_S = 10.0


class Session:
    """One ladder from its checks to its files."""

    def __init__(self, settings: Ladder, announce: Callable[[Job], None], load_processes: int) -> None:
        self._settings = settings
        self._run_id = uuid.uuid4().hex[:12]
        self._screen = terminal.Screen()
        require_writable(Path(settings.common.out))
        live = describe(settings.common.endpoint, settings.common.variant)
        self._fingerprint = fingerprint(live, settings.common.workload, settings.common.transport)
        self._notes = [
            *check_admission(settings, live),
            *shorter_than_published(settings),
            *observe.unseen(settings.measure_window_s),
        ]
        self._hold = Hold(live, run_id=self._run_id, force=settings.common.force, ttl_s=estimate.freeze_ttl_s(settings))
        self._live = self._hold.live
        self._method = settings.method(load_processes)
        clock = RunClock()
        self._inbox = Inbox(clock)
        self._conductor = Conductor(
            settings, self._method, clock, self._inbox, announce, self._on_rung, settings.common.variant
        )
        self._joins: list[gevent.Greenlet] = []
        self._crash: BaseException | None = None
        self._written_anchors: set[str] = set()
        self._screen.line(f"rungs {', '.join(map(str, settings.rungs))}; {estimate_text(settings)}")
        for note in self._notes:
            self._screen.line(f"note: {note}")
        gevent.spawn(self._watch)

    def receive(self, status: dict[str, Any]) -> None:
        """A report of a load process."""
        self._inbox.receive(status)

    def tick(self) -> int | None:
        """How many users there should be; None ends the load."""
        try:
            users = self._conductor.tick()
        except BaseException as error:
            self._crash = error
            raise
        self._show()
        return users

    def finish(self) -> None:
        """Restore the endpoint, then write and print what was measured; raises for every end but a good one."""
        ladder: list[Rung] | None = None
        failure: AwsError | None = None
        try:
            with self._hold:
                self._require_complete()
                ladder = self._joined()
        except AwsError as error:
            if ladder is None:
                raise
            failure = error
        artifact = self._publish(ladder)
        if failure is not None:
            raise failure
        judge_outcome(artifact)

    def _require_complete(self) -> None:
        partial = f"raw records so far: {self._partial}" if self._partial.exists() else "nothing was measured"
        if self._conductor.abandoned:
            raise AwsError(self._conductor.abandoned, f"look at the endpoint's logs; {partial}")
        if self._conductor.phase is Phase.DONE:
            return
        if self._crash is not None and isinstance(self._crash, Exception):
            raise self._crash
        if not self._hold.caught and self._inbox.anchors() and not self._inbox.alive():
            raise Undecided("every load worker was lost", f"look at the workers' output; {partial}")
        self._screen.line(partial)
        raise KeyboardInterrupt

    @property
    def _partial(self) -> Path:
        return Path(self._settings.common.out) / f".{self._run_id}.partial.requests.jsonl"

    def _on_rung(self, finished: Finished) -> None:
        self._screen.line(terminal.rung_line(finished.rung, self._method.slo_metric))
        anchors = [a for a in self._inbox.anchors() if a.worker not in self._written_anchors]
        self._written_anchors |= {anchor.worker for anchor in anchors}
        records.write(self._partial, [*anchors, *self._inbox.take_raw(finished.job)])
        self._joins.append(gevent.spawn(self._join, finished.rung))

    def _join(self, rung: Rung) -> Rung:
        start, end = rung.window_start, rung.window_end
        if start is None or end is None:
            return rung
        changed = self._changed()
        if changed and rung.verdict != "invalid":
            rung = rung.model_copy(update={"verdict": "invalid", "reasons": [changed, *rung.reasons]})
        read = observe.reader(self._live.name, self._live.variant)
        try:
            observe.wait_published(read, start, end)
            return observe.joined(rung, observe.view(read, start, end))
        except AwsError as error:
            return rung.model_copy(update={"reasons": [*rung.reasons, f"CloudWatch not read: {error.message}"]})

    def _joined(self) -> list[Rung]:
        self._screen.show("waiting for CloudWatch")
        gevent.joinall(self._joins, raise_error=True)
        self._screen.show("")
        return [join.value for join in self._joins]

    def _watch(self) -> None:
        while self._conductor.phase is not Phase.DONE:
            gevent.sleep(WATCH_EVERY_S)
            reason = self._changed()
            if reason:
                self._conductor.void(reason)

    def _changed(self) -> str | None:
        try:
            return observe.change(self._live)
        except UsageError as gone:
            return gone.message
        except AwsError:
            # One failed look is no change; requests themselves show an endpoint that is gone.
            return None

    def _publish(self, ladder: list[Rung]) -> Qmax:
        from loadtest.chart import draw  # imported late: matplotlib would stall the event loop of a running load

        common = self._settings.common
        name = publish.stem("qmax", common.model, self._fingerprint)
        source = publish.provenance(self._run_id, common.endpoint, common.variant, "loadtest.ladder")
        artifact = publish.qmax(self._settings, self._method, ladder, self._fingerprint, source, self._notes)
        path = publish.save(artifact, self._partial, Path(common.out), name)
        charts = draw(artifact, path.with_suffix(""))
        print(terminal.table(artifact, colour=terminal.is_terminal()))
        for note in artifact.notes:
            print(f"note: {note}")
        print(terminal.sentence(artifact))
        print(f"wrote {path}, {', '.join(chart.name for chart in charts)}")
        return artifact

    def _show(self) -> None:
        current = self._conductor.current
        if not self._screen.live or current is None:
            return
        values = slo_values([r for r in self._inbox.rows(current.job.id).records if r.outcome == "ok"], self._method)
        text = f"run {current.job.run + 1}/{self._settings.runs}  N={current.job.users}"
        in_flight = self._inbox.in_flight(current.job.id)
        self._screen.show(
            terminal.progress(text, self._conductor.phase.value, self._conductor.seconds_left(), in_flight, values)
        )


def check_admission(settings: Ladder, live: LiveEndpoint) -> list[str]:
    """Q_max is measured unbounded: a deployed bound below the top rung would reject instead of queue."""
    given = live.environment.get(ADMISSION_BOUND_ENV, "")
    if not given.isdigit() or int(given) >= settings.rungs[-1]:
        return []
    message = (
        f"{live.name} admits at most {given} requests ({ADMISSION_BOUND_ENV}), the ladder goes to {settings.rungs[-1]}"
    )
    if not settings.common.allow_config_mismatch:
        raise UsageError(
            message, f"deploy without {ADMISSION_BOUND_ENV}, or --rungs up to {given}, or --allow-config-mismatch"
        )
    return [message]


def shorter_than_published(settings: Ladder) -> list[str]:
    """A quick ladder is labelled as one."""
    if settings.hold_s >= PUBLISHED_HOLD_S and settings.measure_window_s >= PUBLISHED_WINDOW_S:
        return []
    return [
        f"a short ladder: {settings.measure_window_s:g} s measured after {settings.hold_s:g} s, "
        f"published method {PUBLISHED_WINDOW_S:g} s after {PUBLISHED_HOLD_S:g} s"
    ]


def judge_outcome(artifact: Qmax) -> None:
    """Exit code of a complete ladder."""
    if artifact.outcome == "none_meets_slo":
        raise FactFails(terminal.sentence(artifact), "a looser --slo-ms, a faster instance type or engine")
    if artifact.outcome == "undecided":
        raise Undecided(terminal.sentence(artifact), "the reasons stand beside each rung; hold longer or fix them")


def estimate_text(settings: Ladder) -> str:
    """Said before the first rung."""
    return f"about {terminal.clock_text(estimate.wall_clock_s(settings))}"
