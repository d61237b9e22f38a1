"""The verdict: which differences make a plan wrong, which make a run worthless."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.artifacts.simulation import Score
from planner.artifacts.validate import StretchResult
from scripts.loadproof.forecast import Forecast
from scripts.loadproof.judge import Judgement, Observed, judge, text


def simulated(**changes: float | None) -> Score:
    fields: dict[str, object] = {
        "policy": "headroom",
        "setting": "",
        "offered": 1000,
        "slo_attainment": 0.85,
        "shed_fraction": 0.1,
        "surge_shed_fraction": 0.15,
        "surge_slo_attainment": 0.85,
        "ttfab_p95_s": 2.8,
        "instance_h": 1.0,
        "usd": None,
        "start_instances": 1,
        "peak_instances": 2,
        "scale_outs": 1,
        "scale_ins": 0,
        "refused_by_quota": 0,
        "flaps": 0,
        "detection_s": 40.0,
        "first_capacity_s": 300.0,
        "kernel": "exact",
    }
    return Score.model_validate(fields | changes)


def stretch(shed: float, attainment: float, offered: int = 5000, **other: int) -> StretchResult:
    return StretchResult(
        name="surge",
        start_s=60,
        end_s=380,
        offered=offered,
        ok=offered - round(shed * offered),
        shed=round(shed * offered),
        other=other,
        slo_attainment=attainment,
        shed_fraction=shed,
        ttfab_ms=None,
    )


FORECAST = Forecast(0.17, 0.83, detection_bound_s=60, t_total_s=260, simulated=simulated())
OBSERVED = Observed(
    surge=stretch(0.15, 0.85),
    exposed=stretch(0.16, 0.84),
    detection_s=42.0,
    scale_out_s=255.0,
    scale_in_s=None,
    surge_lasted_s=320,
    quiet_lasted_s=0.0,
    slo_ms=3000,
    late_p99_ms=3.0,
    stopped_by=None,
)


def verdicts(judged: Judgement, source: str = "plan") -> dict[str, str]:
    return {score.name: score.verdict for score in judged.scores if score.source == source}


def test_a_forecast_that_came_true_is_right() -> None:
    judged = judge(FORECAST, OBSERVED)
    assert judged.verdict == "right"
    assert set(verdicts(judged).values()) == {"ok"}
    assert set(verdicts(judged, "simulator").values()) == {"ok"}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"exposed": stretch(0.23, 0.84)}, "shed_fraction"),
        ({"exposed": stretch(0.16, 0.77)}, "slo_attainment"),
        ({"detection_s": 71.0}, "detection_s"),
        ({"detection_s": None, "scale_out_s": None}, "detection_s"),
        ({"scale_out_s": 330.0}, "t_total_s"),
    ],
)
def test_worse_than_forecast_is_wrong(changes: dict[str, object], name: str) -> None:
    judged = judge(FORECAST, replace(OBSERVED, **changes))  # type: ignore[arg-type]
    assert judged.verdict == "wrong"
    assert [score for score, verdict in verdicts(judged).items() if verdict == "wrong"] == [name]
    assert judged.reasons[0].startswith(f"{name}: forecast")


def test_better_than_forecast_is_right_and_said() -> None:
    judged = judge(FORECAST, replace(OBSERVED, exposed=stretch(0.0, 1.0), scale_out_s=100.0))
    assert judged.verdict == "right"
    assert verdicts(judged) == {
        "shed_fraction": "better",
        "slo_attainment": "better",
        "detection_s": "ok",
        "t_total_s": "better",
    }


def test_an_optimistic_plan_is_wrong_about_the_same_run() -> None:
    judged = judge(replace(FORECAST, shed_fraction=0.0, slo_attainment=1.0), OBSERVED)
    assert judged.verdict == "wrong"
    assert "shed_fraction: forecast 0.0%, seen 16.0%" in judged.reasons


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"stopped_by": "--max-usd 1"}, "--max-usd 1"),
        ({"surge": stretch(0.5, 0.5, offered=50)}, "only 50 requests"),
        ({"late_p99_ms": 400.0}, "fell behind"),
        ({"surge": stretch(0.1, 0.5, server_error=400)}, "400 server_error"),
    ],
)
def test_a_run_that_shows_nothing_is_undecided_even_if_it_looks_wrong(changes: dict[str, object], reason: str) -> None:
    judged = judge(FORECAST, replace(OBSERVED, exposed=stretch(0.9, 0.1), **changes))  # type: ignore[arg-type]
    assert judged.verdict == "undecided"
    assert any(reason in found for found in judged.reasons)


def test_a_share_of_too_few_requests_is_unknown_however_it_looks() -> None:
    judged = judge(FORECAST, replace(OBSERVED, exposed=stretch(0.16, 0.84, offered=52)))
    assert judged.verdict == "undecided"
    assert judged.reasons == ["only 52 requests until new capacity served, 200 are needed"]
    assert verdicts(judged)["shed_fraction"] == verdicts(judged)["slo_attainment"] == "undecided"
    assert verdicts(judged)["detection_s"] == verdicts(judged)["t_total_s"] == "ok"
    assert set(verdicts(judged, "simulator").values()) == {"ok"}
    few = judge(FORECAST, replace(OBSERVED, surge=stretch(0.9, 0.1, offered=52)))
    assert verdicts(few, "simulator")["shed_fraction"] == "undecided"


def test_no_scale_out_is_fine_when_none_was_due() -> None:
    calm = replace(FORECAST, simulated=simulated(detection_s=None))
    assert judge(calm, replace(OBSERVED, detection_s=None, scale_out_s=None)).verdict == "right"
    short = replace(OBSERVED, detection_s=None, scale_out_s=None, surge_lasted_s=70)
    assert verdicts(judge(FORECAST, short))["detection_s"] == "not_run"


@pytest.mark.parametrize(
    ("scale_in_s", "quiet_s", "verdict"),
    [(200.0, 360, "ok"), (310.0, 360, "wrong"), (None, 360, "wrong"), (None, 100, "not_run")],
)
def test_scale_in(scale_in_s: float | None, quiet_s: float, verdict: str) -> None:
    judged = judge(FORECAST, replace(OBSERVED, scale_in_s=scale_in_s, quiet_lasted_s=quiet_s))
    assert verdicts(judged)["scale_in_s"] == verdict


def test_a_simulator_miss_does_not_condemn_the_plan() -> None:
    judged = judge(replace(FORECAST, simulated=simulated(surge_shed_fraction=0.5)), OBSERVED)
    assert judged.verdict == "right"
    assert verdicts(judged, "simulator")["shed_fraction"] == "wrong"
    assert "simulator" in text(judged.scores)
