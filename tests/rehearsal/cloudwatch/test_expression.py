"""Metric math."""

from __future__ import annotations

import math

import pytest

from rehearsal.cloudwatch.expression import ExpressionError, Scope, evaluate, names

SCOPE = Scope({"a": {0: 1.0, 10: 2.0, 20: 3.0}, "b": {0: 10.0, 20: 0.0}}, (0.0, 10.0, 20.0), 10)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("a * 2 - 1", {0: 1, 10: 3, 20: 5}),
        ("-a", {0: -1, 10: -2, 20: -3}),
        ("a + b", {0: 11, 20: 3}),
        ("a ^ 2", {0: 1, 10: 4, 20: 9}),
        ("a / PERIOD(a)", {0: 0.1, 10: 0.2, 20: 0.3}),
        ("FILL(b, 0) + a", {0: 11, 10: 2, 20: 3}),
        ("FILL(b, REPEAT)", {0: 10, 10: 10, 20: 0}),
        ("IF(a > 1, a, 0)", {0: 0, 10: 2, 20: 3}),
        ("IF(a > 1, a)", {10: 2, 20: 3}),
        ("IF(a > 1 && a < 3, 1, 0)", {0: 0, 10: 1, 20: 0}),
        ("IF(a < 2 OR a >= 3, 1, 0)", {0: 1, 10: 0, 20: 1}),
        ("SUM([a, b])", {0: 11, 10: 2, 20: 3}),
        ("MAX(METRICS())", {0: 10, 10: 2, 20: 3}),
        ("a - AVG(a)", {0: -1, 10: 0, 20: 1}),
        ("CEIL(a / 2)", {0: 1, 10: 1, 20: 2}),
        ("MIN(a)", {0: 1, 10: 1, 20: 1}),
    ],
)
def test_values(expression: str, expected: dict[float, float]) -> None:
    assert evaluate(expression, SCOPE) == pytest.approx(expected)


def test_division_by_zero_is_no_number() -> None:
    assert math.isnan(evaluate("a / b", SCOPE)[20])


@pytest.mark.parametrize("expression", ["a +", "c", "SEARCH('x')", "[a, b]", "__import__('os')", "FILL(a, LINEAR)"])
def test_what_is_not_understood(expression: str) -> None:
    with pytest.raises(ExpressionError):
        evaluate(expression, SCOPE)


def test_names_are_ids_and_not_functions() -> None:
    assert names("IF(FILL(m1, REPEAT) > m2, 1, 0)") == {"m1", "m2"}
