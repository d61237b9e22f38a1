"""When scheduled actions are due."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from rehearsal.autoscaling.schedule import Schedule, ScheduleError


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("expression", "zone", "now", "expected"),
    [
        ("at(2026-11-29T18:00:00)", "UTC", "2026-11-29T17:59:59", "2026-11-29T18:00:00"),
        ("at(2026-11-29T18:00:00)", "Europe/Berlin", "2026-11-29T12:00:00", "2026-11-29T17:00:00"),
        ("at(2026-11-29T18:00:00)", "UTC", "2026-11-29T18:00:00", None),
        ("rate(5 minutes)", "UTC", "2026-11-29T18:00:00", "2026-11-29T18:05:00"),
        ("cron(0 8 ? * MON-FRI *)", "UTC", "2026-11-29T18:00:00", "2026-11-30T08:00:00"),
        ("cron(30 9 1 JAN ? *)", "UTC", "2026-11-29T18:00:00", "2027-01-01T09:30:00"),
        ("cron(0/15 * * * ? *)", "UTC", "2026-11-29T18:07:30", "2026-11-29T18:15:00"),
        ("cron(0 8 * * ? *)", "America/New_York", "2026-11-29T12:00:00", "2026-11-29T13:00:00"),
        ("cron(0 8 * * ? 2020)", "UTC", "2026-11-29T12:00:00", None),
    ],
)
def test_next(expression: str, zone: str, now: str, expected: str | None) -> None:
    assert Schedule.parse(expression, zone).after(at(now)) == (at(expected) if expected else None)


@pytest.mark.parametrize(
    ("expression", "zone"),
    [
        ("daily", "UTC"),
        ("at(tomorrow)", "UTC"),
        ("rate(0 minutes)", "UTC"),
        ("rate(5 fortnights)", "UTC"),
        ("cron(0 8 * *)", "UTC"),
        ("cron(61 8 * * ? *)", "UTC"),
        ("cron(x 8 * * ? *)", "UTC"),
        ("at(2026-11-29T18:00:00)", "Mars/Olympus"),
    ],
)
def test_refused(expression: str, zone: str) -> None:
    with pytest.raises(ScheduleError):
        Schedule.parse(expression, zone)
