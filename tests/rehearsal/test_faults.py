"""Faults: parameters, counts, shares."""

from __future__ import annotations

import pytest

from rehearsal.errors import UsageError
from rehearsal.faults import Faults


def test_defaults_and_given_parameters() -> None:
    faults = Faults()
    faults.set("throttle", {"rate": "0.25"})
    assert faults.active() == {"throttle": {"rate": 0.25, "count": 0.0, "action": ""}}
    faults.set("throttle", {"count": "3"})
    assert faults.number("throttle", "count") == 3
    faults.clear("throttle")
    assert not faults.on("throttle")


def test_a_count_is_used_up_by_the_action_it_names() -> None:
    faults = Faults()
    faults.set("throttle", {"count": "2", "action": "DescribeEndpoint"})
    calls = ["ListTags", "DescribeEndpoint", "DescribeEndpoint", "DescribeEndpoint"]
    assert [faults.hits("throttle", action) for action in calls] == [False, True, True, False]
    assert not faults.on("throttle")


def test_a_rate_hits_its_share() -> None:
    faults = Faults(seed=1)
    faults.set("server-error", {"rate": "0.3"})
    hits = sum(faults.hits("server-error", "Any") for _ in range(2000))
    assert 500 < hits < 700


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("gremlins", {}, "no fault is called 'gremlins'"),
        ("stall", {"speed": "1"}, "has no parameter speed"),
        ("stall", {"after_bytes": "many"}, "not a number"),
    ],
)
def test_refused(name: str, given: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Faults().set(name, given)
