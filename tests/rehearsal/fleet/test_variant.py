"""Which instance takes the next request. Instances are stand-ins."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal.fleet.variant import Fleet


def fleet(routing: Any, *instances: Any) -> Fleet:
    nothing: Any = None
    return Fleet("speech", "primary", nothing, nothing, len(instances), routing=routing, instances=list(instances))


def instance(in_flight: int = 0, serving: bool = True, routed: bool = True) -> Any:
    return SimpleNamespace(load=SimpleNamespace(in_flight=in_flight), serving=serving, routed=routed)


def test_least_outstanding_requests() -> None:
    busy, idle, away = instance(3), instance(1), instance(0, serving=False)
    assert fleet("LEAST_OUTSTANDING_REQUESTS", busy, idle, away).choose() is idle


def test_ties_take_turns() -> None:
    pool = fleet("LEAST_OUTSTANDING_REQUESTS", instance(), instance(), instance())
    chosen = Counter(id(pool.choose()) for _ in range(30))
    assert set(chosen.values()) == {10}


def test_random_looks_at_nothing() -> None:
    members = [instance(50), instance(0)]
    pool = fleet("RANDOM", *members)
    chosen = Counter(id(pool.choose()) for _ in range(400))
    assert all(count > 120 for count in chosen.values())
    assert len(chosen) == 2


@pytest.mark.parametrize("routing", ["RANDOM", "LEAST_OUTSTANDING_REQUESTS"])
def test_a_new_instance_waits_for_the_router_unless_it_is_alone(routing: str) -> None:
    old, new = instance(9), instance(0, routed=False)
    assert fleet(routing, old, new).choose() is old
    assert fleet(routing, new).choose() is new
    assert fleet(routing).choose() is None
