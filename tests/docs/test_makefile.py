"""A value with a space stays one argument in every target; `make clean` must never remove half a path."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = {"OUT": "o o", "MODEL": "m m", "ENDPOINT": "e e", "VARIANT": "v v"}


@pytest.mark.parametrize(
    "target", ["clean", "qmax", "open-loop", "ttotal", "plan", "drift", "report", "demo", "deploy"]
)
def test_names_with_spaces(target: str) -> None:
    given = [f"{name}={value}" for name, value in NAMES.items()]
    printed = subprocess.run(
        ["make", "-n", target, *given], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for value in NAMES.values():
        assert printed.count(value) == printed.count(f"'{value}")
