"""The demo's own part: which commands it runs, where it goes on, and what it never touches."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from planner.errors import ExitCode, Interrupted, UsageError
from scripts import demo
from scripts.demonstration.steps import Step, Target, seeded, with_terraform
from scripts.demonstration.summary import sentence
from tests.docs.helps import command_of, flags

ARTICLE = Path(__file__).parents[2] / "examples/article"


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Target:
    """A demo whose rehearsal never runs."""
    made = Target("speech", "primary", "kokoro-82m", tmp_path / "demo")
    monkeypatch.setenv("HEADROOM_REHEARSAL_DIR", str(made.rehearsal_dir))
    (made.out / "logs").mkdir(parents=True)
    return made


@pytest.mark.parametrize("chain", [with_terraform, seeded])
def test_every_step_is_a_command_that_takes_its_flags(chain, target: Target) -> None:
    steps = chain(target)
    assert len({step.name for step in steps}) == len(steps)
    for step in steps:
        words = list(step.command)[2:]
        used = {word for word in words if word.startswith("--")}
        assert used - flags()[command_of(words)] == set(), step.name


def test_the_whole_chain_and_what_is_left_of_it_without_terraform(target: Target) -> None:
    whole = [step.name for step in with_terraform(target)]
    assert whole == ["rehearsal", "deploy", "drift", "qmax", "ttotal", "plan", "apply", "validate", "surge", "report"]
    assert [step.name for step in seeded(target)] == ["rehearsal", "qmax", "ttotal", "plan", "report"]


def step(code: str, accepts: tuple[int, ...] = (0,)) -> Step:
    return Step("part", "doing it", [sys.executable, "-c", code], accepts)


def test_a_failed_step_ends_with_its_code_and_its_last_words(target: Target) -> None:
    with pytest.raises(demo.StepFailed, match="no quota") as failed:
        demo._run(step("print('no quota'); raise SystemExit(5)"), target, "[1/1]")
    assert failed.value.exit_code == ExitCode.AWS
    assert "logs/part.log" in failed.value.hint


def test_a_no_that_is_a_result_lets_the_demo_go_on(target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    demo._run(step("raise SystemExit(3)", accepts=(0, 3)), target, "[1/1]")
    assert "(exit 3)" in capsys.readouterr().out


def test_an_undecided_answer_is_asked_for_once_more(target: Target, capsys: pytest.CaptureFixture[str]) -> None:
    asked = target.out / "asked"
    code = f"import os; os.path.exists({str(asked)!r}) or (open({str(asked)!r}, 'w').close(), exit(4))"
    demo._run(replace(step(code), tries=2), target, "[1/1]")
    assert "undecided, once more" in capsys.readouterr().out
    with pytest.raises(demo.StepFailed) as failed:
        demo._run(replace(step("raise SystemExit(4)"), tries=2), target, "[1/1]")
    assert failed.value.exit_code == ExitCode.UNDECIDED


def test_a_stop_names_the_way_on(target: Target) -> None:
    stop = "import os, signal; os.kill(os.getppid(), signal.SIGINT)"
    with pytest.raises(Interrupted, match="interrupted in step part") as stopped:
        demo._run(step(stop), target, "[1/1]")
    assert "goes on from here" in stopped.value.hint


def test_a_folder_with_something_else_in_it_is_left_alone(target: Target) -> None:
    (target.out / "thesis.txt").write_text("three years of work")
    with pytest.raises(UsageError, match="something else than a demo"):
        demo._prepare(target, terraform=False)
    assert (target.out / "thesis.txt").exists()


def test_a_demo_goes_on_only_while_its_rehearsal_runs(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    (target.out / demo.MARKER).touch()
    state = {"done": ["rehearsal", "qmax"], "terraform": False, "url": "http://127.0.0.1:1"}
    (target.out / demo.STATE).write_text(json.dumps(state))
    monkeypatch.setattr(demo, "_rehearsal_url", lambda: "http://127.0.0.1:1")
    assert demo._prepare(target, terraform=False) == ["rehearsal", "qmax"]
    monkeypatch.setattr(demo, "_rehearsal_url", lambda: None)
    assert demo._prepare(target, terraform=False) == []


def test_the_sentence_says_what_was_found(target: Target) -> None:
    from planner.cli import main as plan

    target.artifacts.mkdir()
    for kind in ("qmax", "ttotal"):
        (target.artifacts / f"{kind}-kokoro-82m-x.json").write_bytes((ARTICLE / f"{kind}.json").read_bytes())
    measured = ["--artifacts", str(target.artifacts), "--model", "kokoro-82m", "--out", str(target.artifacts)]
    plan([*measured, "--peak-rps", "5000", "--trough-rps", "10"])
    said = sentence(target.artifacts, "kokoro-82m")
    assert (
        "One instance holds 50 requests inside 3 s; a second one takes 260 s. Scale out above 37.5, in below 25" in said
    )
    assert "a surge of x1.25 sheds 17.7%. Verdict: warn." in said
