"""Low confidence is carried into the plan, and units are never guessed."""

from __future__ import annotations

from typing import Any

import pytest

from planner.artifacts.qmax import OpenLoop, OpenLoopRate, Qmax
from planner.artifacts.ttotal import Ttotal
from planner.errors import UsageError
from planner.measured import Measured, measured
from tests.planner.conftest import finding, plan_of


def changed(artifact: Any, **fields: Any) -> Any:
    return artifact.model_copy(update=fields)


def rerun(qmax: Qmax, q_max: int) -> Qmax:
    return changed(qmax, q_max=q_max, q_max_per_run=[q_max], provenance=changed(qmax.provenance, run_id=f"run{q_max}"))


def open_loop_of(qmax: Qmax, *points: tuple[float, float]) -> OpenLoop:
    rates = [
        OpenLoopRate(
            offered_rps=1.0,
            achieved_rps=1.0,
            shed_fraction=0.0,
            ttfab_ms=None,
            in_flight_mean=at,
            concurrency_10s_max=at * ratio,
            metric_ratio=ratio,
            window_s=60.0,
        )
        for at, ratio in points
    ]
    return OpenLoop(
        provenance=qmax.provenance,
        model=qmax.model,
        fingerprint=qmax.fingerprint,
        seed=1,
        slo_ms=3000,
        rates=rates,
    )


def test_lower_bound_is_said(qmax: Qmax, ttotal: Ttotal) -> None:
    open_ended = changed(qmax, outcome="lower_bound", bracketed=False)
    found = finding(plan_of(measured([open_ended], [ttotal])), "q_max_confidence")
    assert found.verdict == "warn"
    assert "lower bound" in found.detail


def test_lowest_of_several_runs_counts_and_spread_is_named(qmax: Qmax, ttotal: Ttotal) -> None:
    plan = plan_of(measured([qmax, rerun(qmax, 40)], [ttotal]))
    assert plan.derived.q_max == 40
    assert plan.derived.c_scale_max == 30
    found = finding(plan, "q_max_confidence")
    assert found.verdict == "warn"
    assert "40 to 50" in found.detail


def test_worst_t_total_counts_and_spread_is_named(qmax: Qmax, ttotal: Ttotal) -> None:
    slow_run = changed(ttotal.runs[0], t_total_s=400.0)
    slow = changed(ttotal, t_total_s=400.0, runs=[ttotal.runs[0], slow_run])
    plan = plan_of(measured([qmax], [ttotal, slow]))
    assert plan.inputs["t_total_s"] == 400
    assert plan.derived.scale_in_cooldown_s == 1380
    found = finding(plan, "t_total_confidence")
    assert found.verdict == "warn"
    assert "54%" in found.detail


def test_assumed_t_total_is_a_warning(qmax: Qmax) -> None:
    plan = plan_of(measured([qmax], [], assumed_t_total_s=100.0))
    assert plan.derived.scale_in_cooldown_s == 300
    assert "assumed" in finding(plan, "t_total_confidence").detail
    assert plan.stage_effect is None


def test_unknown_policy_lag_is_a_warning(qmax: Qmax, ttotal: Ttotal) -> None:
    plan = plan_of(measured([qmax], [changed(ttotal, policy_lag=None)]))
    assert finding(plan, "t_total_confidence").verdict == "warn"
    assert plan.derived.scale_in_cooldown_s == 780


def test_without_a_ratio_no_threshold_is_emitted(qmax: Qmax, ttotal: Ttotal) -> None:
    blind = changed(qmax, ladder=[changed(rung, metric_ratio=None) for rung in qmax.ladder])
    plan = plan_of(measured([blind], [ttotal]))
    d = plan.derived
    assert (d.scaling_target_value, d.scale_in_threshold, d.metric_ratio_source) == (None, None, "unknown")
    assert (plan.verdict, plan.feasible) == ("stop", False)
    assert "--measure-window-s 20" in finding(plan, "metric_units").recommendation
    assert d.c_scale_max == 37.5


def test_open_loop_ratio_is_preferred_and_interpolated(qmax: Qmax, ttotal: Ttotal) -> None:
    m = measured([qmax], [ttotal], [open_loop_of(qmax, (20.0, 1.4), (40.0, 1.2))])
    plan = plan_of(m)
    assert plan.derived.metric_ratio_source == "open_loop"
    assert plan.derived.metric_ratio == pytest.approx(1.225)
    assert plan.derived.scaling_target_value == pytest.approx(37.5 * 1.225)
    assert plan.derived.scale_in_threshold == pytest.approx(25 * 1.35)
    assert finding(plan, "metric_units").verdict == "ok"
    assert finding(plan, "open_arrivals").verdict == "ok"


def test_open_loop_ratio_serves_drain_too(qmax: Qmax, ttotal: Ttotal) -> None:
    plan = plan_of(measured([qmax], [ttotal], [open_loop_of(qmax, (1.0, 4.0), (5.0, 3.0))]), rule="drain")
    assert plan.derived.metric_ratio_source == "open_loop"


def test_target_that_the_metric_can_never_read_stops(qmax: Qmax, ttotal: Ttotal) -> None:
    plan = plan_of(measured([qmax], [ttotal], [open_loop_of(qmax, (20.0, 3.0), (40.0, 2.0))]))
    assert finding(plan, "metric_units").verdict == "stop"
    assert not plan.feasible


def test_wide_ratio_is_named(qmax: Qmax, ttotal: Ttotal) -> None:
    m = measured([qmax], [ttotal], [open_loop_of(qmax, (2.0, 4.0), (30.0, 1.3), (45.0, 1.1))])
    assert "1.10 to 4.00 by rung" in finding(plan_of(m), "metric_units").detail


def test_variant_total_stops_and_emits_no_per_instance_target(qmax: Qmax, ttotal: Ttotal) -> None:
    plan = plan_of(measured([qmax], [changed(ttotal, metric_scope="variant_total")]))
    assert finding(plan, "metric_scope").verdict == "stop"
    assert plan.derived.scaling_target_value is None
    assert not plan.feasible


def test_per_instance_scope_is_ok(qmax: Qmax, ttotal: Ttotal) -> None:
    plan = plan_of(measured([qmax], [changed(ttotal, metric_scope="per_instance")]))
    assert finding(plan, "metric_scope").verdict == "ok"


def test_surge_ratio_one_has_no_hysteresis(qmax: Qmax, ttotal: Ttotal) -> None:
    plan = plan_of(measured([qmax], [ttotal]), surge_ratio=1.0)
    assert finding(plan, "scale_in_safety").verdict == "stop"
    assert plan.derived.min_safe_instances is None


def test_q_max_of_one_is_planned_below_one(qmax: Qmax, ttotal: Ttotal) -> None:
    one = changed(qmax, q_max=1, q_max_per_run=[1])
    plan = plan_of(measured([one], [ttotal]), peak_rps=10.0, trough_rps=None)
    d = plan.derived
    assert (d.q_max, d.queue_max_depth, d.c_scale_max, d.c_scale_min) == (1, 1, 0.75, 0.5)
    # One slot sheds rho / (1 + rho): at most 1 % of a Poisson stream needs rho <= 1/99.
    assert d.max_instances >= 10 / (16.0833 / 99)


def test_void_rungs_are_left_out(qmax: Qmax, ttotal: Ttotal) -> None:
    ladder = [changed(r, verdict="invalid", achieved_rps=90.0) if r.concurrency == 20 else r for r in qmax.ladder]
    m = measured([changed(qmax, ladder=ladder)], [ttotal])
    assert m.ladder.rps(20) == pytest.approx((17.916667 + 17.9) / 2, abs=1e-5)


def test_parallel_service_is_not_taken_for_regular(qmax: Qmax, ttotal: Ttotal) -> None:
    ladder = [changed(r, achieved_rps=min(r.concurrency, 8) * 16.0) for r in qmax.ladder]
    m = measured([changed(qmax, ladder=ladder)], [ttotal])
    assert (m.ladder.serial, m.ladder.stages) == (False, 1.0)
    plan = plan_of(m)
    assert "birth-death" in plan.surge.model


def test_streams_become_rates_by_littles_law(qmax: Qmax, ttotal: Ttotal) -> None:
    from planner.cli import parser, traffic

    args = parser().parse_args(["--peak-streams", "10", "--trough-streams", "2"])
    peak, trough, _ = traffic(args, measured([qmax], [ttotal]))
    assert peak == pytest.approx(10 / 0.0613226, rel=1e-5)
    assert trough == pytest.approx(2 / 0.0613226, rel=1e-5)


def test_ladder_without_concurrency_one_says_how_to_measure_it(qmax: Qmax, ttotal: Ttotal) -> None:
    without = changed(qmax, service_mean_s=None, service_p95_s=None, ttfab_p95_at_1_ms=None)
    with pytest.raises(UsageError, match="service_p95_s is missing") as caught:
        measured([without], [ttotal])
    assert "concurrency 1 among --rungs" in caught.value.hint


def test_fleet_that_cannot_scale_is_named(article: Measured) -> None:
    plan = plan_of(article, peak_rps=10.0, trough_rps=1.0)
    assert (plan.derived.min_instances, plan.derived.max_instances) == (1, 1)
    assert finding(plan, "fleet_range").verdict == "warn"
    assert "the same fleet at peak" in finding(plan, "surge_survival").recommendation
