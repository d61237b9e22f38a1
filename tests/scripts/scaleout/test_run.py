"""One scale-out against a fake account with a probe that is played back: every outcome, every stamp."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from planner.artifacts.records import Anchor, RequestRecord
from planner.errors import AwsError, Undecided
from scripts.aws.endpoint import describe
from scripts.aws.freeze import frozen
from scripts.scaleout.run import ScaleOut, Settings

SECOND = 1_000_000_000
# Seconds after the scale-out request at which the fake's world changes.
LOGS_AT, CONTAINER_AT, READY_AT, IN_SERVICE_AT, TRAFFIC_AT = 10.0, 12.0, 15.0, 20.0, 24.0
THROTTLED = ["ThrottlingException", "Rate exceeded", 400]


class World:
    """Moves the account and the probe with the clock."""

    def __init__(self, fake, clock, *, gives_up: str | None = None, boots: bool = True, recovers: bool = True) -> None:
        self.fake, self.clock = fake, clock
        self.gives_up, self.boots, self.recovers = gives_up, boots, recovers
        self.anchor = Anchor("probe", 0, round(clock.now().timestamp() * SECOND))
        self.records: list[RequestRecord] = []
        self.asked_at: float | None = None
        self.running = False
        self.users: list[int] = []
        self._next = 0.0
        sleep = clock.sleep

        def sleep_and_move(seconds: float) -> None:
            sleep(seconds)
            self.move()

        clock.sleep = sleep_and_move

    def start(self, run: int, users: int) -> None:  # noqa: ARG002
        self.running = True
        self.users.append(users)
        self._next = self.clock.slept_s

    def stop(self) -> None:
        self.running = False

    def move(self) -> None:
        now = self.clock.slept_s
        state = self.fake.state
        if self.asked_at is None and state["endpoint"]["desired"] == 2:
            self.asked_at = now
        since = -1.0 if self.asked_at is None else now - self.asked_at
        while self.running and self._next <= now:
            self._answer(since)
            self._next += 0.1
        if self.asked_at is not None:
            self._advance(since)

    def _answer(self, since: float) -> None:
        shared = since >= TRAFFIC_AT and self.gives_up is None
        slow = not (shared and self.recovers)
        boot = "new" if shared and len(self.records) % 2 else "old"
        sent = round(self._next * SECOND)
        first = sent + round((50 * self.users[-1] if slow else 100) * 1e6)
        seen = boot if self.boots else None
        self.records.append(
            RequestRecord("probe", 0, 0, sent, sent, sent, first, first, "ok", None, 200, 1, 1, 0, seen)
        )

    def _advance(self, since: float) -> None:
        assert self.asked_at is not None
        start = self.clock.now() - timedelta(seconds=self.clock.slept_s - self.asked_at)
        with self.fake.edit() as state:
            endpoint = state["endpoint"]
            if endpoint["desired"] == 1:  # the restore, at once
                endpoint.update(status="InService", current=1)
                return
            if self.gives_up is not None and since >= 8 and endpoint["desired"] == 2:
                endpoint.update(status="InService", desired=1, current=1, reason=self.gives_up)
                self.asked_at = None
                return
            if since >= IN_SERVICE_AT and self.gives_up is None and endpoint["desired"] == 2:
                endpoint.update(status="InService", current=2)
            lines = [(LOGS_AT, "hello")]
            lines += [
                (at, f"=== STAGE {name} t={round((start + timedelta(seconds=at)).timestamp() * 1000)} elapsed_s=0 ===")
                for name, at in (("container_started", CONTAINER_AT), ("warmup_done", READY_AT))
            ]
            if self.gives_up is None:
                state["logs"]["v/new"] = [
                    [(start + timedelta(seconds=at)).timestamp() * 1000, text] for at, text in lines if at <= since
                ]


def measure(clock, world: World, **changes: Any):
    settings = {"concurrency": 10, "metric": "ttfab", "target_p95_ms": 200.0, "baseline_s": 5.0, "hold_s": 20.0}
    settings |= {"poll_s": 2.0, "max_wait_s": 120.0, "metric_wait_s": 0.0} | changes
    with frozen(describe("e", "v"), run_id="r", ttl_s=600, clock=clock, force=True) as held:
        return ScaleOut(held, world, Settings(**settings)).measure()


@pytest.fixture
def fake(account):
    return account(slow_polls=10**6, logs={"v/old": []})


@pytest.fixture(autouse=True)
def returning(fake):
    """The restore's own count change completes at once."""
    yield
    assert fake.state["target"] == {"min": 1, "max": 4, "suspended": [False, False, False]}
    assert fake.state["tags"] == {}
    assert fake.state["endpoint"]["desired"] == 1


def seconds(run) -> dict[str, float]:
    start = run.stages[0].at
    return {stage.name: (stage.at - start).total_seconds() for stage in run.stages}


def test_every_stage_within_one_poll(fake, clock):
    run = measure(clock, World(fake, clock))
    assert run.outcome == "measured"
    found = seconds(run)
    assert found["instance_logging"] == pytest.approx(LOGS_AT, abs=2)
    assert found["container_started"] == pytest.approx(CONTAINER_AT, abs=2)
    assert found["warmup_done"] == pytest.approx(READY_AT, abs=2)
    assert found["in_service"] == pytest.approx(IN_SERVICE_AT, abs=2)
    assert found["first_traffic"] == pytest.approx(TRAFFIC_AT, abs=2)
    assert run.t_total_s == pytest.approx(TRAFFIC_AT, abs=2)
    assert "framework_init" not in found
    assert sum(part.share_pct for part in run.durations) == pytest.approx(100)
    assert set(run.requests_per_boot_id) == {"old", "new"}


@pytest.mark.parametrize("operation", ["describe_endpoint", "describe_log_streams", "get_log_events"])
def test_throttling_and_server_errors_lose_no_stamp(fake, clock, operation):
    world = World(fake, clock)
    move = world.move
    armed = []

    def arm_then_move() -> None:
        move()
        if world.asked_at is not None and not armed:
            armed.append(True)
            with fake.edit() as state:
                state["failures"][operation] = [THROTTLED, ["InternalFailure", "", 500], THROTTLED]

    world.move = arm_then_move  # type: ignore[method-assign]
    run = measure(clock, world)
    assert run.outcome == "measured"
    assert seconds(run)["container_started"] == pytest.approx(CONTAINER_AT, abs=2)


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("InsufficientInstanceCapacity: no capacity", "no_capacity"),
        ("account-level service limit is exceeded", "quota"),
        ("did not pass the ping health check", "unhealthy"),
        ("rolled back because an alarm fired", "rollback"),
    ],
)
def test_sagemaker_gives_up(fake, clock, reason, outcome):
    run = measure(clock, World(fake, clock, gives_up=reason))
    assert (run.outcome, run.t_total_s) == (outcome, None)
    assert reason in run.detail


def test_a_quota_refused_at_once(fake, clock):
    world = World(fake, clock)
    with fake.edit() as state:
        refusal = ["ResourceLimitExceeded", "ml.g5.xlarge for endpoint usage is 1", 400]
        state["failures"]["update_endpoint_weights_and_capacities"] = [refusal]
    run = measure(clock, world)
    assert (run.outcome, run.t_total_s) == ("quota", None)


def test_any_other_refusal_is_an_error(fake, clock):
    world = World(fake, clock)
    with fake.edit() as state:
        state["failures"]["update_endpoint_weights_and_capacities"] = [["AccessDeniedException", "no", 403]]
    with pytest.raises(AwsError, match="not allowed"):
        measure(clock, world)


def test_never_recovering_is_named(fake, clock):
    run = measure(clock, World(fake, clock, recovers=False))
    assert (run.outcome, run.t_total_s) == ("not_recovered", None)
    assert "500 ms" in run.detail


def test_a_configuration_that_changed_underneath_is_a_rollback(fake, clock):
    world = World(fake, clock)
    move = world.move

    def swap() -> None:
        move()
        if world.asked_at is not None:
            with fake.edit() as state:
                state["endpoint"]["config"] = "older"

    world.move = swap  # type: ignore[method-assign]
    run = measure(clock, world)
    assert run.outcome == "rollback"
    assert "older" in run.detail


def test_without_boot_ids_there_is_no_first_traffic_but_a_recovery(fake, clock):
    run = measure(clock, World(fake, clock, boots=False))
    assert run.outcome == "measured"
    assert "first_traffic" not in seconds(run)


def test_a_probe_already_under_the_target_decides_nothing(fake, clock):
    with pytest.raises(Undecided, match="already under the target"):
        measure(clock, World(fake, clock), target_p95_ms=600.0)


def test_the_probe_measures_its_own_reference_at_half_the_users(fake, clock):
    """50 ms a user: 250 ms at 5, so 312.5 ms is the target, over the 500 ms of 10 users and under the 100 ms of two."""
    world = World(fake, clock)
    run = measure(clock, world, target_p95_ms=None)
    assert world.users == [5, 10]
    assert run.probe_p95_recovered_target_ms == pytest.approx(1.25 * 250)
    assert (run.probe_p95_before_ms, run.probe_p95_after_ms) == (500, 100)
    assert run.outcome == "measured"
    assert seconds(run)["first_traffic"] == pytest.approx(TRAFFIC_AT, abs=2)


def test_a_reference_that_twice_the_load_does_not_exceed_decides_nothing(fake, clock):
    world = World(fake, clock)
    with pytest.raises(Undecided, match="already under the target of 500 ms"):
        measure(clock, world, target_p95_ms=None, factor=2.0)
    assert not world.running


def test_a_silent_endpoint_decides_nothing(fake, clock):
    world = World(fake, clock)
    world.start = lambda _run, _users: None  # type: ignore[method-assign]
    with pytest.raises(Undecided, match="no request ended"):
        measure(clock, world)


def test_the_metric_readings_lie_inside_the_hold(fake, clock):
    start = clock.now()
    points = [((start + timedelta(seconds=10 * i)).isoformat(), float(i)) for i in range(40)]
    with fake.edit() as state:
        state["metrics"] = {"ConcurrentRequestsPerModel": points}
    run = measure(clock, World(fake, clock))
    recovered = run.stages[-1].at
    inside = [i for i in range(40) if recovered <= start + timedelta(seconds=10 * i)]
    assert run.concurrency_metric_readings == [float(i) for i in inside if 10 * (i + 1) <= 10 * inside[0] + 20][:1]
