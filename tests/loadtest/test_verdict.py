"""Tables of rungs and ladders with the verdict a careful reader would give."""

from __future__ import annotations

from typing import Any

import pytest

from loadtest.steadiness import Steadiness
from loadtest.verdict import (
    Answer,
    ClientLoad,
    RungFacts,
    bisect,
    client_bound,
    conclude,
    judge,
    saturation,
    worst,
)

SLO_MS = 3000.0
STEADY = Steadiness(True, 0.0)


def facts(**changes: Any) -> RungFacts:
    defaults: dict[str, Any] = {
        "concurrency": 10,
        "slo_ms": SLO_MS,
        "values_ms": [2000.0] * 200,
        "in_flight_mean": 9.98,
        "steadiness": STEADY,
    }
    return RungFacts(**(defaults | changes))


@pytest.mark.parametrize(
    ("changes", "verdict", "point", "reason"),
    [
        ({}, "pass", "pass", ""),
        ({"values_ms": [3000.0] * 200}, "pass", "pass", ""),
        ({"values_ms": [3001.0] * 200}, "fail", "fail", ""),
        ({"values_ms": [2000.0] * 191 + [4000.0] * 9}, "undecided", "pass", "upper"),
        ({"values_ms": [2000.0] * 189 + [4000.0] * 11}, "undecided", "fail", "lower"),
        ({"values_ms": [2000.0] * 58}, "undecided", "pass", "59"),
        ({"values_ms": [2000.0] * 59}, "pass", "pass", ""),
        ({"values_ms": [5000.0] * 20}, "fail", "fail", ""),
        ({"values_ms": [2000.0] * 199, "failed": 1}, "pass", "pass", ""),
        ({"values_ms": [2000.0] * 190, "failed": 10}, "invalid", "pass", "10 of 200 requests failed"),
        ({"rejected": 1}, "invalid", "pass", "rejected"),
        ({"in_flight_mean": 9.4}, "invalid", "pass", "in flight"),
        ({"in_flight_mean": 9.5}, "pass", "pass", ""),
        ({"steadiness": Steadiness(False, 900.0, "level shift inside the window")}, "invalid", "pass", "level shift"),
        ({"steadiness": Steadiness(None, None)}, "pass", "pass", ""),
        ({"voids": ["a load worker was lost"]}, "invalid", "pass", "worker"),
        ({"values_ms": []}, "invalid", None, "no request ended well"),
        ({"values_ms": [], "failed": 40}, "invalid", None, "40 of 40"),
    ],
)
def test_rung_verdicts(changes: dict[str, Any], verdict: str, point: str | None, reason: str) -> None:
    found = judge(facts(**changes))
    assert (found.verdict, found.point) == (verdict, point)
    assert reason in "; ".join(found.reasons)
    assert bool(found.reasons) == bool(reason)


@pytest.mark.parametrize(
    ("load", "typical_ms", "word"),
    [
        (ClientLoad(2.0, 3.0, 0.5), 60.0, ""),
        (ClientLoad(None, None, None), None, ""),
        (ClientLoad(2.0, 3.0, 0.95), 60.0, "core"),
        (ClientLoad(2.0, 11.0, 0.5), 60.0, "event loop"),
        (ClientLoad(2.0, 11.0, 0.5), 3000.0, ""),
        (ClientLoad(160.0, 3.0, 0.5), 3000.0, "next request"),
    ],
)
def test_client_bound(load: ClientLoad, typical_ms: float | None, word: str) -> None:
    found = client_bound(load, typical_ms)
    assert word in found
    assert bool(found) == bool(word)


@pytest.mark.parametrize(
    ("verdicts", "outcome", "q_max", "bracketed", "note"),
    [
        ({1: "pass", 50: "pass", 60: "fail"}, "found", 50, True, ""),
        ({60: "fail", 50: "pass", 1: "pass"}, "found", 50, True, ""),
        ({1: "pass", 5: "pass"}, "lower_bound", 5, False, "lower bound"),
        ({1: "fail", 5: "fail"}, "none_meets_slo", None, False, ""),
        ({1: "pass", 5: "fail", 10: "pass"}, "found", 1, True, "N=10 passes although N=5 fails"),
        ({1: "fail", 5: "pass"}, "none_meets_slo", None, False, "not monotone"),
        ({1: "pass", 5: "undecided", 10: "fail"}, "found", 1, True, "no verdict at N=5"),
        ({1: "pass", 5: "pass", 10: "invalid"}, "lower_bound", 5, False, "no verdict at N=10"),
        ({1: "undecided", 5: "fail"}, "undecided", None, False, ""),
        ({1: "invalid", 5: "invalid"}, "undecided", None, False, ""),
        ({1: "invalid", 5: "pass", 10: "fail"}, "found", 5, True, ""),
    ],
)
def test_ladder_answers(verdicts: Any, outcome: str, q_max: int | None, bracketed: bool, note: str) -> None:
    found = conclude(list(verdicts.items()))
    assert (found.outcome, found.q_max, found.bracketed) == (outcome, q_max, bracketed)
    assert note in "; ".join(found.notes)
    assert bool(found.notes) == bool(note)


@pytest.mark.parametrize(
    ("answers", "outcome", "q_max"),
    [
        ([Answer("found", 50), Answer("found", 40)], "found", 40),
        ([Answer("found", 50), Answer("lower_bound", 60)], "found", 50),
        ([Answer("found", 50), Answer("undecided", None)], "undecided", None),
        ([Answer("found", 50), Answer("none_meets_slo", None)], "none_meets_slo", None),
    ],
)
def test_several_runs_give_the_worst(answers: list[Answer], outcome: str, q_max: int | None) -> None:
    found = worst(answers)
    assert (found.outcome, found.q_max) == (outcome, q_max)


@pytest.mark.parametrize(
    ("throughput", "knee"),
    [
        ([(1, 16.08), (5, 17.9), (10, 17.92), (60, 17.9)], 5),
        ([(1, 10.0), (2, 20.0), (4, 40.0)], None),
        ([(1, 10.0)], None),
        ([], None),
    ],
)
def test_saturation(throughput: list[tuple[int, float]], knee: int | None) -> None:
    assert saturation(throughput) == knee


def test_bisection_ends_next_to_the_answer() -> None:
    q_max, first_fail, tried = 50, 60, [50, 60]
    while (middle := bisect(q_max, first_fail, tried)) is not None:
        tried.append(middle)
        q_max, first_fail = (middle, first_fail) if middle <= 53 else (q_max, middle)
    assert (q_max, first_fail) == (53, 54)
    assert len(tried) == 6
