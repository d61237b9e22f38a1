"""Artifacts, their records and charts on disk, and what the terminal says about them."""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import xml.etree.ElementTree as ElementTree
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from loadtest import estimate, publish, settings, terminal
from loadtest.chart import draw
from loadtest.session import check_admission, judge_outcome
from planner.artifacts.base import Provenance
from planner.artifacts.fingerprint import Fingerprint
from planner.artifacts.qmax import CloudWatchView, Qmax, Quantiles, Rung
from planner.errors import FactFails, Undecided, UsageError
from scripts.aws.endpoint import LiveEndpoint


def ladder(*arguments: str) -> settings.Ladder:
    parser = argparse.ArgumentParser()
    settings.add_arguments(parser)
    return settings.parse(parser.parse_args(["--endpoint", "speech", "--model", "m", *arguments]))


def rung(concurrency: int, verdict: Any, p95: float = 100.0, **changes: Any) -> Rung:
    found = Quantiles(n=100, mean=p95, p50=p95, p90=p95, p95=p95, p99=p95, p95_upper=p95, p95_lower=p95)
    values: dict[str, Any] = {
        "concurrency": concurrency,
        "verdict": verdict,
        "point_verdict": "fail" if verdict == "fail" else "pass",
        "ttfab_ms": found,
        "latency_ms": found,
        "achieved_rps": 17.9,
        "in_flight_mean": float(concurrency),
    }
    return Rung(**(values | changes))


def source(run_id: str = "run-one") -> Provenance:
    return Provenance(
        tool_version="0",
        command=["x"],
        run_id=run_id,
        created_at=datetime(2026, 11, 29, tzinfo=UTC),
        region="us-east-1",
        endpoint="speech",
        variant="primary",
    )


def fingerprint() -> Fingerprint:
    return Fingerprint(
        instance_type="ml.g5.xlarge",
        image_digest="sha256:" + "8b1b96bc" * 8,
        transport="response-stream",
        container_env={},
        workload=ladder().common.workload,
    )


def artifact(done: list[Rung], run_id: str = "run-one", *arguments: str) -> Qmax:
    plan = ladder(*arguments)
    return publish.qmax(plan, plan.method(1), done, fingerprint(), source(run_id), [])


BRACKETED = [rung(1, "pass", 65.4), rung(50, "pass", 2805.0), rung(60, "fail", 3374.0)]


def test_the_artifact_says_what_the_ladder_said() -> None:
    found = artifact(BRACKETED)
    assert (found.outcome, found.q_max, found.bracketed, found.q_max_per_run) == ("found", 50, True, [50])
    assert (found.service_mean_s, found.ttfab_p95_at_1_ms) == (pytest.approx(0.0654), 65.4)
    assert any("single run" in note for note in found.notes)
    assert terminal.sentence(found) == "Q_max = 50 (p95 ttfab <= 3000 ms), bracketed by 60"


def test_several_runs_are_the_worst_and_shown() -> None:
    runs = [*BRACKETED, *(each.model_copy(update={"run": 1}) for each in (rung(1, "pass"), rung(50, "fail", 3100.0)))]
    found = artifact(runs, "run-one", "--runs", "2")
    assert (found.q_max, found.q_max_per_run) == (1, [50, 1])


def test_a_fluke_above_a_miss_becomes_invalid() -> None:
    found = artifact([rung(1, "pass"), rung(5, "fail", 3100.0), rung(10, "pass")])
    assert [each.verdict for each in found.ladder] == ["pass", "fail", "invalid"]
    assert "not monotone" in found.ladder[2].reasons[0]


def test_records_lie_beside_the_artifact(tmp_path: Path) -> None:
    partial = tmp_path / ".partial"
    partial.write_text('{"a":1}\n', encoding="utf-8")
    path = publish.save(artifact(BRACKETED), partial, tmp_path, "qmax-m")
    saved = Qmax.load(path)
    assert saved.records_file == "qmax-m.requests.jsonl"
    assert saved.records_sha256 == hashlib.sha256(b'{"a":1}\n').hexdigest()
    assert (tmp_path / "qmax-m.requests.jsonl").read_text(encoding="utf-8") == '{"a":1}\n'
    assert not partial.exists()


def test_another_runs_pair_is_kept_together(tmp_path: Path) -> None:
    for run_id, line in (("run-one", "first\n"), ("run-two", "second\n")):
        partial = tmp_path / ".partial"
        partial.write_text(line, encoding="utf-8")
        publish.save(artifact(BRACKETED, run_id), partial, tmp_path, "qmax-m")
    kept = json.loads((tmp_path / "qmax-m.run-one.json").read_text(encoding="utf-8"))
    assert (tmp_path / kept["records_file"]).read_text(encoding="utf-8") == "first\n"
    assert (tmp_path / "qmax-m.requests.jsonl").read_text(encoding="utf-8") == "second\n"
    assert kept["records_sha256"] == hashlib.sha256(b"first\n").hexdigest()
    newest = max(tmp_path.glob("qmax-m*.json"), key=lambda path: path.stat().st_mtime_ns)
    assert newest.name == "qmax-m.json"


def test_the_stem_names_model_transport_and_image() -> None:
    assert publish.stem("qmax", "kokoro-82m", fingerprint()) == "qmax-kokoro-82m-response-stream-g5xlarge-8b1b96bc"


@pytest.mark.parametrize("path", [Path("examples/article/qmax.json")])
def test_the_published_ladder_can_be_drawn(tmp_path: Path, path: Path) -> None:
    draw(Qmax.load(Path(__file__).resolve().parents[2] / path), tmp_path / "article")
    assert (tmp_path / "article.png").read_bytes()[:4] == b"\x89PNG"


def test_a_chart_shows_slo_answer_units_and_excluded_rungs(tmp_path: Path) -> None:
    done = [*BRACKETED, rung(55, "invalid", 3000.0, reasons=["worker lost"]), rung(58, "undecided", 3001.0)]
    draw(artifact(done), tmp_path / "q")
    picture = ElementTree.parse(tmp_path / "q.svg")
    assert picture.getroot().tag.endswith("svg")
    comments = (tmp_path / "q.svg").read_text(encoding="utf-8")
    for text in (
        "SLO 3000 ms (p95)",
        "Q_max = 50",
        "(ms)",
        "(requests/s)",
        "invalid",
        "undecided",
        "p50",
        "p95",
        "p99",
    ):
        assert text in comments, text


def test_the_table_is_aligned_and_plain_without_a_terminal() -> None:
    seen = CloudWatchView(concurrency_max=50.0)
    found = artifact([BRACKETED[0], BRACKETED[1].model_copy(update={"cloudwatch": seen}), BRACKETED[2]])
    lines = terminal.table(found, colour=False).splitlines()
    assert "\x1b" not in terminal.table(found, colour=False)
    assert {line.index("  ", 60) for line in lines[2:]} == {lines[2].index("  ", 60)}
    assert lines[3].split()[10] == "50"
    assert ["≤" in line for line in lines[2:]] == [rung.point_verdict == "pass" for rung in found.ladder]
    assert ["≥" in line for line in lines[2:]] == [rung.point_verdict == "fail" for rung in found.ladder]
    assert "\x1b[31mfail" in terminal.table(found, colour=True)


def test_nothing_moves_off_a_terminal() -> None:
    stream = io.StringIO()
    screen = terminal.Screen(stream)
    screen.show("moving")
    screen.line("N=1 pass")
    assert stream.getvalue() == "N=1 pass\n"


def test_the_moving_line_has_time_left_and_the_p95_so_far() -> None:
    text = terminal.progress("N=5", "hold", 42.4, 5, [float(v) for v in range(1, 101)])
    assert text == "N=5  hold    42 s left  5 in flight  p95 95 ms  n=100"
    assert "n=0" in terminal.progress("N=5", "ramp", None, 0, [])


def test_outcomes_have_exit_codes() -> None:
    judge_outcome(artifact(BRACKETED))
    judge_outcome(artifact([rung(1, "pass")]))
    with pytest.raises(FactFails, match="no concurrency"):
        judge_outcome(artifact([rung(1, "fail", 4000.0)]))
    with pytest.raises(Undecided):
        judge_outcome(artifact([rung(1, "invalid")]))


def live(**environment: str) -> LiveEndpoint:
    fields: dict[str, Any] = dict.fromkeys(LiveEndpoint.__dataclass_fields__)
    return LiveEndpoint(**(fields | {"name": "speech", "environment": environment}))


def test_an_admission_bound_below_the_ladder_is_refused_unless_allowed() -> None:
    assert check_admission(ladder(), live()) == []
    assert check_admission(ladder(), live(MAX_QUEUE_DEPTH="60")) == []
    with pytest.raises(UsageError, match="at most 50"):
        check_admission(ladder(), live(MAX_QUEUE_DEPTH="50"))
    assert check_admission(ladder("--allow-config-mismatch"), live(MAX_QUEUE_DEPTH="50"))


def test_a_window_too_short_for_cloudwatch_is_told_with_its_remedy(tmp_path: Path) -> None:
    def told(window_s: str) -> str:
        text = estimate.describe(ladder("--measure-window-s", window_s, "--out", str(tmp_path)), "ml.g5.xlarge")
        return text.partition("note: ")[2]

    # 20 s hold a whole 10 s period wherever they begin, 10 s only when they begin with one.
    assert told("20") == ""
    assert "hold perhaps no whole 10 s period" in told("19.9")
    assert "hold no whole 10 s period" in told("9")
    assert "--measure-window-s 20" in told("9")


def test_the_dry_run_states_time_requests_and_dollars(tmp_path: Path) -> None:
    text = estimate.describe(ladder("--rungs", "1,10", "--out", str(tmp_path)), "ml.g5.xlarge")
    # 240 s at 1/0.0613 s and at the saturated 17.9 requests/s.
    assert "3,915" in text
    assert "4,296" in text
    assert "about 8,211 requests" in text
    # 2 x (3 s ramp + 240 s hold + 3 s drain + 30 s idle) at 1.408 USD/h.
    assert "09:12" in text
    assert "$0.22" in text
    assert "as published" in text


def test_the_dry_run_prefers_what_was_measured_here(tmp_path: Path) -> None:
    artifact([rung(1, "pass", 1000.0, achieved_rps=1.0), rung(4, "pass", achieved_rps=2.0)]).save(
        tmp_path / "qmax-m-response-stream-x.json"
    )
    text = estimate.describe(ladder("--rungs", "1,10", "--out", str(tmp_path)), "ml.unknown")
    assert "about 720 requests (measured in qmax-m-response-stream-x.json)" in text
    assert "cost unknown" in text
