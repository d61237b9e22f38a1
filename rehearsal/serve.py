"""The server process that ``up`` starts: ``python -m rehearsal.serve STATE_DIRECTORY``."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from rehearsal.errors import RehearsalError, exit_status
from rehearsal.settings import Settings
from rehearsal.state import StateDir


def main(argv: Sequence[str] | None = None) -> int:
    """Serve with the settings ``up`` left in the state directory."""
    state = StateDir(Path((argv or sys.argv[1:])[0]))
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    return run(Settings.from_json(state.settings.read_text()), state)


def run(settings: Settings, state: StateDir) -> int:
    """Serve in this process until told to stop."""
    lock = state.hold()
    if lock is None:
        raise RehearsalError("a rehearsal already runs here", "python -m rehearsal status")
    state.kill_leftovers()
    _forget_aws_configuration()
    from rehearsal.server import serve

    with lock:
        asyncio.run(serve(settings, state))
    return 0


def _forget_aws_configuration() -> None:
    """The user's profile, address or keys are not for the server, which is the AWS they point to."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]


if __name__ == "__main__":
    sys.exit(exit_status(main))
