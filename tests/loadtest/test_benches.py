"""The comparison with the published ladder and the calibration's arithmetic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench import harness, rehearse_article, schedulers
from planner.artifacts.qmax import Qmax
from planner.errors import FactFails, Undecided


@pytest.fixture
def published() -> Qmax:
    return Qmax.load(rehearse_article.ARTICLE)


def measured(published: Qmax, factor: float, **rung: Any) -> Qmax:
    ladder = []
    for each in published.ladder:
        assert each.ttfab_ms is not None
        scaled = each.ttfab_ms.model_copy(update={"p95": each.ttfab_ms.p95 * factor})
        ladder.append(each.model_copy(update={"ttfab_ms": scaled} | rung))
    return published.model_copy(update={"ladder": ladder})


@pytest.mark.parametrize("factor", [0.951, 1.0, 1.049])
def test_within_five_percent_agrees(published: Qmax, factor: float) -> None:
    ours = measured(published, factor)
    pairs = rehearse_article.compare(published, ours)
    assert len(pairs) == 8
    rehearse_article.judge(pairs, published, ours)
    assert "Q_max published 50 (bracketed), ours 50 (bracketed)" in rehearse_article.table(pairs, published, ours)


@pytest.mark.parametrize("factor", [0.94, 1.06])
def test_further_off_fails(published: Qmax, factor: float) -> None:
    ours = measured(published, factor)
    pairs = rehearse_article.compare(published, ours)
    with pytest.raises(FactFails, match="N=1, 5, 10"):
        rehearse_article.judge(pairs, published, ours)
    assert "off: more than 5%" in rehearse_article.table(pairs, published, ours)


def test_another_q_max_fails(published: Qmax) -> None:
    ours = measured(published, 1.0).model_copy(update={"q_max": 40})
    with pytest.raises(FactFails, match="Q_max is 40"):
        rehearse_article.judge(rehearse_article.compare(published, ours), published, ours)


def test_an_invalid_rung_decides_nothing(published: Qmax) -> None:
    ours = measured(published, 1.0, verdict="invalid", reasons=["client-bound"])
    pairs = rehearse_article.compare(published, ours)
    with pytest.raises(Undecided, match="N=1, 5"):
        rehearse_article.judge(pairs, published, ours)
    assert "off: client-bound" in rehearse_article.table(pairs, published, ours)


def raw(**changes: Any) -> dict[str, Any]:
    base = {"ttfab_ms": [101.0] * 94 + [110.0] * 6, "lag_ms": [1.0, 2.0], "gap_ms": [0.1], "loop_lag_ms": [0.5]}
    return base | {"cpu_share": 0.3, "requests_per_s": 50.0, "failed": 0} | changes


def test_what_the_client_adds_is_beyond_the_servers_own_100_ms() -> None:
    found = harness.summarise("lean", 50, raw())
    assert (found.added_p50_ms, found.added_p95_ms, found.receipt_lag_p95_ms, found.bound) == (1.0, 10.0, 2.0, "")
    assert "trustworthy" in found.line()


def test_a_saturated_client_is_named() -> None:
    found = harness.summarise("lean", 1000, raw(cpu_share=0.99, failed=3))
    assert "client-bound" in found.line()
    assert "3 failed" in found.line()


def test_the_lag_limit_holds_at_fifty_streams() -> None:
    harness.judge(
        [harness.summarise("lean", 200, raw(lag_ms=[9.0])), harness.summarise("boto3", 50, raw(lag_ms=[9.0]))]
    )
    with pytest.raises(FactFails, match=r"9\.0 ms"):
        harness.judge([harness.summarise("lean", 50, raw(lag_ms=[9.0]))])


def test_schedulers_are_compared_rung_by_rung_and_drawn(published: Qmax, tmp_path: Path) -> None:
    half = measured(published, 0.5)
    void = half.ladder[-1].model_copy(update={"verdict": "invalid"})
    half = half.model_copy(update={"ladder": [*half.ladder[:-1], void]})
    ladders = {"published": published, "fifo": published, "deadline": half}
    lines = schedulers.table(ladders).splitlines()
    assert [line.split()[0] for line in lines] == ["N", "1", "5", "10", "20", "30", "40", "50"]
    assert {line.split()[-1] for line in lines[1:]} == {"0.50"}
    chart = schedulers.draw(ladders, tmp_path / "chart.svg").read_text()
    assert all(f"<!-- {name}, p95 -->" in chart for name in ladders)
