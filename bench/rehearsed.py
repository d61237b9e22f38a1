"""A rehearsal of one's own for a benchmark: own state, own port, gone when the block ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from planner.errors import AwsError

START_LIMIT_S = 180


@contextmanager
def rehearsal(*arguments: str) -> Iterator[dict[str, str]]:
    """``python -m rehearsal up --seed …``; yields the environment in which commands talk to it."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the rehearsal must not outlive this process
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as directory:
        own = os.environ | {"HEADROOM_REHEARSAL_DIR": directory}
        try:
            _run(own, "up", "--seed", *arguments)
            yield own | _exports(_run(own, "env"))
        finally:
            _run(own, "down")


def _run(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "rehearsal", *arguments]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, timeout=START_LIMIT_S, check=False
    )
    if done.returncode != 0:
        raise AwsError(f"rehearsal {arguments[0]} failed ({done.returncode})", "read its output above")
    return done.stdout


def _exports(text: str) -> dict[str, str]:
    lines = (line.removeprefix("export ") for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {name: value.strip().strip("'\"") for name, _, value in pairs}
