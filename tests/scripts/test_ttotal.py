"""T_total's command line: what it needs before it touches anything, and what it writes."""

from __future__ import annotations

import argparse
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from planner.artifacts.base import Provenance
from planner.artifacts.ttotal import Stage, Ttotal, TtotalRun
from planner.errors import UsageError
from scripts import ttotal
from scripts.aws.endpoint import describe
from scripts.scaleout.chart import draw
from scripts.scaleout.stages import dominant, durations
from scripts.scaleout.summary import text_summary
from tests.scripts import ladder_artifact

FLAGS = ["--endpoint", "e", "--variant", "v", "--model", "m"]


def parsed(out, *more: str) -> argparse.Namespace:
    return ttotal._flags().parse_args([*FLAGS, "--out", str(out), *more])


def test_the_target_is_1_25_times_the_p95_at_half_the_concurrency(account, tmp_path):
    account()
    live = describe("e", "v")
    ladder_artifact.write(live, tmp_path, {1: 65.4, 5: 286.17, 10: 568.5})
    # 1.25 x 286.17, the published 357.7 ms
    assert ttotal.find_baseline(parsed(tmp_path), live).target_p95_ms == pytest.approx(357.7, abs=0.05)


@pytest.mark.parametrize(
    ("rungs", "named", "offered"),
    [
        ((1, 2, 4, 8), "no usable rung 5, 10", "--probe-concurrency 8"),
        ((5, 10), "no usable rung 1", "--rungs 1,5,10"),
        ((1,), "no usable rung 5, 10", "--rungs 1,5,10"),
    ],
)
def test_missing_rungs(account, tmp_path, rungs, named, offered):
    account()
    live = describe("e", "v")
    ladder_artifact.write(live, tmp_path, {n: 60.0 * n for n in rungs})
    with pytest.raises(UsageError, match=named) as raised:
        ttotal.find_baseline(parsed(tmp_path), live)
    assert offered in raised.value.hint


def test_a_probe_with_its_own_reference_needs_no_rungs(account, tmp_path, capsys):
    account()
    live = describe("e", "v")
    ladder_artifact.write(live, tmp_path, {2: 120.0})
    assert ttotal.find_baseline(parsed(tmp_path, "--reference", "probe"), live).target_p95_ms is None
    own = ["--reference", "probe", "--recovered-factor", "1.5", "--dry-run"]
    assert ttotal.main([*FLAGS, "--out", str(tmp_path), *own]) == 0
    assert "p95 at or under 1.5 x that of 5 users" in capsys.readouterr().out


def test_another_deployment_is_refused_with_both_values(account, tmp_path):
    fake = account()
    ladder_artifact.write(describe("e", "v"), tmp_path, {1: 60, 5: 300, 10: 600})
    with fake.edit() as state:
        state["instance_type"] = "ml.g6.xlarge"
    live = describe("e", "v")
    with pytest.raises(UsageError, match=r"instance_type: ml\.g5\.xlarge against ml\.g6\.xlarge"):
        ttotal.find_baseline(parsed(tmp_path), live)
    ttotal.find_baseline(parsed(tmp_path, "--allow-config-mismatch"), live)


def test_a_published_ladder_is_of_another_deployment_before_its_corpus_is_missed(account, tmp_path):
    account()
    published = Path(__file__).parents[2] / "examples/article/qmax.json"
    with pytest.raises(UsageError, match="image_digest: sha256:8b1b96bc") as raised:
        ttotal.find_baseline(parsed(tmp_path, "--qmax", str(published)), describe("e", "v"))
    assert "--corpus" not in raised.value.message


def test_the_admission_bound_is_no_mismatch(account, tmp_path):
    fake = account()
    ladder_artifact.write(describe("e", "v"), tmp_path, {1: 60, 5: 300, 10: 600})
    with fake.edit() as state:
        state["environment"]["MAX_QUEUE_DEPTH"] = "50"
    ttotal.find_baseline(parsed(tmp_path), describe("e", "v"))


def test_no_ladder_at_all(account, tmp_path):
    account()
    with pytest.raises(UsageError, match="no Q_max artifact") as raised:
        ttotal.find_baseline(parsed(tmp_path), describe("e", "v"))
    assert "make qmax" in raised.value.hint


def test_every_bad_flag_is_told_at_once(tmp_path):
    arguments = ["--probe-concurrency", "3", "--repeat", "0", "--hold-s", "-1", "--recovered-factor", "2"]
    with pytest.raises(UsageError) as raised:
        ttotal.main([*FLAGS, "--out", str(tmp_path), *arguments])
    for flag in ("--probe-concurrency 3", "--repeat 0", "--hold-s -1", "--recovered-factor 2"):
        assert flag in raised.value.message


def test_a_dry_run_changes_nothing(account, tmp_path, capsys):
    fake = account()
    ladder_artifact.write(describe("e", "v"), tmp_path, {1: 60, 5: 300, 10: 600})
    before = fake.durable()
    assert ttotal.main([*FLAGS, "--out", str(tmp_path), "--dry-run"]) == 0
    assert fake.durable() == before
    shown = capsys.readouterr().out
    # 30 s + 1800 s at 1.408 USD/h
    assert "at most 0.72 USD" in shown
    assert "p95 at or under 375 ms" in shown


def test_an_unknown_endpoint_lists_the_known_ones(account, tmp_path):
    account()
    with pytest.raises(UsageError, match="no endpoint is named 'x'") as raised:
        ttotal.main(["--endpoint", "x", "--variant", "v", "--model", "m", "--out", str(tmp_path)])
    assert "e" in raised.value.hint


def finished(outcome: str = "measured") -> Ttotal:
    start = datetime(2026, 8, 4, tzinfo=UTC)
    names = ("desired_set", "instance_logging", "in_service", "traffic_recovered")
    moments = zip(names, (0, 180, 210, 260), strict=True)
    stages = [Stage(name=n, at=start + timedelta(seconds=s), source="x") for n, s in moments]
    parts = durations(stages)
    good = outcome == "measured"
    run = TtotalRun(
        run=0,
        outcome=outcome,  # type: ignore[arg-type]
        detail="" if good else "no capacity",
        from_instances=1,
        to_instances=2,
        t_total_s=260.0 if good else None,
        stages=stages,
        durations=parts,
        dominant=dominant(parts) if good else None,
        requests_per_boot_id={"a": 10, "b": 9},
    )
    where = Provenance(
        tool_version="0", command=[], run_id="r", created_at=start, region="r", endpoint="e", variant="v"
    )
    return Ttotal(
        provenance=where,
        model="m",
        fingerprint=None,
        qmax_run_id=None,
        probe_concurrency=10,
        t_total_s=260.0 if good else None,
        policy_lag=None,
        runs=[run],
    )


def test_the_summary_names_the_dominant_stage(tmp_path):
    text = text_summary(finished(), tmp_path / "t.json")
    assert "180.0 s  69.2 %  <- dominant" in text
    assert "T_total: 260.0 s (one run)" in text


def test_the_summary_of_a_failure_claims_no_t_total(tmp_path):
    text = text_summary(finished("no_capacity"), tmp_path / "t.json")
    assert "no_capacity (no capacity)" in text
    assert "T_total: none" in text


@pytest.mark.parametrize("outcome", ["measured", "no_capacity"])
def test_the_chart_is_drawn_and_names_the_longest_stage(tmp_path, outcome):
    png, svg = draw(finished(outcome), tmp_path / "ttotal-m-x.y")
    assert png.name == "ttotal-m-x.y.png"
    assert png.read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in svg.read_text()


def test_the_artifact_round_trips(tmp_path):
    made = finished()
    made.save(tmp_path / "t.json")
    assert Ttotal.load(tmp_path / "t.json") == made
    assert json.loads((tmp_path / "t.json").read_text())["kind"] == "ttotal"


@pytest.mark.parametrize("flag", ["--hold-s", "--baseline-s", "--max-wait-s", "--poll-s"])
@pytest.mark.parametrize("value", ["nan", "inf", "0"])
def test_times_are_finite(flag, value):
    with pytest.raises(UsageError, match=f"{flag} {value}: more than 0"):
        ttotal.main(["--endpoint", "e", "--variant", "v", "--model", "m", flag, value])
