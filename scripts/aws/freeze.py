"""Freeze an endpoint for a measurement and leave it exactly as it was found, whatever happens.

Lock, read, write the journal (file, then tag), only then change. Restore replays the journal, reads back, and only
then removes it (tag, then file). After a kill -9 the journal is still there: thaw restores from it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

from planner.errors import AwsError, HeadroomError, Interrupted, UsageError
from scripts.aws import journal as journals
from scripts.aws import preflight
from scripts.aws.counts import RETRY_LIMIT_S, set_count
from scripts.aws.endpoint import LiveEndpoint, describe, require_in_service, status_of
from scripts.aws.journal import Journal
from scripts.aws.lock import locked
from scripts.aws.scaling import ALL_SUSPENDED, Suspended, read_target, write_suspended
from scripts.aws.signals import Signals
from scripts.aws.waiting import Clock, Progress, persist

# Two machines that tag at the same moment both read the later tag after this long.
TAG_SETTLE_S = 1.0


@dataclass
class Frozen:
    """A frozen endpoint; ``live`` is how it stands while frozen."""

    live: LiveEndpoint
    journal: Journal
    clock: Clock = field(default_factory=Clock)
    progress: Progress = field(default_factory=Progress)

    def set_count(self, instances: int) -> LiveEndpoint:
        """Change the pinned count and wait for it; the journal already knows what to put back."""
        self.live = _count(self.live, instances, self.clock, self.progress)
        return self.live


@dataclass(frozen=True)
class Thawed:
    """What thaw found and did."""

    source: str | None
    """None = no journal and no tag."""
    run_id: str | None
    desired_instances: int
    restored_count: bool
    suspended_before: str
    suspended_after: str


def no_step(name: str) -> None:
    """The default for ``on_step``: nobody follows the steps."""


@dataclass
class _Run:
    journal: Journal
    live: LiveEndpoint
    clock: Clock
    progress: Progress
    on_step: Callable[[str], None]

    def step(self, name: str) -> None:
        self.progress.note(f"{self.live.name}/{self.live.variant}: {name}")
        self.on_step(name)


@contextmanager
def frozen(
    live: LiveEndpoint,
    *,
    run_id: str,
    pin_instances: int | None = 1,
    force: bool = False,
    ttl_s: float,
    clock: Clock | None = None,
    progress: Progress | None = None,
    on_step: Callable[[str], None] = no_step,
) -> Iterator[Frozen]:
    """Hold the endpoint still inside the block: scaling suspended, the fleet at ``pin_instances`` (None = as it is).

    A signal inside the block raises KeyboardInterrupt there and, once everything is restored, Interrupted. So does
    whatever an extension module made of that KeyboardInterrupt on its way.
    """
    clock = clock or Clock()
    progress = progress or Progress(clock)
    with locked(live.name, live.variant, run_id):
        run = _prepare(live, run_id, pin_instances, force, ttl_s, clock, progress, on_step)
        with Signals() as signals:
            restored = interrupted = False
            try:
                try:
                    _freeze(run, pin_instances)
                    yield Frozen(run.live, run.journal, clock, progress)
                finally:
                    signals.defer()
                    _restore_or_say(run)
                    restored = True
            except BaseException as error:
                signals.defer()
                interrupted = isinstance(error, KeyboardInterrupt)
                if not (interrupted or (signals.caught and restored)):
                    raise
                if not restored:
                    _restore_or_say(run)
            if interrupted or signals.caught:
                by = signals.caught or "an interrupt"
                raise Interrupted(f"stopped by {by}; {live.name} is as it was before", "run it again")


def thaw(
    endpoint: str,
    variant: str,
    desired: int | None = None,
    *,
    clock: Clock | None = None,
    progress: Progress | None = None,
) -> Thawed:
    """Put back what an interrupted run left frozen; does nothing when nothing is."""
    clock = clock or Clock()
    progress = progress or Progress(clock)
    live = describe(endpoint, variant)
    with locked(endpoint, variant, f"thaw-{uuid.uuid4().hex[:8]}"), Signals() as signals:
        signals.defer()
        target = persist(lambda: read_target(endpoint, variant), clock, RETRY_LIMIT_S)
        before = target.suspended if target else Suspended()
        found = persist(lambda: journals.find(live, target), clock, RETRY_LIMIT_S)
        if found is None:
            return _thaw_blind(live, before, desired, clock, progress)
        if not found.frozen:
            journals.remove_file(endpoint, variant)
            return _thaw_blind(live, before, desired, clock, progress, ours=False)
        if found.journal.variant != variant:
            raise UsageError(
                f"{endpoint} was frozen at variant {found.journal.variant!r}, not {variant!r}",
                f"make thaw VARIANT={found.journal.variant}",
            )
        wanted = found.journal.model_copy(update={"desired_instances": desired or found.journal.desired_instances})
        run = _Run(wanted, live, clock, progress, no_step)
        _restore_or_say(run)
        after = wanted.suspended_state if target and wanted.suspended_state is not None else before
        return Thawed(found.source, wanted.run_id, wanted.desired_instances, True, str(before), str(after))


def _thaw_blind(
    live: LiveEndpoint, before: Suspended, desired: int | None, clock: Clock, progress: Progress, *, ours: bool = True
) -> Thawed:
    """A freeze suspends all three kinds of scaling; anything less is somebody's own decision and stays."""
    after = before
    if ours and before == ALL_SUSPENDED:
        after = Suspended()
        persist(lambda: write_suspended(live.name, live.variant, after), clock, RETRY_LIMIT_S)
    if desired is not None:
        live = _count(live, desired, clock, progress)
    return Thawed(None, None, live.desired_instances, desired is not None, str(before), str(after))


def _prepare(
    live: LiveEndpoint,
    run_id: str,
    pin: int | None,
    force: bool,
    ttl_s: float,
    clock: Clock,
    progress: Progress,
    on_step: Callable[[str], None],
) -> _Run:
    target = read_target(live.name, live.variant)
    left = journals.find(live, target)
    if left is not None and left.frozen:
        raise _refusal(live, left, clock)
    require_in_service(live)
    if pin is not None and not force:
        _refuse_risk(live, pin, clock)
    now = clock.now()
    journal = journals.new_journal(live, target, run_id, now, now + timedelta(seconds=ttl_s))
    return _Run(journal, live, clock, progress, on_step)


def _refusal(live: LiveEndpoint, left: journals.Found, clock: Clock) -> UsageError:
    state = "it ended without restoring" if left.journal.expires_at < clock.now() else "it may still be running"
    return UsageError(
        f"{live.name} is frozen by {left.journal.who}; {state} (found in {left.source})",
        f"if that run is dead: make thaw (puts back {left.journal.desired_instances} instances and scaling)",
    )


def _refuse_risk(live: LiveEndpoint, pin: int, clock: Clock) -> None:
    if live.desired_instances > pin:
        raise UsageError(
            f"{live.name} runs {live.desired_instances} instances; pinning it to {pin} would take capacity away",
            "pass --force if nobody depends on it",
        )
    preflight.require([preflight.traffic(live, clock, force=False)])


def _count(live: LiveEndpoint, instances: int, clock: Clock, progress: Progress) -> LiveEndpoint:
    counts = set_count(live.name, live.variant, instances, clock=clock, progress=progress)
    return replace(live, desired_instances=counts.desired, current_instances=counts.current, status=counts.status)


def _freeze(run: _Run, pin: int | None) -> None:
    live, journal = run.live, run.journal
    run.step("writing the journal")
    journals.write_file(journal)
    run.step("tagging the endpoint")
    persist(lambda: journals.write_tag(live, journal), run.clock, RETRY_LIMIT_S)
    run.clock.sleep(TAG_SETTLE_S)
    tagged = persist(lambda: journals.read_tag(live), run.clock, RETRY_LIMIT_S)
    if tagged is not None and tagged.run_id != journal.run_id[:36]:
        raise UsageError(f"{live.name} was frozen at the same moment by {tagged.who}", "wait until it ends")
    if journal.suspended is not None:
        run.step("suspending scaling")
        persist(lambda: write_suspended(live.name, live.variant, ALL_SUSPENDED), run.clock, RETRY_LIMIT_S)
    if pin is not None and live.desired_instances != pin:
        run.step(f"pinning to {pin} instances")
        run.live = _count(live, pin, run.clock, run.progress)
    run.step("frozen")


def _restore_or_say(run: _Run) -> None:
    try:
        _restore(run)
    except HeadroomError as error:
        if _deleted(run.live):
            journals.remove_file(run.live.name, run.live.variant)
            raise AwsError(
                f"{run.live.name} was deleted while it was frozen; nothing is left to put back",
                "make deploy, run again",
            ) from error
        raise AwsError(
            f"{run.live.name} could not be restored: {error.message}",
            f"it stays frozen (wanted: {run.journal.desired_instances} instances, suspended: "
            f"{run.journal.suspended_state or 'nothing'}); {error.hint}; then make thaw",
        ) from error


def _deleted(live: LiveEndpoint) -> bool:
    try:
        return status_of(live.name) is None
    except HeadroomError:
        return False


def _restore(run: _Run) -> None:
    live, journal = run.live, run.journal
    tagged = persist(lambda: journals.read_tag(live), run.clock, RETRY_LIMIT_S)
    if tagged is not None and tagged.run_id != journal.run_id[:36]:
        journals.remove_file(live.name, live.variant)
        return
    run.step(f"restoring {journal.desired_instances} instances")
    set_count(live.name, live.variant, journal.desired_instances, clock=run.clock, progress=run.progress)
    _restore_scaling(run)
    run.step("removing the journal")
    persist(lambda: journals.remove_tag(live), run.clock, RETRY_LIMIT_S)
    journals.remove_file(live.name, live.variant)
    journals.mark_traffic_end(live, run.clock.now())
    run.step("restored")


def _restore_scaling(run: _Run) -> None:
    live, wanted = run.live, run.journal.suspended_state
    if wanted is None:
        return
    target = persist(lambda: read_target(live.name, live.variant), run.clock, RETRY_LIMIT_S)
    if target is None:
        run.progress.note(f"{live.name}: its scalable target was deregistered meanwhile; nothing to un-suspend")
        return
    run.step(f"restoring scaling (suspended: {wanted})")
    persist(lambda: write_suspended(live.name, live.variant, wanted), run.clock, RETRY_LIMIT_S)
    after = persist(lambda: read_target(live.name, live.variant), run.clock, RETRY_LIMIT_S)
    if after is None or after.suspended != wanted:
        found = after.suspended if after else "no target"
        raise AwsError(f"suspended is {found}, wanted {wanted}", "un-suspend it by hand (register-scalable-target)")
