"""Open-loop schedules: Poisson by test, exact traces, capacity from the ladder, exact shares."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from loadtest import rates, traffic
from loadtest.inbox import Rows
from loadtest.openloop import Schedule
from planner.artifacts.records import RequestRecord
from planner.errors import UsageError

S = 1_000_000_000


def parsed(*arguments: str) -> traffic.Surge:
    parser = argparse.ArgumentParser()
    traffic.add_arguments(parser)
    return traffic.parse(parser.parse_args(["--endpoint", "e", "--model", "m", *arguments]))


@pytest.mark.parametrize("seed", range(5))
def test_inter_arrival_times_are_exponential(seed: int) -> None:
    due_s = parsed("--traffic", "constant", "--base-rps", "50", "--lasts-s", "60", "--seed", str(seed)).schedule.due_s
    assert len(due_s) == pytest.approx(3000, abs=5 * 3000**0.5)
    assert stats.kstest(np.diff(due_s), "expon", args=(0, 1 / 50)).pvalue > 0.001


def test_the_same_seed_gives_the_same_arrivals() -> None:
    first, again, other = (parsed("--traffic", "surge", "--seed", seed).schedule.due_s for seed in ("1", "1", "2"))
    assert first == again != other


def test_a_surge_multiplies_the_base() -> None:
    found = parsed("--traffic", "surge", "--base-rps", "100", "--ratio", "2", "--lead-s", "20", "--lasts-s", "40")
    assert [(s.name, s.start_s, s.end_s) for s in found.stretches] == [
        ("before", 0, 20),
        ("surge", 20, 60),
        ("after", 60, 80),
    ]
    counts = np.bincount(found.schedule.stretch)
    assert counts[0] == pytest.approx(2000, rel=0.1)
    assert counts[1] == pytest.approx(8000, rel=0.1)
    assert not found.rates


@pytest.mark.parametrize(("name", "stretches"), [("ramp", 5), ("daily", 1), ("constant", 1)])
def test_other_profiles(name: str, stretches: int) -> None:
    found = parsed("--traffic", name, "--lead-s", "5", "--lasts-s", "30")
    assert len(found.stretches) == stretches
    assert sorted(found.schedule.due_s) == list(found.schedule.due_s)
    assert max(found.schedule.due_s) <= found.lasts_s


def test_rates_are_fractions_of_the_capacity_one_after_the_other() -> None:
    found = parsed(
        "--rates", "0.9,0.5", "--capacity-rps", "20", "--hold-s", "30", "--measure-window-s", "20", "--idle-s", "5"
    )
    assert found.rates
    assert [(s.name, s.start_s, s.end_s, s.measured_from_s) for s in found.stretches] == [
        ("10.00 rps", 0, 30, 10),
        ("18.00 rps", 35, 65, 45),
    ]
    counts = np.bincount(found.schedule.stretch)
    assert counts[0] == pytest.approx(300, abs=80)
    assert counts[1] == pytest.approx(540, abs=100)


def test_the_capacity_comes_from_the_published_ladder() -> None:
    article = Path(__file__).resolve().parents[2] / "examples" / "article" / "qmax.json"
    found = parsed("--rates", "0.5", "--qmax", str(article))
    assert found.stretches[0].name == "8.96 rps"


def test_a_trace_of_arrivals_is_replayed_exactly(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("arrival_s\n100.5\n100.0\n103.25\n", encoding="utf-8")
    found = parsed("--traffic", str(file))
    assert list(found.schedule.due_s) == [0.0, 0.5, 3.25]
    assert found.stretches[0].name == "trace"


def test_a_trace_of_rates_is_drawn(tmp_path: Path) -> None:
    file = tmp_path / "day.csv"
    file.write_text("time_s,rate_rps\n0,10\n60,10\n", encoding="utf-8")
    assert len(parsed("--traffic", str(file)).schedule.due_s) == pytest.approx(600, abs=125)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "either --rates or --traffic"),
        (["--rates", "0.5", "--traffic", "surge"], "either"),
        (["--rates", "0.5,x", "--capacity-rps", "10"], "--rates x"),
        (["--rates", "0", "--capacity-rps", "10"], "--rates 0"),
        (["--rates", "0.5", "--capacity-rps", "0"], "--capacity-rps 0"),
        (["--rates", "0.5", "--out", "no-such-directory"], "no ladder of m"),
        (["--rates", "0.5", "--capacity-rps", "9", "--hold-s", "5"], "longer than --hold-s"),
        (["--traffic", "missing.csv"], "missing.csv"),
        (["--traffic", "surge", "--ratio", "-1"], "--ratio -1"),
        (["--traffic", "constant", "--base-rps", "0"], "no request is due"),
    ],
)
def test_bad_command_lines(arguments: list[str], word: str) -> None:
    with pytest.raises(UsageError) as caught:
        parsed(*arguments)
    assert word in caught.value.message


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_shares_add_up_to_the_schedule(workers: int) -> None:
    whole = Schedule([i / 10 for i in range(100)], [i // 50 for i in range(100)])
    shares = [traffic.share(whole, index, workers) for index in range(workers)]
    pairs = sorted((at_s, s) for part in shares for at_s, s in zip(part.due_s, part.stretch, strict=True))
    assert pairs == list(zip(whole.due_s, whole.stretch, strict=True))


def answered(due_s: float, took_s: float, *, late_s: float = 0.0, **changes: Any) -> RequestRecord:
    values: dict[str, Any] = dict.fromkeys(RequestRecord.__dataclass_fields__)
    intended, done = int(due_s * S), int((due_s + late_s + took_s) * S)
    values |= {"worker": "w", "run": 0, "rung": 0, "intended_ns": intended, "sent_ns": intended + int(late_s * S)}
    values |= {"done_ns": done, "first_audio_ns": done, "outcome": "ok", "bytes": 1, "chars": 1, "text": 0}
    return RequestRecord(**(values | changes))


def ladder_of(due_s: list[float]) -> traffic.Surge:
    common = parsed("--traffic", "constant").common
    stretch = traffic.Stretch("s", 0.0, 20.0, 10.0)
    return traffic.Surge(common, True, (stretch,), Schedule(due_s, [0] * len(due_s)))


def test_a_stretch_counts_from_the_time_requests_were_due() -> None:
    due_s = [i / 10 for i in range(200)]
    records = [answered(at_s, 0.2, late_s=0.005) for at_s in due_s]
    (found,) = rates.measure(ladder_of(due_s), Rows(records), 0, 1, [])
    assert (found.rate.offered_rps, found.rate.achieved_rps, found.rate.shed_fraction) == (10.0, 10.0, 0.0)
    assert found.rate.ttfab_ms is not None
    assert found.rate.ttfab_ms.p95 == pytest.approx(205)
    assert found.rate.in_flight_mean == pytest.approx(2.0, rel=0.01)
    assert (found.attainment, found.rate.client_bound) == (1.0, False)


def test_shed_requests_are_shed_and_missed() -> None:
    due_s = [10 + i / 10 for i in range(100)]
    records = [answered(at, 0.1, outcome="rejected" if i % 4 == 0 else "ok") for i, at in enumerate(due_s)]
    (found,) = rates.measure(ladder_of(due_s), Rows(records), 0, 1, [])
    assert (found.rate.shed_fraction, found.attainment) == (0.25, 0.75)


def test_a_client_that_falls_behind_says_so() -> None:
    due_s = [10 + i / 10 for i in range(100)]
    (late,) = rates.measure(ladder_of(due_s), Rows([answered(at, 0.1, late_s=0.05) for at in due_s]), 0, 1, [])
    assert late.rate.client_bound
    assert "50 ms late" in late.bound
    (missing,) = rates.measure(ladder_of(due_s), Rows([answered(at, 0.1) for at in due_s[:90]]), 0, 1, [])
    assert "10 of 100 requests due" in missing.bound


def test_a_rate_that_two_containers_answered_is_not_one_instances() -> None:
    due_s = [i / 10 for i in range(200)]
    boots = [answered(at, 0.1, boot_id="ab"[i % 2]) for i, at in enumerate(due_s)]
    (found,) = rates.measure(ladder_of(due_s), Rows(boots), 0, 1, [])
    assert found.rate.client_bound
    assert "2 containers answered" in found.bound


def test_the_ratio_compares_the_same_periods() -> None:
    from datetime import UTC, datetime

    due_s = [10 + i / 10 for i in range(100)]
    (found,) = rates.measure(ladder_of(due_s), Rows([answered(at, 0.2) for at in due_s]), 0, 1, [])
    at = datetime.fromtimestamp(10, UTC)
    seen = rates.joined(found, lambda *_: [(at, 5.0)])
    assert seen.rate.concurrency_10s_max == 5.0
    assert seen.rate.metric_ratio == pytest.approx(5.0 / found.rate.in_flight_mean, abs=1e-4)
    assert rates.joined(found, lambda *_: []).rate.metric_ratio is None


@pytest.mark.parametrize("load", [("--rates", "0.5", "--capacity-rps", "10"), ("--traffic", "constant")])
def test_the_open_loop_does_not_speak_bidi(load: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="the open loop does not speak bidi") as caught:
        parsed(*load, "--transport", "bidi")
    assert "Python" not in caught.value.message
