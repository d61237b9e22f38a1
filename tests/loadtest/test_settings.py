"""Command lines: the published defaults, and every problem of a bad one at once."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from loadtest import settings
from loadtest.request_body import RequestBody
from planner.errors import UsageError


def parsed(*arguments: str, **locust: Any) -> settings.Ladder:
    parser = argparse.ArgumentParser()
    settings.add_arguments(parser)
    options = parser.parse_args(["--endpoint", "speech", "--model", "m", *arguments])
    for name in ("num_users", "spawn_rate", "run_time"):
        setattr(options, name, locust.get(name))
    return settings.parse(options)


def test_defaults_are_the_published_method() -> None:
    found = parsed()
    assert found.rungs == (1, 5, 10, 20, 30, 40, 50, 60)
    assert (found.hold_s, found.measure_window_s, found.idle_s) == (240.0, 60.0, 30.0)
    assert (found.common.slo_ms, found.common.slo_metric, found.common.transport) == (
        3000.0,
        "ttfab",
        "response-stream",
    )
    assert found.common.accept == "audio/pcm"
    assert (found.runs, found.refine) == (1, False)


def test_rungs_are_sorted_and_distinct() -> None:
    assert parsed("--rungs", "8,1, 4,8").rungs == (1, 4, 8)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--rungs", "0,-1,x"], ["0, -1, x"]),
        (["--rungs", ""], ["an empty item"]),
        (["--rungs", "1.5"], ["1.5"]),
        (["--rungs", "10001"], ["10001"]),
        (["--hold-s", "5"], ["longer than --hold-s"]),
        (["--hold-s", "0"], ["--hold-s 0"]),
        (["--slo-ms", "nan"], ["--slo-ms nan"]),
        (["--slo-ms", "-3"], ["--slo-ms -3"]),
        (["--model", "a/b"], ["--model a/b: not a file name"]),
        (["--idle-s", "soon"], ["--idle-s soon"]),
        (["--runs", "0"], ["--runs 0"]),
        (["--runs", "1.5"], ["--runs 1.5"]),
        (["--corpus", "nothing-here"], ["--corpus nothing-here"]),
        (["--body-template", "{}"], ["{{text}}"]),
        (["--body-template", '{"a": "{{text}}"}'], ["no JSON"]),
        (["--body-template", "@missing.json"], ["missing.json"]),
        (["--rungs", "x", "--slo-ms", "0", "--corpus", "nope"], ["--rungs", "--slo-ms", "--corpus"]),
    ],
)
def test_bad_command_lines(arguments: list[str], words: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        parsed(*arguments)
    for word in words:
        assert word in caught.value.message


@pytest.mark.parametrize(("name", "flag"), [("num_users", "-u"), ("spawn_rate", "-r"), ("run_time", "-t")])
def test_locusts_own_shape_flags_are_refused(name: str, flag: str) -> None:
    with pytest.raises(UsageError, match=flag) as caught:
        parsed(**{name: 5})
    assert "--rungs" in caught.value.hint


def test_names_are_asked_for() -> None:
    parser = argparse.ArgumentParser()
    settings.add_arguments(parser)
    with pytest.raises(UsageError, match=r"--endpoint is missing; --model is missing"):
        settings.parse(parser.parse_args([]))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="the SDK may be installed here")
def test_bidi_names_the_python_it_needs() -> None:
    with pytest.raises(UsageError, match=r"Python 3\.12"):
        parsed("--transport", "bidi")


def test_the_builtin_body() -> None:
    found = json.loads(RequestBody("jf_alpha", "wav").render('say "hi"\n'))
    assert found == {"text": 'say "hi"\n', "format": "wav", "voice": "jf_alpha"}
    assert "voice" not in json.loads(RequestBody(None, "pcm").render("x"))


def test_a_template_fills_json_strings(tmp_path: Path) -> None:
    file = tmp_path / "body.json"
    file.write_text('{"inputs": {{text}}, "speaker": {{voice}}}', encoding="utf-8")
    common = parsed("--body-template", f"@{file}", "--accept", "application/json").common
    assert json.loads(common.body.render('a "b"')) == {"inputs": 'a "b"', "speaker": None}
    assert common.workload.response_format == "application/json"


def test_a_template_of_another_type_need_not_be_json() -> None:
    common = parsed("--body-template", "<s>{{text}}</s>", "--content-type", "application/ssml+xml").common
    assert common.body.render("hi") == b'<s>"hi"</s>'


@pytest.mark.parametrize(("command", "flag"), [("ladder", "--measure-window-s"), ("surge", "--rates")])
def test_help_lists_our_own_flags(command: str, flag: str) -> None:
    asked = [sys.executable, "-m", f"loadtest.{command}", "--help"]
    assert flag in subprocess.run(asked, capture_output=True, text=True, check=True).stdout


LOCUST = ("locust", "--headless", "-f")
LADDER = str(Path(settings.__file__).with_name("ladder.py"))


@pytest.mark.parametrize(
    ("program", "stray"),
    [
        (("loadtest.surge",), "extra"),
        (("loadtest.ladder",), "--unknown"),
        ((*LOCUST, LADDER), "extra"),
        ((*LOCUST, LADDER), "--unknown"),
    ],
)
def test_a_word_or_flag_that_nobody_knows_is_bad_input(program: tuple[str, ...], stray: str) -> None:
    command = [sys.executable, "-m", *program, "--endpoint", "e", "--model", "m", stray]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    (said,) = [line for line in done.stderr.splitlines() if "error" in line]
    assert stray in said
    assert "Traceback" not in done.stderr
