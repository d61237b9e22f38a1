"""Alarms: periods, statistics, missing data."""

from __future__ import annotations

import pytest

from planner.simulate.alarms import Alarm, AlarmSpec

HIGH = AlarmSpec("high", 37.5, above=True, period_s=10, datapoints=3)
LOW = AlarmSpec("low", 25.0, above=False, period_s=60, datapoints=3)


def states(spec: AlarmSpec, samples: list[float | None]) -> list[str]:
    alarm = Alarm(spec)
    return [alarm.state for sample in samples if alarm.feed(sample)]


@pytest.mark.parametrize(
    ("samples", "last"),
    [
        ([40, 40, 40], "ALARM"),
        ([40, 40, 37.5], "OK"),
        ([40, 40], "INSUFFICIENT_DATA"),
        ([40, 40, 40, 30], "OK"),
        ([30, 40, 40, 40], "ALARM"),
        ([None, None, None], "INSUFFICIENT_DATA"),
        ([40, None, 40], "OK"),
    ],
)
def test_three_of_three_ten_second_maxima(samples: list[float | None], last: str) -> None:
    assert states(HIGH, samples)[-1] == last


def test_minute_alarm_takes_the_maximum_of_six_samples() -> None:
    assert states(LOW, [1.0] * 18) == ["INSUFFICIENT_DATA", "INSUFFICIENT_DATA", "ALARM"]
    assert states(LOW, [1.0] * 17 + [30.0])[-1] == "OK"


def test_missing_data_breaches_only_when_asked_to() -> None:
    breaching = AlarmSpec("low", 25.0, above=False, period_s=60, datapoints=3, missing="breaching")
    assert states(LOW, [None] * 18)[-1] == "INSUFFICIENT_DATA"
    assert states(breaching, [None] * 18)[-1] == "ALARM"


@pytest.mark.parametrize(("statistic", "value"), [("Sum", 21.0), ("Average", 3.5), ("Maximum", 6.0)])
def test_statistics(statistic: str, value: float) -> None:
    alarm = Alarm(AlarmSpec("any", 0, above=True, period_s=60, datapoints=1, statistic=statistic))  # type: ignore[arg-type]
    for sample in (1, 2, 3, 4, 5, 6):
        alarm.feed(sample)
    assert alarm.latest == value
