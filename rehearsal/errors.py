"""What the rehearsal's own commands can fail with; the exit codes are those of every Headroom command."""

from __future__ import annotations

import sys
from collections.abc import Callable


class RehearsalError(Exception):
    """An expected failure: one line that says what, one that says what to do next."""

    exit_code = 5

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(RehearsalError):
    """A flag or a value that cannot be used; nothing was changed."""

    exit_code = 2


def exit_status(command: Callable[[], int]) -> int:
    """Run ``command``; an expected failure becomes two lines on stderr and its exit code."""
    try:
        return command()
    except RehearsalError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  fix: {error.hint}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
