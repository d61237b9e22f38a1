"""Filter patterns of CloudWatch Logs."""

from __future__ import annotations

import pytest

from rehearsal.cloudwatch.log_pattern import PatternError, matches

DESIGNED = '{ ($.outcome = "queue_saturated") || ($.outcome = "draining") }'


@pytest.mark.parametrize(
    ("pattern", "line", "expected"),
    [
        (DESIGNED, '{"outcome": "queue_saturated"}', True),
        (DESIGNED, '{"outcome": "draining"}', True),
        (DESIGNED, '{"outcome": "ok"}', False),
        (DESIGNED, "queue_saturated", False),
        (DESIGNED, '["queue_saturated"]', False),
        (
            '{ $.http.status = 503 && $.error = "queue_*" }',
            '{"http": {"status": 503}, "error": "queue_saturated"}',
            True,
        ),
        (
            '{ $.http.status = 503 && $.error = "queue_*" }',
            '{"http": {"status": 500}, "error": "queue_saturated"}',
            False,
        ),
        ("{ $.wait_ms >= 100 }", '{"wait_ms": 100.5}', True),
        ("{ $.wait_ms >= 100 }", '{"wait_ms": "slow"}', False),
        ('{ $.outcome != "ok" }', '{"outcome": "late"}', True),
        ("ERROR", "an ERROR here", True),
        ('ERROR "not found"', "ERROR: voice not found", True),
        ('ERROR "not found"', "ERROR: voice", False),
        ("", "anything", True),
    ],
)
def test_matches(pattern: str, line: str, expected: bool) -> None:
    assert matches(pattern, line) is expected


@pytest.mark.parametrize("pattern", ["{ $.a = }", "{ ($.a = 1 }", "{ $.a = 1 $.b = 2 }"])
def test_what_is_not_understood(pattern: str) -> None:
    with pytest.raises(PatternError):
        matches(pattern, '{"a": 1, "b": 2}')
