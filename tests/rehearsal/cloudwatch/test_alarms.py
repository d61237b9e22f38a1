"""Alarm states against the tables of CloudWatch's documentation ("Configuring how alarms treat missing data")."""

from __future__ import annotations

import pytest

from rehearsal.cloudwatch.alarms import decide

PRESENT = {"-": None, "0": 0.0, "X": 1.0}
RETAINED = "retained"


def state(points: str, needed: int, missing: str, now: str = RETAINED) -> str:
    return decide(
        [PRESENT[each] for each in points.split()],
        lambda value: value > 0.5,
        needed=needed,
        of=3,
        missing=missing,
        now=now,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("points", "missing", "ignore", "breaching", "not_breaching"),
    [
        ("0 - X - X", "OK", "OK", "OK", "OK"),
        ("0 - - - -", "OK", "OK", "OK", "OK"),
        ("- - - - -", "INSUFFICIENT_DATA", RETAINED, "ALARM", "OK"),
        ("0 X X - X", "ALARM", "ALARM", "ALARM", "ALARM"),
        ("- - X - -", "ALARM", RETAINED, "ALARM", "OK"),
    ],
)
def test_three_of_three(points: str, missing: str, ignore: str, breaching: str, not_breaching: str) -> None:
    assert state(points, 3, "missing") == missing
    assert state(points, 3, "ignore") == ignore
    assert state(points, 3, "breaching") == breaching
    assert state(points, 3, "notBreaching") == not_breaching


@pytest.mark.parametrize(
    ("points", "missing", "ignore", "breaching", "not_breaching"),
    [
        ("0 - X - X", "ALARM", "ALARM", "ALARM", "ALARM"),
        ("0 0 X 0 X", "ALARM", "ALARM", "ALARM", "ALARM"),
        ("0 - X - -", "OK", "OK", "ALARM", "OK"),
        ("- - - - 0", "OK", "OK", "ALARM", "OK"),
        ("- - - X -", "ALARM", RETAINED, "ALARM", "OK"),
    ],
)
def test_two_of_three(points: str, missing: str, ignore: str, breaching: str, not_breaching: str) -> None:
    assert state(points, 2, "missing") == missing
    assert state(points, 2, "ignore") == ignore
    assert state(points, 2, "breaching") == breaching
    assert state(points, 2, "notBreaching") == not_breaching


def test_a_breach_that_just_began_does_not_alarm_for_lack_of_history() -> None:
    assert state("- - - - X", 3, "missing", now="INSUFFICIENT_DATA") == "INSUFFICIENT_DATA"
    assert state("- - - X X", 3, "missing", now="INSUFFICIENT_DATA") == "INSUFFICIENT_DATA"
    assert state("- - X X X", 3, "missing", now="INSUFFICIENT_DATA") == "ALARM"


def test_one_late_period_does_not_hide_three_that_are_there() -> None:
    assert state("0 X X X -", 3, "missing") == "ALARM"
