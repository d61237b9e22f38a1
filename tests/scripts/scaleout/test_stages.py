"""Stages, durations and shares from sightings."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from scripts.aws.logs import LogLine
from scripts.scaleout.stages import StageLog, dominant, durations

START = datetime(2026, 8, 4, 14, 44, 51, 707868, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def marker(name: str, seconds: float, stream: str = "v/i-1", logged: float | None = None) -> LogLine:
    t = round(at(seconds).timestamp() * 1000)
    text = f"=== STAGE {name} t={t} elapsed_s=1.0 ==="
    return LogLine(stream, at(seconds if logged is None else logged), text)


def published() -> StageLog:
    log = StageLog()
    log.add("desired_set", at(0), "sagemaker")
    log.add_lines([LogLine("v/i-1", at(180.835), "starting")])
    log.add_lines(
        [
            marker("container_started", 184.559),
            marker("framework_init", 184.573),
            marker("weights_ready", 191.048),
            marker("warmup_done", 192.094),
        ]
    )
    log.add("in_service", at(212.807), "sagemaker", bounded=True)
    log.add("traffic_recovered", at(260.248), "probe")
    return log


def test_the_published_timeline():
    parts = durations(published().stages())
    assert [(part.start, part.end, round(part.seconds, 3)) for part in parts] == [
        ("desired_set", "instance_logging", 180.835),
        ("instance_logging", "container_started", 3.724),
        ("container_started", "framework_init", 0.014),
        ("framework_init", "weights_ready", 6.475),
        ("weights_ready", "warmup_done", 1.046),
        ("warmup_done", "in_service", 20.713),
        ("in_service", "traffic_recovered", 47.441),
    ]
    assert sum(part.share_pct for part in parts) == pytest.approx(100)
    assert dominant(parts) == "desired_set → instance_logging"


def test_a_stage_nobody_saw_is_missing_not_zero():
    log = StageLog()
    log.add("desired_set", at(0), "sagemaker")
    log.add("in_service", at(10), "sagemaker")
    parts = durations(log.stages())
    assert [(part.start, part.end, part.seconds) for part in parts] == [("desired_set", "in_service", 10.0)]


def test_a_bound_cannot_lie_after_what_came_later():
    log = StageLog()
    log.add("desired_set", at(0), "sagemaker")
    log.add("in_service", at(12), "sagemaker", bounded=True)  # seen by a late poll
    log.add("first_traffic", at(11), "probe")
    log.add("traffic_recovered", at(15), "probe")
    assert [(s.name, (s.at - START).total_seconds()) for s in log.stages()] == [
        ("desired_set", 0),
        ("in_service", 11),
        ("first_traffic", 11),
        ("traffic_recovered", 15),
    ]
    assert all(part.seconds >= 0 for part in durations(log.stages()))


def test_late_delivery_does_not_move_a_marker():
    log = StageLog()
    log.add("desired_set", at(0), "sagemaker")
    log.add_lines([marker("container_started", 5.0, logged=5.2)])
    assert (log.stages()[-1].at - START).total_seconds() == pytest.approx(5.0, abs=0.001)


def test_of_two_streams_the_one_that_came_furthest_counts():
    log = StageLog()
    log.add("desired_set", at(0), "sagemaker")
    log.add_lines([marker("container_started", 3, "v/i-dead")])
    log.add_lines([marker("container_started", 6, "v/i-2"), marker("framework_init", 7, "v/i-2")])
    assert [stage.name for stage in log.stages()][-1] == "framework_init"
    assert round((log.stages()[-2].at - START).total_seconds()) == 6


def test_the_first_sighting_counts():
    log = StageLog()
    log.add("in_service", at(1), "sagemaker")
    log.add("in_service", at(9), "sagemaker")
    assert log.stages()[0].at == at(1)


@pytest.mark.parametrize(
    ("seen", "waiting"),
    [([], "instance_logging"), (["desired_set"], "instance_logging"), (["in_service"], "first_traffic")],
)
def test_what_comes_next(seen, waiting):
    log = StageLog()
    for index, name in enumerate(seen):
        log.add(name, at(index), "x")
    assert log.waiting_for == waiting


def test_one_stage_has_no_duration():
    log = StageLog()
    log.add("desired_set", at(0), "sagemaker")
    assert durations(log.stages()) == []
    assert dominant([]) is None
