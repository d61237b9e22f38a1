"""The published plan in the published surge: headroom sheds, drain does not; what a fleet's metric reads."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from planner.artifacts.qmax import Qmax
from planner.artifacts.ttotal import Ttotal
from planner.decision import Ask
from planner.errors import UsageError
from planner.measured import measured
from planner.planning import make_plan
from planner.simulate.cli import main
from planner.simulate.exact import ExactKernel
from planner.simulate.interval import TtfabBins
from planner.simulate.service import ServiceModel, from_ladder

ARTICLE = Path(__file__).parents[3] / "examples" / "article"
INPUTS = ["--qmax", str(ARTICLE / "qmax.json"), "--ttotal", str(ARTICLE / "ttotal.json")]


@pytest.fixture(scope="module")
def service() -> ServiceModel:
    return from_ladder([Qmax.load(ARTICLE / "qmax.json")])


def simulate(out: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    """Scores by policy, from the file that was written."""
    assert main([*INPUTS, "--out", str(out), "--no-chart", "--name", "t", *arguments]) == 0
    return {run["score"]["policy"]: run["score"] for run in json.loads((out / "simulate-t.json").read_text())["runs"]}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("instances", [4, 12])
def test_headroom_sheds_in_the_published_surge_and_drain_does_not(tmp_path: Path, seed: int, instances: int) -> None:
    """97.4 % load x 1.25 over capacity: 1 - 1 / 1.2175 = 17.9 % while the first new instances start (300 of 330 s)."""
    found = simulate(tmp_path, "--policies", "headroom,drain,fixed", "--seed", str(seed), "--instances", str(instances))
    assert found["headroom"]["surge_shed_fraction"] == pytest.approx(0.179 * 300 / 330, abs=0.02)
    assert found["headroom"]["slo_attainment"] < 0.95
    assert found["drain"]["surge_shed_fraction"] <= 0.01
    assert found["drain"]["ttfab_p95_s"] < 3.0
    assert found["headroom"]["offered"] == found["drain"]["offered"] == found["fixed"]["offered"]


def test_scaling_on_gpu_utilisation_never_acts_on_a_launch_bound_engine(tmp_path: Path) -> None:
    found = simulate(tmp_path, "--policies", "gpu,cpu", "--gpu-saturated-pct", "40", "--cpu-saturated-pct", "100")
    assert found["gpu"]["scale_outs"] == 0
    assert found["gpu"]["surge_shed_fraction"] > 0.15
    assert found["cpu"]["surge_shed_fraction"] < 0.01


@pytest.mark.parametrize(("instances", "seed"), [(4, 1), (4, 2), (12, 1), (40, 1)])
def test_drain_holds_its_fleet_and_survives_with_scaling_live_before_the_surge(
    tmp_path: Path, instances: int, seed: int
) -> None:
    """4 x headroom's trigger load is 70 rps, 5 instances at drain's: none of them may be taken away."""
    arguments = ["--policies", "drain", "--live-hold", "--hold-s", "600", "--instances", str(instances)]
    found = simulate(tmp_path, *arguments, "--seed", str(seed))["drain"]
    assert found["surge_shed_fraction"] <= 0.01
    assert found["slo_attainment"] > 0.99
    timeline = json.loads((tmp_path / "simulate-t.json").read_text())["runs"][0]["timeline"]
    held = [n for end_s, n in zip(timeline["end_s"], timeline["desired"], strict=True) if end_s <= 600]
    assert min(held) >= found["start_instances"] == math.ceil(instances * 17.403 / 14.35)
    assert held[:28] == sorted(held[:28])  # until the scale-in alarm could see what scale-out added


@pytest.mark.parametrize("seed", [1, 2])
def test_drain_survives_a_surge_after_load_crept_up(tmp_path: Path, seed: int) -> None:
    """40 rps grow to 72 in an hour, then x1.25 at once: nobody puts the fleet at its trigger by hand."""
    trace = tmp_path / "creep.csv"
    trace.write_text("time_s,rate_rps\n0,40\n3600,72\n3600.1,90\n3960,90\n", encoding="utf-8")
    found = simulate(tmp_path, "--profile", str(trace), "--policies", "headroom,drain", "--seed", str(seed))
    assert found["drain"]["shed_fraction"] <= 0.001
    assert found["headroom"]["shed_fraction"] > 0.01


def test_a_plan_for_many_sizes_survives_at_a_small_one(tmp_path: Path) -> None:
    """1 to 349 instances share one target; at 70 rps it keeps more than five, and never fewer."""
    joined = measured([Qmax.load(ARTICLE / "qmax.json")], [Ttotal.load(ARTICLE / "ttotal.json")])
    ask = Ask(slo_ms=3000, surge_ratio=1.25, peak_rps=5000, trough_rps=10, rule="drain")
    make_plan(joined, ask, command=[], now=datetime(2026, 8, 5, tzinfo=UTC)).save(tmp_path / "plan.json")
    arguments = ["--plan", str(tmp_path / "plan.json"), "--policies", "drain", "--name", "t", "--no-chart"]
    live = ["--base-rps", "70", "--live-hold", "--out", str(tmp_path)]
    assert main([*INPUTS[:2], *arguments, *live]) == 0
    run = json.loads((tmp_path / "simulate-t.json").read_text())["runs"][0]
    assert run["score"]["surge_shed_fraction"] <= 0.01
    assert 10 < max(run["timeline"]["desired"]) < 60
    assert min(run["timeline"]["desired"]) >= 5


def test_service_is_the_ladder_and_its_variability(service: ServiceModel) -> None:
    assert service.rates_rps[1] == pytest.approx(16.0833, abs=1e-3)
    assert service.rates_rps[5] == pytest.approx(17.9)
    assert service.cv == pytest.approx((65.3717 - 60.0210) / 1.6449 / 60.0210, rel=0.02)
    assert 0.98 < service.first_audio_share[1] < 1.0


@pytest.mark.parametrize(("load_rps", "p95_ms"), [(50.0, 2805.7), (200.0, 2805.7)])
def test_overloaded_ttfab_is_the_ladder_at_q_max(service: ServiceModel, load_rps: float, p95_ms: float) -> None:
    """With every slot taken an admitted request is one of 50 inside: the ladder measured 2 806 ms there."""
    rng, bins = np.random.default_rng(1), TtfabBins(3.0)
    args = {"instances": 1, "bound": 50, "routing": "least_outstanding", "bins": bins, "rng": rng}
    server = ExactKernel(service, **args)  # type: ignore[arg-type]
    server.advance(20.0, np.sort(rng.random(int(20 * load_rps))) * 20)
    found = server.advance(120.0, 20 + np.sort(rng.random(int(100 * load_rps))) * 100)
    assert bins.quantile_s(found.ttfab_counts, 0.95) == pytest.approx(p95_ms / 1e3, rel=0.03)


def test_the_documented_comparison_is_what_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documented = (ARTICLE.parents[1] / "docs" / "simulation.md").read_text(encoding="utf-8").split("```")[1].strip()
    curves = ["--gpu-saturated-pct", "40", "--cpu-saturated-pct", "100"]
    assert main([*INPUTS, *curves, "--name", "article", "--out", str(tmp_path), "--no-chart"]) == 0
    assert capsys.readouterr().out.strip() == documented


def test_a_plan_file_is_used_as_written(tmp_path: Path) -> None:
    """Both rules from one plan: its own, and the other from its alternatives."""
    joined = measured([Qmax.load(ARTICLE / "qmax.json")], [Ttotal.load(ARTICLE / "ttotal.json")])
    ask = Ask(slo_ms=3000, surge_ratio=1.25, peak_rps=5000, trough_rps=10)
    plan = make_plan(joined, ask, command=[], now=datetime(2026, 8, 5, tzinfo=UTC))
    plan.save(tmp_path / "plan.json")
    arguments = ["--plan", str(tmp_path / "plan.json"), "--policies", "headroom,drain", "--name", "p", "--no-chart"]
    assert main([*INPUTS[:2], *arguments, "--out", str(tmp_path)]) == 0
    found = json.loads((tmp_path / "simulate-p.json").read_text())
    shed = {run["score"]["policy"]: run["score"]["surge_shed_fraction"] for run in found["runs"]}
    assert found["inputs"]["t_total_s"] == pytest.approx(260.25, abs=0.01)
    assert shed["headroom"] > 0.13
    assert shed["drain"] <= 0.01


def test_a_rerun_is_byte_identical(tmp_path: Path) -> None:
    texts = []
    for name in ("a", "b"):
        arguments = ["--policies", "headroom", "--out", str(tmp_path / name), "--chart", str(tmp_path / f"{name}.svg")]
        assert main([*INPUTS, *arguments]) == 0
        texts.append(((tmp_path / name / "simulate-surge.json").read_bytes(), (tmp_path / f"{name}.svg").read_bytes()))
    assert texts[0] == texts[1]


def test_table_and_chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*INPUTS, "--policies", "headroom,fixed", "--out", str(tmp_path), "--profile", "constant"]) == 0
    printed = capsys.readouterr()
    assert "in SLO" in printed.out
    assert "headroom" in printed.out
    assert "wrote" in printed.err
    assert (tmp_path / "simulate-constant.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize("shape", ["ramp", "daily"])
def test_other_profiles(tmp_path: Path, shape: str) -> None:
    shorter = ["--duration-s", "3600", "--ramp-s", "600", "--peak-rps", "30", "--trough-rps", "10"]
    found = simulate(tmp_path, "--profile", shape, "--policies", "requests,scheduled", *shorter)
    assert found["scheduled"]["shed_fraction"] < 0.01


def test_trace_file(tmp_path: Path) -> None:
    trace = tmp_path / "mine.csv"
    trace.write_text("time_s,rate_rps\n0,10\n300,30\n600,30\n", encoding="utf-8")
    found = simulate(tmp_path, "--profile", str(trace), "--policies", "fixed")
    assert found["fixed"]["offered"] == pytest.approx(20 * 300 + 30 * 300, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "complaints"),
    [
        ([], ["--qmax is missing", "--ttotal"]),
        ([*INPUTS, "--profile", "sawtooth"], ["unknown profile"]),
        ([*INPUTS, "--policies", "magic,headroom"], ["unknown policies: magic"]),
        ([*INPUTS, "--policies", "gpu"], ["GPU utilisation"]),
        ([*INPUTS, "--base-rps", "-1", "--hold-s", "nan"], ["--base-rps is -1", "--hold-s is nan"]),
        ([*INPUTS, "--publish-delay-s", "7"], ["multiple of 10"]),
        ([*INPUTS, "--service-cv", "9"], ["outside 0..3"]),
        ([*INPUTS, "--surge-ratio", "1.5"], ["--surge-ratio 1.5 is outside"]),
        ([*INPUTS, "--base-rps", "1e12"], ["--peak-rps is 1.25e+12, which nothing measures"]),
        ([*INPUTS, "--instances", "100000000"], ["instances or more"]),
        ([*INPUTS, "--max-instances", "100000000"], ["100000000 instances: nobody simulates as many"]),
        ([*INPUTS, "--min-instances", "9", "--max-instances", "2"], ["--max-instances 2 is below the floor of 9"]),
        ([*INPUTS, "--hold-s", "1e12"], ["profile surge: lasts 1e+12 s"]),
        ([*INPUTS, "--max-shed", "2"], ["between 0 and 1"]),
        ([*INPUTS, "--plan", "nowhere.json"], ["no such file"]),
        ([*INPUTS, "--chart-policies", "drain", "--policies", "headroom"], ["leaves out"]),
    ],
)
def test_bad_input_is_refused_with_every_reason(tmp_path: Path, arguments: list[str], complaints: list[str]) -> None:
    with pytest.raises(UsageError) as raised:
        main([*arguments, "--out", str(tmp_path)])
    assert all(complaint in raised.value.message for complaint in complaints)
