"""What every command shares when it writes: a terminal that cannot show our signs, a file that cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from planner.artifacts.base import require_writable, write_atomically
from planner.errors import UsageError
from tests.planner.conftest import ARTICLE


def test_a_terminal_without_our_signs_still_gets_the_numbers(tmp_path: Path) -> None:
    measured = ["--qmax", str(ARTICLE / "qmax.json"), "--ttotal", str(ARTICLE / "ttotal.json")]
    ran = subprocess.run(
        [sys.executable, "-m", "planner", "plan", *measured, "--peak-rps", "50", "--out", str(tmp_path)],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "37.5" in ran.stdout


def test_a_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"file/below\.json: cannot be written"):
        write_atomically(tmp_path / "file" / "below.json", "{}")


def test_a_directory_is_tried_before_the_measurement(tmp_path: Path) -> None:
    require_writable(tmp_path / "new" / "below")
    assert list((tmp_path / "new" / "below").iterdir()) == []
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file: cannot be written"):
        require_writable(tmp_path / "file")


def test_a_directory_in_the_place_of_the_file_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(UsageError, match="taken: cannot be written"):
        write_atomically(tmp_path / "taken", "{}")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_reader_that_leaves_is_no_bug() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "planner"], stdout=writing, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, "")
