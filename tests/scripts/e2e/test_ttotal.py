"""T_total against a rehearsal: measured stages, named failures, and the endpoint always as it was found."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from datetime import datetime

import pytest

from planner.artifacts.ttotal import STAGES
from tests.scripts.e2e.conftest import Rehearsed

pytestmark = pytest.mark.e2e

POLL_S = 0.5
PROVISIONING_S = 2.0
WEIGHTS_S = 1.5


@pytest.fixture(scope="module")
def rehearsed(rehearse: Callable[..., Rehearsed]) -> Rehearsed:
    """Waits that a test stops in last several polls, so that progress always names them."""
    return rehearse(
        stages=f"provisioning={PROVISIONING_S},container_start=0.2,health_check=0.3,routing=0",
        container=f"framework_init=0.01,weights_ready={WEIGHTS_S},warmup_done=0.1",
    )


@pytest.fixture(autouse=True)
def as_found(rehearsed: Rehearsed) -> Iterator[None]:
    """Whatever a test does, the account ends as it began."""
    rehearsed.settle()
    before = rehearsed.durable()
    yield
    rehearsed.clear()
    rehearsed.settle()
    assert rehearsed.durable() == before


def artifact(text: str) -> dict:
    return json.loads(text)


def until(process, mark: str) -> None:
    """Read progress until a line contains ``mark``."""
    for line in process.stderr:
        if mark in line:
            return
    raise AssertionError(f"{mark!r} never came; exit {process.wait()}")


def test_a_scale_out_is_measured_by_stage(rehearsed):
    result = rehearsed.run("ttotal", *rehearsed.ttotal_flags(), "--json")
    assert result.returncode == 0, result.stderr
    made = artifact(result.stdout)
    run = made["runs"][0]
    assert [stage["name"] for stage in run["stages"]] == list(STAGES)
    assert sum(part["share_pct"] for part in run["durations"]) == pytest.approx(100)
    assert sum(part["seconds"] for part in run["durations"]) == pytest.approx(run["t_total_s"])
    assert made["t_total_s"] == run["t_total_s"]
    assert len(run["requests_per_boot_id"]) == 2
    assert made["policy_lag"]["source"] == "deployed"
    # 10 s period x 3 datapoints + the 30 s cooldown that was deployed
    assert made["policy_lag"]["bound_s"] == 60
    seconds = {part["end"]: part["seconds"] for part in run["durations"]}
    assert seconds["instance_logging"] == pytest.approx(PROVISIONING_S, abs=0.5)
    assert seconds["weights_ready"] == pytest.approx(WEIGHTS_S, abs=0.3)
    assert seconds["in_service"] == pytest.approx(0.3, abs=0.5)
    assert len(list(rehearsed.out.glob("ttotal-*"))) == 4  # artifact, records, png, svg
    seen = {stage["name"]: datetime.fromisoformat(stage["at"]).timestamp() for stage in run["stages"]}
    for event, stage in (("stage_container_start", "instance_logging"), ("inservice", "in_service")):
        truth = rehearsed.admin("events")
        happened = max(item["at_utc_s"] for item in truth if item["event"] == event)
        assert seen[stage] == pytest.approx(happened, abs=POLL_S), stage


@pytest.mark.parametrize(
    ("fault", "parameters", "outcome", "code"),
    [
        ("no-capacity", {"after_s": "1"}, "no_capacity", 5),
        pytest.param("unhealthy", {"after_s": "2"}, "unhealthy", 3, marks=pytest.mark.slow),
        pytest.param("rollback", {}, "rollback", 3, marks=pytest.mark.slow),
    ],
)
def test_a_failure_is_named_and_gives_no_t_total(rehearsed, fault, parameters, outcome, code):
    rehearsed.fault(fault, **parameters)
    result = rehearsed.run("ttotal", *rehearsed.ttotal_flags(), "--json")
    assert result.returncode == code, result.stderr
    made = artifact(result.stdout)
    assert made["t_total_s"] is None
    assert [run["outcome"] for run in made["runs"]] == [outcome]
    assert made["runs"][0]["t_total_s"] is None
    assert made["runs"][0]["detail"]


@pytest.mark.slow
def test_a_full_quota_is_named_with_its_code(rehearsed):
    rehearsed.fault("quota", value="1")
    result = rehearsed.run("ttotal", *rehearsed.ttotal_flags())
    assert result.returncode == 5
    assert "quota: ml.g5.xlarge for endpoint usage (L-" in result.stderr
    assert "request-service-quota-increase" in result.stderr


@pytest.mark.parametrize(
    ("number", "mark"),
    [
        (signal.SIGTERM, "waiting for instance_logging"),
        pytest.param(signal.SIGINT, "waiting for traffic_recovered", marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, "tagging the endpoint", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, "suspending scaling", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, "probing before", marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, "waiting for weights_ready", marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, "restoring 1", marks=pytest.mark.slow),
        pytest.param(signal.SIGINT, "restoring scaling", marks=pytest.mark.slow),
    ],
)
def test_a_stopped_run_restores_by_itself(rehearsed, number, mark):
    process = rehearsed.start("ttotal", *rehearsed.ttotal_flags())
    until(process, mark)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert number.name in err


@pytest.mark.parametrize(
    "mark",
    [
        "waiting for weights_ready",
        pytest.param("tagging the endpoint", marks=pytest.mark.slow),
        pytest.param("suspending scaling", marks=pytest.mark.slow),
        pytest.param("probing before", marks=pytest.mark.slow),
        pytest.param("waiting for instance_logging", marks=pytest.mark.slow),
        pytest.param("waiting for traffic_recovered", marks=pytest.mark.slow),
        pytest.param("restoring 1", marks=pytest.mark.slow),
        pytest.param("restoring scaling", marks=pytest.mark.slow),
    ],
)
def test_a_killed_run_is_refused_reported_and_thawed(rehearsed, mark, tmp_path):
    process = rehearsed.start("ttotal", *rehearsed.ttotal_flags())
    until(process, mark)
    process.kill()
    process.communicate(timeout=60)
    drift = rehearsed.run("drift", "--model", "m", "--artifacts", str(rehearsed.out))
    if mark != "tagging the endpoint":  # nothing had been changed yet
        assert drift.returncode == 3
        assert "make thaw" in drift.stdout
        again = rehearsed.run("ttotal", *rehearsed.ttotal_flags())
        assert again.returncode == 2
        assert "make thaw" in again.stderr
    thawed = rehearsed.run("thaw", HEADROOM_STATE_DIR=str(tmp_path / "another machine"))
    assert thawed.returncode == 0, thawed.stderr


@pytest.mark.slow
def test_two_runs_at_once_the_second_names_the_first(rehearsed):
    first = rehearsed.start("ttotal", *rehearsed.ttotal_flags())
    until(first, "frozen")
    second = rehearsed.run("ttotal", *rehearsed.ttotal_flags())
    assert second.returncode == 2
    assert f"process {first.pid}" in second.stderr
    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=60)


@pytest.mark.slow
def test_throttled_and_failing_control_calls_lose_no_stamp(rehearsed):
    rehearsed.fault("throttle", rate="0.4")
    rehearsed.fault("server-error", rate="0.1")
    result = rehearsed.run("ttotal", *rehearsed.ttotal_flags(), "--json")
    assert result.returncode == 0, result.stderr
    run = artifact(result.stdout)["runs"][0]
    assert [stage["name"] for stage in run["stages"]] == list(STAGES)


@pytest.mark.slow
def test_late_logs_are_waited_for(rehearsed):
    rehearsed.fault("late-logs", delay_s="4")
    result = rehearsed.run("ttotal", *rehearsed.ttotal_flags(**{"hold-s": "8"}), "--json")
    run = artifact(result.stdout)["runs"][0]
    seconds = {part["end"]: part["seconds"] for part in run["durations"]}
    assert seconds["instance_logging"] == pytest.approx(PROVISIONING_S, abs=0.5)
    assert seconds["weights_ready"] == pytest.approx(WEIGHTS_S, abs=0.3)


@pytest.mark.slow
def test_repeats_keep_every_run_and_count_the_worst(rehearsed):
    result = rehearsed.run("ttotal", *rehearsed.ttotal_flags(repeat="2"), "--json")
    assert result.returncode == 0, result.stderr
    made = artifact(result.stdout)
    totals = [run["t_total_s"] for run in made["runs"]]
    assert len(totals) == 2
    assert made["t_total_s"] == max(totals)
    assert made["spread_pct"] == pytest.approx(100 * (max(totals) - min(totals)) / min(totals))
