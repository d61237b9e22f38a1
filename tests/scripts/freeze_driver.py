"""A process that freezes the fake endpoint and signals itself at a named step."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import boto3

from planner.errors import exit_status
from scripts.aws.endpoint import describe
from scripts.aws.freeze import frozen
from scripts.aws.waiting import Clock
from tests.scripts.fake_aws import FakeAws


def main() -> int:
    state, step, signal_name = sys.argv[1:4]
    boto3.client = FakeAws(Path(state)).client  # type: ignore[assignment]
    clock = Clock(sleep=lambda _: None)
    number = getattr(signal, signal_name)

    def on_step(name: str) -> None:
        if name.startswith(step):
            os.kill(os.getpid(), number)

    with frozen(describe("e", "v"), run_id="r1", force=True, ttl_s=600, clock=clock, on_step=on_step) as held:
        on_step("body")
        held.set_count(2)
        on_step("scaled")
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))
