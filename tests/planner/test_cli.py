"""`python -m planner plan` from the outside: files, screen, speed, memory."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import hcl2
import pytest

from planner.__main__ import main
from planner.artifacts.plan import Plan
from planner.artifacts.qmax import Qmax
from planner.errors import UsageError
from planner.measured import Measured
from planner.pick import current
from planner.terminal import terminal
from planner.tfvars import quoted, tfvars
from tests.planner.conftest import ARTICLE, edited, plan_of

FLAGS = ["--qmax", str(ARTICLE / "qmax.json"), "--ttotal", str(ARTICLE / "ttotal.json")]
TRAFFIC = ["--peak-rps", "5000", "--trough-rps", "10"]


def test_writes_plan_markdown_and_tfvars(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", *FLAGS, *TRAFFIC, "--out", str(tmp_path)]) == 0
    plan_path = tmp_path / "plan-kokoro-82m.json"
    assert Plan.load(plan_path).derived.c_scale_max == 37.5
    assert hcl2.loads((tmp_path / "plan.auto.tfvars").read_text())["plan_json"].strip('"') == str(plan_path)
    text = (tmp_path / "plan-kokoro-82m.md").read_text()
    for word in ("surge_survival", "65.4 ms", "66.1 ms", "Alternatives", "$405.50"):
        assert word in text
    said = capsys.readouterr()
    assert str(plan_path) in said.err
    assert str(plan_path) not in said.out


def test_screen(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    main(["plan", *FLAGS, *TRAFFIC, "--out", str(tmp_path)])
    screen = capsys.readouterr().out
    lines = screen.splitlines()
    assert "\x1b" not in screen
    assert len(lines) <= 61
    assert max(len(line) for line in lines) <= 100
    assert screen.index("surge_survival") < screen.index("c_scale_max  ")
    for word in ("37.5 requests", "2.934 s", "97.4%", "960 s", "(1 - h) Q_max", "65.4 ms", "66.1 ms", "> headroom"):
        assert word in screen


def test_colour_only_adds_to_the_same_text(article: Measured) -> None:
    plan = plan_of(article)
    plain, painted = terminal(plan), terminal(plan, colour=True)
    assert painted != plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == plain


def test_json_is_all_that_stdout_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["plan", *FLAGS, *TRAFFIC, "--out", str(tmp_path), "--json"])
    assert json.loads(capsys.readouterr().out)["derived"]["scaling_target_value"] == 37.5


def test_stop_is_exit_three_and_the_plan_says_so(tmp_path: Path) -> None:
    total = edited(ARTICLE / "ttotal.json", tmp_path / "t.json", metric_scope="variant_total")
    assert main(["plan", *FLAGS[:2], "--ttotal", str(total), *TRAFFIC, "--out", str(tmp_path)]) == 3
    assert Plan.load(tmp_path / "plan-kokoro-82m.json").verdict == "stop"


def test_rerun_gives_the_same_tfvars_and_keeps_no_copy(tmp_path: Path) -> None:
    first = None
    for _ in range(2):
        main(["plan", *FLAGS, *TRAFFIC, "--out", str(tmp_path)])
        again = (tmp_path / "plan.auto.tfvars").read_bytes()
        assert first in (None, again)
        first = again
    assert len(list(tmp_path.iterdir())) == 3


def test_another_request_keeps_the_earlier_plan_beside(tmp_path: Path) -> None:
    main(["plan", *FLAGS, *TRAFFIC, "--out", str(tmp_path)])
    main(["plan", *FLAGS, "--peak-rps", "100", "--out", str(tmp_path)])
    assert len(list(tmp_path.glob("plan-kokoro-82m*.json"))) == 2


@pytest.mark.parametrize("name", ['with "quotes"', "with ${var.x} and %{if}", "back\\slash", "späße", "two  spaces"])
def test_tfvars_quote_any_path(tmp_path: Path, name: str) -> None:
    plan = tmp_path / name / "plan.json"
    line = tfvars(plan)
    assert line.count("\n") == 1
    assert "${var" not in line.replace("$${", "")
    hcl2.loads(line)


def test_quoted_escapes() -> None:
    assert quoted('a"b\\c\n${d}%{e}') == '"a\\"b\\\\c\\n$${d}%%{e}"'


def test_finds_the_newest_pair_and_says_which(files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["plan", "--model", "kokoro-82m", "--artifacts", str(files), *TRAFFIC, "--out", str(out)]) == 0
    assert (out / "plan-kokoro-82m.json").exists()
    assert f"planning from {files}/qmax-kokoro-82m-response-stream" in capsys.readouterr().err


def test_finds_the_newest_ladder_when_t_total_is_assumed(files: Path, tmp_path: Path) -> None:
    flags = ["--model", "kokoro-82m", "--artifacts", str(files), "--assume-t-total-s", "90", *TRAFFIC]
    assert main(["plan", *flags, "--out", str(tmp_path / "out")]) == 0
    with pytest.raises(UsageError, match="no qmax-other"):
        main(["plan", "--model", "other", *flags[2:], "--out", str(tmp_path / "out")])


def test_files_kept_aside_are_not_candidates(files: Path) -> None:
    name = "qmax-kokoro-82m-response-stream-g5xlarge-8b1b96bc"
    (files / f"{name}.b8fa8ef48043.json").write_text("not even JSON")
    assert [path.name for path, _ in current(files, Qmax, "kokoro-82m")] == [f"{name}.json"]


def test_no_measurement_names_the_command(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no qmax-kokoro-82m") as caught:
        main(["plan", "--model", "kokoro-82m", "--artifacts", str(tmp_path), *TRAFFIC])
    assert "make qmax" in caught.value.hint
    with pytest.raises(UsageError, match="--qmax and --ttotal not given"):
        main(["plan", *TRAFFIC])


def test_newest_files_of_different_deployments_are_refused(files: Path) -> None:
    other = {"fingerprint.image_digest": "sha256:" + "1" * 64, "provenance.created_at": "2027-01-01T00:00:00Z"}
    edited(ARTICLE / "qmax.json", files / "qmax-kokoro-82m-response-stream-g5xlarge-11111111.json", **other)
    out = str(files / "out")
    found = ["plan", "--model", "kokoro-82m", "--artifacts", str(files), *TRAFFIC, "--out", out]
    assert main(found) == 0, "the one pair that agrees is used"
    next(files.glob("ttotal-*")).unlink()
    edited(ARTICLE / "ttotal.json", files / "ttotal-kokoro-82m-x.json", **{"fingerprint.transport": "bidi"})
    with pytest.raises(UsageError, match="describe the same deployment") as caught:
        main(found)
    assert "transport" in caught.value.message


def test_several_pairs_without_a_newest_are_refused(files: Path) -> None:
    digest = {"fingerprint.image_digest": "sha256:" + "1" * 64}
    newer = {"provenance.created_at": "2027-01-01T00:00:00Z"}
    older = {"provenance.created_at": "2020-01-01T00:00:00Z"}
    edited(ARTICLE / "qmax.json", files / "qmax-kokoro-82m-response-stream-b.json", **digest, **newer)
    edited(ARTICLE / "ttotal.json", files / "ttotal-kokoro-82m-b.json", **digest, **older)
    with pytest.raises(UsageError, match="several pairs") as caught:
        main(["plan", "--model", "kokoro-82m", "--artifacts", str(files), *TRAFFIC])
    assert caught.value.message.count("--qmax") == 2


# The child reports its own peak: what wait4 reports includes the parent's pages at the fork.
COLD_START = """
import runpy, sys
try:
    runpy.run_module("planner", run_name="__main__", alter_sys=True)
finally:
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(peak.split()[1], *sorted(sys.modules), file=sys.stderr)
"""


def test_cold_start_is_small_and_imports_nothing_heavy(tmp_path: Path) -> None:
    command = [sys.executable, "-c", COLD_START, "plan", *FLAGS, *TRAFFIC, "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    peak_kib, *modules = done.stderr.splitlines()[-1].split()
    assert int(peak_kib) / 1024 < 120
    assert not {"torch", "boto3", "locust", "matplotlib", "scipy", "gevent"} & set(modules)


def test_sweep_prints_a_row_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", *FLAGS, "--peak-rps", "50,100", "--surge-ratio", "1.1,1.25", "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 2 * 2 * 2
    assert {row["rule"] for row in rows} == {"headroom", "drain"}
    assert main(["sweep", *FLAGS, "--peak-rps", "50"]) == 0
    assert "instances" in capsys.readouterr().out
    with pytest.raises(UsageError, match="not a list of numbers"):
        main(["sweep", *FLAGS, "--peak-rps", "50,x"])
