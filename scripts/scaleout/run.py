"""One forced scale-out from the freeze's pinned count, watched until traffic is well again or it has failed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from planner.artifacts.qmax import SloMetric
from planner.artifacts.records import RequestRecord
from planner.artifacts.ttotal import RunOutcome, TtotalRun
from planner.errors import AwsError, Undecided
from scripts.aws.clients import error_code
from scripts.aws.cloudwatch import metric
from scripts.aws.counts import RETRY_LIMIT_S, request_count
from scripts.aws.endpoint import Counts, log_group, read_counts
from scripts.aws.freeze import Frozen
from scripts.aws.logs import Tail, streams
from scripts.aws.waiting import Clock, Progress, persist
from scripts.scaleout import recovery
from scripts.scaleout.probe import Probe
from scripts.scaleout.stages import TYPICAL_S, StageLog, dominant, durations

BASELINE_LIMIT_S = 300.0
# A describe right after the call may still show the old count.
ACCEPTANCE_S = 30.0
RECENT = 60
"""Requests whose p95 the progress line shows while the fleet recovers."""
_NEVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Settings:
    """How a scale-out is measured."""

    concurrency: int
    metric: SloMetric
    target_p95_ms: float | None
    """Recovered means at or under this; None: ``factor`` x what the probe itself measures at half the concurrency."""
    factor: float = 1.25
    baseline_s: float = 30.0
    hold_s: float = 60.0
    poll_s: float = 2.0
    max_wait_s: float = 1800.0
    metric_wait_s: float = 60.0


@dataclass
class ScaleOut:
    """Mutable state of one run; ``measure`` does it all."""

    held: Frozen
    probe: Probe
    settings: Settings
    number: int = 0
    log: StageLog = field(default_factory=StageLog)
    _known_boots: set[str] = field(default_factory=set)
    _p95_before_ms: float | None = None
    _target_p95_ms: float = 0.0
    _started: datetime = _NEVER
    _first: int = 0

    @property
    def clock(self) -> Clock:
        return self.held.clock

    @property
    def progress(self) -> Progress:
        return self.held.progress

    def measure(self) -> TtotalRun:
        """Reference, baseline, scale out, watch."""
        live = self.held.live
        self._target_p95_ms = self.settings.target_p95_ms or self.settings.factor * self._reference_ms()
        self._load(self.settings.concurrency)
        try:
            self._baseline()
            tail = Tail(live.name, live.variant, streams(live.name, live.variant))
            try:
                self._set_desired(live.current_instances + 1)
            except AwsError as error:
                outcome = _refusal(error)
                if outcome is None:
                    raise
                return self._failed(outcome, error.message)
            return self._watch(tail)
        finally:
            self.probe.stop()

    @property
    def _records(self) -> list[RequestRecord]:
        return self.probe.records[self._first :]

    def _load(self, users: int) -> None:
        self._first = len(self.probe.records)
        self.probe.start(self.number, users)

    def _reference_ms(self) -> float:
        """p95 of half the users: what each of two instances will have to do."""
        half = self.settings.concurrency // 2
        self._load(half)
        try:
            return self._steady_p95_ms(half, f"probing at {half}, half the concurrency")
        finally:
            self.probe.stop()

    def _baseline(self) -> None:
        self._p95_before_ms = self._steady_p95_ms(self.settings.concurrency, "probing before the scale-out")
        self._known_boots = set(recovery.boot_ids(self._records))
        if self._p95_before_ms <= self._target_p95_ms:
            raise Undecided(
                f"p95 is {self._p95_before_ms:.0f} ms before the scale-out, already under the target of "
                f"{self._target_p95_ms:.0f} ms: recovery could not be seen",
                "raise --probe-concurrency; if the endpoint is faster today than its ladder says, --reference probe",
            )

    def _steady_p95_ms(self, users: int, doing: str) -> float:
        started = self.clock.monotonic()
        while True:
            elapsed_s = self.clock.monotonic() - started
            # The first answer of each user contains the filling of the queue.
            steady = sorted(self._records, key=lambda record: record.sent_ns)[users:]
            found = recovery.p95_ms(steady, self.settings.metric)
            if elapsed_s >= self.settings.baseline_s and found is not None:
                return found
            if elapsed_s > max(BASELINE_LIMIT_S, self.settings.baseline_s):
                raise Undecided(
                    f"only {len(steady)} requests were answered in {elapsed_s:.0f} s at concurrency {users} "
                    f"({_outcomes(self._records)})",
                    f"look at {log_group(self.held.live.name)}; lower --probe-concurrency",
                )
            self.progress.show(doing, elapsed_s, self.settings.baseline_s)
            self.clock.sleep(0.5)

    def _set_desired(self, instances: int) -> None:
        live = self.held.live

        def ask() -> datetime:
            at = self.clock.now()
            request_count(live.name, live.variant, instances)
            return at

        self._started = persist(ask, self.clock, RETRY_LIMIT_S)
        self.log.add("desired_set", self._started, "sagemaker")

    def _watch(self, tail: Tail) -> TtotalRun:
        live = self.held.live
        wanted = live.current_instances + 1
        last_poll = self._started
        accepted = False
        while True:
            self.clock.sleep(self.settings.poll_s)
            counts = persist(lambda: read_counts(live.name, live.variant), self.clock, RETRY_LIMIT_S)
            now = self.clock.now()
            self.log.add_lines(persist(tail.poll, self.clock, RETRY_LIMIT_S))
            self._stamp_in_service(counts, wanted, last_poll, now)
            last_poll = now
            found = self._traffic(wanted)
            if found is not None:
                return self._measured(found)
            elapsed_s = (now - self._started).total_seconds()
            accepted = accepted or counts.desired == wanted or elapsed_s > ACCEPTANCE_S or counts.status != "InService"
            failure = _failure(counts, wanted, live.config_name)
            if failure is not None and accepted:
                return self._failed(*failure)
            if elapsed_s > self.settings.max_wait_s:
                return self._failed(*self._overdue(elapsed_s))
            self._show(now)

    def _stamp_in_service(self, counts: Counts, wanted: int, last_poll: datetime, now: datetime) -> None:
        if not counts.settled or counts.current < wanted:
            return
        changed = counts.modified_at
        exact = changed is not None and last_poll <= changed <= now
        at = changed if exact and changed is not None else now
        self.log.add("in_service", at, "sagemaker", bounded=not exact)

    def _traffic(self, wanted: int) -> recovery.Recovered | None:
        records = self._records
        first_ns = recovery.first_traffic_ns(records, self._known_boots) if self._known_boots else None
        if first_ns is not None:
            self.log.add("first_traffic", self._utc(first_ns), "probe")
        in_service = self.log.seen.get("in_service")
        if first_ns is None and (self._known_boots or in_service is None):
            return None
        after_ns = first_ns if first_ns is not None else self._monotonic_ns(in_service.at) if in_service else 0
        return recovery.recovered(
            records,
            self.settings.metric,
            target_ms=self._target_p95_ms,
            hold_ns=round(self.settings.hold_s * 1e9),
            after_ns=after_ns,
            now_ns=self._monotonic_ns(self.clock.now()),
            instances=wanted if self._known_boots else 0,
        )

    def _measured(self, found: recovery.Recovered) -> TtotalRun:
        self.log.add("traffic_recovered", self._utc(found.at_ns), "probe")
        window = [r for r in self._records if found.at_ns <= r.sent_ns < found.until_ns]
        stages = self.log.stages()
        parts = durations(stages)
        return self._run(
            "measured",
            "",
            t_total_s=(self._utc(found.at_ns) - self._started).total_seconds(),
            stages=stages,
            durations=parts,
            dominant=dominant(parts),
            probe_p95_after_ms=found.p95_ms,
            requests_per_boot_id=dict(recovery.boot_ids(window)),
            concurrency_metric_readings=self._readings(found),
        )

    def _readings(self, found: recovery.Recovered) -> list[float]:
        """10 s Maximum in the periods that lie wholly inside the recovered hold, waiting for late ones."""
        start, end = self._utc(found.at_ns), self._utc(found.until_ns)
        expected = max(0, int((end - start).total_seconds() // 10) - 1)
        waited = self.clock.monotonic()
        while True:
            readings = self._inside(start, end)
            elapsed_s = self.clock.monotonic() - waited
            if len(readings) >= expected or elapsed_s > self.settings.metric_wait_s:
                return readings
            self.progress.show("waiting for CloudWatch", elapsed_s, 30)
            self.clock.sleep(self.settings.poll_s)

    def _inside(self, start: datetime, end: datetime) -> list[float]:
        live = self.held.live
        period = timedelta(seconds=10)
        points = metric("ConcurrentRequestsPerModel", live.name, live.variant, "Maximum", 10, start - period, end)
        return [value for at, value in points if start <= at and at + period <= end]

    def _failed(self, outcome: RunOutcome, detail: str) -> TtotalRun:
        stages = self.log.stages()
        return self._run(outcome, detail, t_total_s=None, stages=stages, durations=durations(stages))

    def _run(self, outcome: RunOutcome, detail: str, **more: Any) -> TtotalRun:
        self.progress.done()
        count = self.held.live.current_instances
        return TtotalRun(
            run=self.number,
            outcome=outcome,
            detail=detail,
            from_instances=count,
            to_instances=count + 1,
            probe_p95_before_ms=self._p95_before_ms,
            probe_p95_recovered_target_ms=self._target_p95_ms,
            **more,
        )

    def _overdue(self, elapsed_s: float) -> tuple[RunOutcome, str]:
        seen = {stage.name for stage in self.log.stages()}
        after = f"after {elapsed_s:.0f} s (--max-wait-s)"
        if "in_service" in seen:
            p95 = recovery.p95_ms(self._records[-RECENT:], self.settings.metric)
            now = "unknown" if p95 is None else f"{p95:.0f} ms"
            return (
                "not_recovered",
                f"InService, but p95 is {now}, not under {self._target_p95_ms:.0f} ms {after}",
            )
        if "instance_logging" in seen:
            return "unhealthy", f"the new container logs but was not ready {after}; waiting for {self.log.waiting_for}"
        return "timeout", f"no new instance {after}; last seen stage: {max(seen, default='none')}"

    def _show(self, now: datetime) -> None:
        stage = self.log.waiting_for
        since_s = (now - self.log.since(self._started)).total_seconds()
        total_s = (now - self._started).total_seconds()
        more = f"; {total_s:.0f} s in all"
        if stage == "traffic_recovered" and (p95 := recovery.p95_ms(self._records[-RECENT:], self.settings.metric)):
            more += f"; p95 {p95:.0f} ms, target {self._target_p95_ms:.0f} ms"
        self.progress.show(f"waiting for {stage}", since_s, TYPICAL_S.get(stage), more)

    def _utc(self, monotonic_ns: int) -> datetime:
        anchor = self.probe.anchor
        return datetime.fromtimestamp((anchor.utc_ns + monotonic_ns - anchor.monotonic_ns) / 1e9, UTC)

    def _monotonic_ns(self, at: datetime) -> int:
        anchor = self.probe.anchor
        return round(at.timestamp() * 1e9) - anchor.utc_ns + anchor.monotonic_ns


def _refusal(error: AwsError) -> RunOutcome | None:
    """SageMaker said no at once."""
    cause = error.__cause__
    if isinstance(cause, ClientError) and error_code(cause) in {"ResourceLimitExceeded", "LimitExceededException"}:
        return "quota"
    return None


def _failure(counts: Counts, wanted: int, config_name: str) -> tuple[RunOutcome, str] | None:
    """SageMaker gave up by itself: settled below what was asked, Failed, or on another configuration."""
    reason = counts.failure_reason or "no FailureReason"
    if counts.config_name != config_name:
        return "rollback", f"the endpoint now runs configuration {counts.config_name}, not {config_name}: {reason}"
    if counts.status != "Failed" and not (counts.settled and counts.desired < wanted):
        return None
    return classify(reason), f"{reason} (desired went back to {counts.desired})"


def classify(reason: str) -> RunOutcome:
    """What a FailureReason means."""
    text = reason.lower()
    if "quota" in text or ("limit" in text and "exceed" in text):
        return "quota"
    if "capacity" in text:
        return "no_capacity"
    if "health" in text or "ping" in text:
        return "unhealthy"
    return "rollback"


def _outcomes(records: list[RequestRecord]) -> str:
    counted = Counter(record.outcome for record in records)
    return ", ".join(f"{count} {name}" for name, count in sorted(counted.items())) or "no request ended"
