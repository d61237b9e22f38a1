"""The numbers in docs/method.md: each by-hand expression is evaluated and compared with the text and with the plan."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from planner import rule
from planner.artifacts.plan import Plan
from planner.fleet_fit import fires_from_rps, fit, scales_in_from_rps
from planner.fleet_reading import reading, server_of
from planner.instance import Instance
from planner.measured import Measured
from tests.planner.conftest import plan_of

DOC = (Path(__file__).parents[2] / "docs" / "method.md").read_text()

OPERATORS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
FUNCTIONS: dict[str, Callable[..., float]] = {"min": min, "max": max, "ceil": math.ceil, "floor": math.floor}


def arithmetic(text: str) -> float:
    """Numbers, + - * / and four functions; nothing else."""

    def value(node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return float(number)
            case ast.BinOp(left=left, op=op, right=right):
                return OPERATORS[type(op)](value(left), value(right))
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return FUNCTIONS[name](*(value(argument) for argument in arguments))
        raise ValueError(ast.dump(node))

    return value(ast.parse(text, mode="eval").body)


def rows(header: str) -> list[list[str]]:
    """The body of the table that starts with this header line."""
    lines = DOC.split(header + "\n", 1)[1].splitlines()[1:]
    body = []
    for line in lines:
        if not line.startswith("|"):
            break
        body.append([cell.strip() for cell in line.strip("|").split("|")])
    return body


BY_HAND = rows("| number | by hand | value |")
BOTH = rows("| number | headroom | drain |")


@pytest.fixture(scope="module")
def plans(article: Measured) -> dict[str, Plan]:
    return {name: plan_of(article, rule=name) for name in ("headroom", "drain")}


def number_of(plan: Plan, name: str) -> float:
    found = {f.name: f.value for f in plan.formulas} | plan.derived.model_dump()
    return float(found[name])


@pytest.mark.parametrize(("name", "by_hand", "value"), BY_HAND, ids=[row[0] for row in BY_HAND])
def test_worked_example(plans: dict[str, Plan], name: str, by_hand: str, value: str) -> None:
    assert arithmetic(by_hand) == pytest.approx(float(value), rel=5e-4)
    assert number_of(plans["headroom"], name) == pytest.approx(float(value), rel=5e-4)


@pytest.mark.parametrize(("name", "headroom", "drain"), BOTH, ids=[row[0] for row in BOTH])
def test_both_rules(plans: dict[str, Plan], name: str, headroom: str, drain: str) -> None:
    assert number_of(plans["headroom"], name) == pytest.approx(float(headroom), rel=2e-3)
    assert number_of(plans["drain"], name) == pytest.approx(float(drain), rel=2e-3)


def test_the_tables_were_found() -> None:
    assert len(BY_HAND) >= 15
    assert len(BOTH) >= 6


def test_every_aim_has_its_model() -> None:
    aims = rows("| aim | model | why not the others |")
    assert len(aims) == 7
    assert all(len(row) == 3 and all(row) for row in aims)


def test_numbers_in_the_prose(plans: dict[str, Plan], article: Measured) -> None:
    assert 0.95**59 < 0.05 < 0.95**58
    assert rule.published_utilization(25) == pytest.approx(0.962, abs=5e-4)
    assert article.first_byte_p95_at_1_ms == pytest.approx(65.4, abs=0.05)
    assert article.service_p95_s * 1e3 == pytest.approx(66.1, abs=0.05)
    assert 9 * article.ladder.rps(50) == pytest.approx(161, abs=0.5)
    overload = 1.25 * 37.5 / 38.5
    assert (overload - 1) / overload == pytest.approx(0.179, abs=5e-4)
    reading = next(f for f in plans["drain"].findings if f.name == "fleet_reading").detail
    assert "10 rps keep 4 instances" in reading
    assert "10 requests a second then keep 4 instances" in DOC
    assert 50 / plans["drain"].derived.scaling_target_value == pytest.approx(26, abs=0.5)
    safety = next(f for f in plans["headroom"].findings if f.name == "scale_in_safety").detail
    assert "24 as 60 s Maximum with 2" in safety
    assert "24 as 60 s Maximum with two" in DOC
    extra = plans["drain"].derived.max_instances - plans["headroom"].derived.max_instances
    assert f"costs {extra} more instances" in DOC
    saved = plans["headroom"].surge.shed_fraction - plans["drain"].surge.shed_fraction
    assert f"saves {saved * 100:.0f} of 100 requests" in DOC


def test_fleet_table(plans: dict[str, Plan], article: Measured) -> None:
    server, d = server_of(Instance(article.ladder, 50, 3000.0)), plans["drain"].derived
    found = fit(server, d.load_at_trigger_rps, d.min_instances, d.max_instances)
    table = rows("| instances | 10 s Maximum at 80 % load | 1.9 fires from a load of | 1.5 scales in at |")
    assert [int(row[0]) for row in table] == [1, 2, 5, 20, 100, 349]
    for cells in table:
        n = int(cells[0])
        assert reading(server, n, d.load_at_trigger_rps) == pytest.approx(float(cells[1]), abs=0.051)
        fires = fires_from_rps(server, n, found.out_level) / d.instance_capacity_rps
        assert f"{fires:.0%}" == cells[2].replace(" ", "")
        if n > 1:
            leaves = scales_in_from_rps(server, n, found.in_level) / d.instance_capacity_rps
            assert f"{leaves:.0%}" == cells[3].replace(" ", "")


def test_every_flag_the_text_names_exists() -> None:
    from planner.cli import parser

    known = parser().format_help()
    named = set(re.findall(r"`(--[a-z-]+)", DOC))
    assert named
    assert {flag for flag in named if flag not in known} <= {"--rates"}
