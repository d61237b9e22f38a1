"""The published measurements must give the published numbers, and the truth about them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest

from planner.artifacts.plan import Plan
from planner.artifacts.qmax import Qmax
from planner.artifacts.ttotal import Ttotal
from planner.measured import Measured
from tests.planner.conftest import ARTICLE, finding, plan_of


@pytest.fixture(scope="module")
def headroom(article: Measured) -> Plan:
    return plan_of(article)


@pytest.fixture(scope="module")
def drain(article: Measured) -> Plan:
    return plan_of(article, rule="drain")


def test_published_numbers(headroom: Plan) -> None:
    d = headroom.derived
    assert (d.q_max, d.c_scale_max, d.c_scale_min, d.metric_ratio) == (50, 37.5, 25.0, 1.0)
    assert (d.scaling_target_value, d.scale_in_threshold, d.metric_ratio_source) == (37.5, 25.0, "closed_loop")
    assert d.w_max_s == pytest.approx(2.9338649, abs=1e-6)
    assert (d.queue_max_depth, d.scale_out_cooldown_s, d.scale_in_cooldown_s) == (50, 30, 960)
    assert d.min_safe_instances == 3
    assert d.utilization_at_trigger == pytest.approx(0.974025974, abs=1e-9)
    assert d.min_instances == 1


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("surge_survival", "warn"),
        ("scale_in_safety", "warn"),
        ("slo_budget", "ok"),
        ("invocation_ceiling", "ok"),
        ("queue_depth", "ok"),
        ("peak_capacity", "ok"),
        ("open_arrivals", "not_run"),
    ],
)
def test_published_findings(headroom: Plan, name: str, verdict: str) -> None:
    assert finding(headroom, name).verdict == verdict


def test_the_plan_says_that_arrivals_were_not_measured(headroom: Plan) -> None:
    assert "Q_max comes from a closed loop" in finding(headroom, "open_arrivals").detail


def test_worst_finding_comes_first(headroom: Plan) -> None:
    order = ["stop", "warn", "not_run", "ok"]
    ranks = [order.index(f.verdict) for f in headroom.findings]
    assert ranks == sorted(ranks)
    assert headroom.findings[0].name == "surge_survival"
    assert (headroom.verdict, headroom.feasible) == ("warn", True)


def test_published_sizing_gives_nine_and_says_what_nine_carry(article: Measured) -> None:
    plan = plan_of(article, sizing="published")
    assert plan.derived.max_instances == 9
    warning = finding(plan, "peak_capacity")
    assert warning.verdict == "warn"
    assert "9 instances carry about 161 rps" in warning.detail


def test_default_sizing_carries_the_peak_within_the_slo(headroom: Plan) -> None:
    n = headroom.derived.max_instances
    assert 280 <= n <= 300
    assert 5000 / n <= headroom.derived.load_at_trigger_rps + 1e-9
    assert headroom.cost["usd_per_h_at_max"] == pytest.approx(n * 1.408)
    served = headroom.cost["served_rps_at_peak"]
    assert isinstance(served, float)
    assert 0.99 * 5000 <= served <= 5000
    assert headroom.cost["usd_per_million_chars"] == pytest.approx(n * 1.408 / (served * 3600 * 25.2) * 1e6)


def test_the_fleet_figures_name_the_routing_they_rely_on(headroom: Plan, article: Measured) -> None:
    for plan in (headroom, plan_of(article, sizing="published")):
        assert "LEAST_OUTSTANDING_REQUESTS" in finding(plan, "peak_capacity").detail


def test_nine_instances_pay_for_what_they_serve(article: Measured) -> None:
    plan = plan_of(article, sizing="published")
    # 9 x 17.87 rps x 25.2 characters an hour, not 5 000 rps.
    expected = 9 * 1.408 / (9 * 17.8667 * 3600 * 25.2) * 1e6
    assert plan.cost["usd_per_million_chars"] == pytest.approx(expected, rel=1e-3)


def test_surge_from_the_headroom_trigger_is_shed(headroom: Plan) -> None:
    s = headroom.surge
    assert 0.15 <= s.shed_fraction <= 0.20
    # Fluid check: overload 1.25 x 0.974 of capacity, minus the 12.5 slots that fill first.
    fluid = 1 - 1 / (1.25 * 37.5 / 38.5) - 12.5 / (1.25 * 37.5 / 38.5 * 17.8667 * 320.248)
    assert s.shed_fraction == pytest.approx(fluid, abs=0.005)
    assert s.time_to_saturation_s is not None
    assert 1 <= s.time_to_saturation_s <= 6
    assert s.duration_s == pytest.approx(320.248, abs=1e-3)


def test_drain_survives_the_surge(drain: Plan) -> None:
    assert drain.surge.shed_fraction <= 0.01
    assert 0.70 <= drain.derived.utilization_at_trigger <= 0.82
    assert finding(drain, "surge_survival").verdict == "ok"
    assert drain.derived.max_instances > 280


def test_drain_is_the_largest_load_that_survives(article: Measured) -> None:
    tighter = plan_of(article, rule="drain", surge_ratio=1.25)
    lower = next(f for f in tighter.formulas if f.name == "surge_shed_fraction")
    assert isinstance(lower.value, float)
    assert lower.value == pytest.approx(0.01, abs=0.001)


def test_drain_thresholds_serve_every_fleet_size(drain: Plan, article: Measured) -> None:
    """A large fleet at 80 % load hardly ever holds two requests in one instance: two is the sign."""
    d = drain.derived
    assert d.metric_ratio_source == "model"
    assert (d.scaling_target_value, d.scale_in_threshold) == (1.9, 1.5)
    assert d.metric_ratio == pytest.approx(1.9 / d.c_scale_max)
    small = plan_of(article, rule="drain", peak_rps=87.0, trough_rps=None, min_floor=3).derived
    assert (small.min_instances, small.max_instances) == (3, 7)
    assert (small.scaling_target_value, small.scale_in_threshold) == (2.9, 2.5)
    alone = plan_of(article, rule="drain", peak_rps=10.0, trough_rps=None).derived
    assert alone.max_instances == 1
    assert alone.scaling_target_value == pytest.approx(6.9)


def test_alternatives_are_the_other_three(headroom: Plan, drain: Plan) -> None:
    assert {(a.rule, a.sizing) for a in headroom.alternatives} == {
        ("headroom", "published"),
        ("drain", "throughput"),
        ("drain", "published"),
    }
    other = next(a for a in headroom.alternatives if (a.rule, a.sizing) == ("drain", "throughput"))
    assert other.derived == drain.derived


def test_dominant_stage_and_what_halving_it_gives(headroom: Plan) -> None:
    effect = headroom.stage_effect
    assert effect is not None
    assert (effect.start, effect.end) == ("desired_set", "instance_logging")
    assert effect.share_pct == pytest.approx(69.5, abs=0.1)
    assert effect.t_total_s == pytest.approx(260.248 - 180.835 / 2, abs=0.01)
    assert effect.scale_in_cooldown_s == math.floor(3 * (320.248 - 180.835 / 2) / 10) * 10
    assert "image" in finding(headroom, "t_total_stages").recommendation


def test_first_chunk_alarm(headroom: Plan, article: Measured) -> None:
    assert 1000 < headroom.derived.first_chunk_alarm_ms <= 3000
    published = plan_of(article, published_first_chunk_alarm=True)
    assert published.derived.first_chunk_alarm_ms == pytest.approx(65.3717, abs=1e-4)
    assert finding(published, "first_chunk_alarm").verdict == "warn"


def test_every_derived_number_has_its_formula(headroom: Plan) -> None:
    shown = {f.name: f for f in headroom.formulas}
    silent = {"metric_ratio_source"}
    for name, value in headroom.derived.model_dump().items():
        if name not in silent:
            assert shown[name].value == pytest.approx(value)
            assert shown[name].expression


def test_the_two_service_times_are_told_apart(headroom: Plan) -> None:
    shown = {f.name: f for f in headroom.formulas}
    assert shown["first_byte_p95_at_1_ms"].value == pytest.approx(65.37, abs=0.01)
    assert shown["service_p95_ms"].value == pytest.approx(66.14, abs=0.01)


def test_examples_carry_the_reference_figures() -> None:
    qmax, ttotal = Qmax.load(ARTICLE / "qmax.json"), Ttotal.load(ARTICLE / "ttotal.json")
    at = {rung.concurrency: rung for rung in qmax.ladder}
    assert [at[n].achieved_rps for n in (1, 5, 50)] == pytest.approx([16.0833333, 17.9, 17.8666667])
    assert at[60].ttfab_ms is not None
    assert at[60].ttfab_ms.p95 == pytest.approx(3374.7788)
    assert ttotal.t_total_s == pytest.approx(260.248496)
    assert sum(d.share_pct for d in ttotal.runs[0].durations) == pytest.approx(100)
    assert qmax.provenance.note is not None
    assert "not published" in qmax.provenance.note


def test_plan_has_the_keys_terraform_reads(headroom: Plan) -> None:
    data = json.loads(headroom.model_dump_json())
    derived = {"min_instances", "max_instances", "scaling_target_value", "scale_in_threshold", "queue_max_depth"}
    derived |= {"scale_out_cooldown_s", "scale_in_cooldown_s", "first_chunk_alarm_ms"}
    assert derived <= set(data["derived"])
    assert {"instance_type", "image_digest"} <= set(data["fingerprint"])
    assert {"endpoint", "variant"} <= set(data["provenance"])
    assert data["inputs"]["slo_ms"] == 3000
    assert (data["verdict"], data["feasible"]) == ("warn", True)


def test_same_inputs_are_the_same_run(article: Measured) -> None:
    assert plan_of(article).provenance.run_id == plan_of(article).provenance.run_id
    assert plan_of(article).provenance.run_id != plan_of(article, peak_rps=4000.0).provenance.run_id


def test_planner_names_no_model_and_imports_no_sdk() -> None:
    for path in (Path(__file__).parents[2] / "planner").rglob("*.py"):
        text = path.read_text()
        assert "kokoro" not in text.lower(), path
        assert "boto3" not in text, path


def test_the_drain_plan_says_what_small_fleets_pay_and_how_far_it_overshoots(drain: Plan) -> None:
    reading = finding(drain, "fleet_reading")
    assert reading.verdict == "warn"
    assert "fires at the trigger load or earlier with 1 to 349 instances" in reading.detail
    assert "10 rps keep 4 instances instead of 1 ($4.22 an hour)" in reading.detail
    overshoot = finding(drain, "overshoot")
    assert overshoot.verdict == "warn"
    # 50 / 1.9 = 26.3; 349 / 26.3 = 13.3; 335 instances given back one every 960 s.
    assert "26.3 times the fleet: 14 or more" in overshoot.detail
    assert f"takes {335 * 960 / 3600:.0f} h" in overshoot.detail
    assert f"${1.408 * 335 * 336 / 2 * 960 / 3600:,.0f} for the surplus" in overshoot.detail


def test_a_range_that_one_target_cannot_serve_is_promised_in_part(article: Measured) -> None:
    reading = finding(plan_of(article, rule="drain", peak_rps=20_000.0), "fleet_reading")
    assert reading.verdict == "warn"
    assert "no one target serves 1 to 1394 instances" in reading.detail
    promised = re.search(r"promised for 1 to (\d+) instances", reading.detail)
    assert promised is not None
    assert 600 < int(promised[1]) < 900


def test_a_fleet_of_one_size_has_nothing_to_pay(article: Measured) -> None:
    plan = plan_of(article, rule="drain", peak_rps=10.0, trough_rps=None)
    assert finding(plan, "fleet_reading").verdict == "ok"
    assert "overshoot" not in {f.name for f in plan.findings}


def test_the_headroom_plan_says_where_it_scales_in_under_load(headroom: Plan) -> None:
    """24 < 25: two instances at 97.4 % load read less in a minute than the scale-in threshold."""
    safety = finding(headroom, "scale_in_safety").detail
    assert "From 2 instances on the threshold of 25 lies above what a fleet reads at the trigger load (24" in safety
    assert "scales in under 97% load" in safety
    late = finding(headroom, "fleet_reading")
    assert late.verdict == "warn"
    assert "a target of 37.5 fires past the trigger at every size" in late.detail
    assert finding(headroom, "overshoot").verdict == "ok"
