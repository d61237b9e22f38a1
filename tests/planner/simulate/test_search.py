"""Policy search: the cheapest candidate within the limits, the curve, scheduled actions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner.simulate.cli import main
from planner.simulate.search import Candidate, Found, Limits, Outcome

ARTICLE = Path(__file__).parents[3] / "examples" / "article"
INPUTS = ["--qmax", str(ARTICLE / "qmax.json"), "--ttotal", str(ARTICLE / "ttotal.json"), "--optimise", "cost"]
SHORT = ["--instances", "3", "--ramp-s", "300", "--hold-s", "120"]


def outcome(hours: float, shed: float, attainment: float) -> Outcome:
    return Outcome(Candidate(0.8, 4.0, 2.0, 3, 30, 300), shed, attainment, hours, hours * 2)


def test_the_curve_leaves_out_limits_that_save_nothing() -> None:
    outcomes = (outcome(5, 0.04, 0.95), outcome(6, 0.008, 0.99), outcome(7, 0.007, 0.99), outcome(9, 0.0, 1.0))
    curve = Found(outcomes, None).curve
    assert [(limit, found.instance_h) for limit, found in curve] == [(0.001, 9), (0.01, 6), (0.05, 5)]


def test_limits_need_both_shed_and_attainment() -> None:
    limits = Limits(max_shed=0.01, min_attainment=0.95)
    assert outcome(1, 0.01, 0.95).within(limits)
    assert not outcome(1, 0.02, 0.98).within(limits)
    assert not outcome(1, 0.0, 0.9).within(limits)


def test_search_keeps_its_limits_and_offers_a_schedule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*INPUTS, *SHORT, "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "search-surge-ramp.json").read_text())
    best = found["best"]
    assert best["worst_shed"] <= 0.01
    assert best["worst_attainment"] >= 0.95
    cheaper = [c for c in found["candidates"] if c["instance_h"] < best["instance_h"]]
    assert all(c["worst_shed"] > 0.01 or c["worst_attainment"] < 0.95 for c in cheaper)
    assert found["scheduled_actions"]["ramp"][0]["at_s"] == 0
    assert "surge" not in found["scheduled_actions"]
    assert "cost of safety" in capsys.readouterr().out


def test_nothing_within_the_limits_is_exit_3(tmp_path: Path) -> None:
    tight = ["--profiles", "surge", "--min-attainment", "1.0", "--max-shed", "0", "--max-instances", "3"]
    assert main([*INPUTS, *SHORT, *tight, "--out", str(tmp_path)]) == 3
