"""Exit codes and the exception tree: the one table every command uses.

HeadroomError               message + hint, carries an exit code
├── UsageError        2     bad input: a flag, a file, a value
├── FactFails         3     the measured fact fails (no concurrency meets the SLO, plan says stop, ...)
├── Undecided         4     measurement invalid or too little data
├── AwsError          5     AWS refused or failed
└── Interrupted     130     stopped by a signal, everything restored
"""

from __future__ import annotations

import enum
import io
import os
import select
import sys
from collections.abc import Callable


class ExitCode(enum.IntEnum):
    """What a command's exit status means; the same for every command."""

    DONE = 0
    BUG = 1
    USAGE = 2
    FACT_FAILS = 3
    UNDECIDED = 4
    AWS = 5
    INTERRUPTED = 130


READER_LEFT = 141
"""What a shell says of a program that SIGPIPE ended."""


class HeadroomError(Exception):
    """An expected failure: one line that says what and where, one that says what to do next."""

    exit_code = ExitCode.BUG

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(HeadroomError):
    """A flag, file or value the command cannot work with; nothing was changed."""

    exit_code = ExitCode.USAGE


class FactFails(HeadroomError):
    """The measurement worked and its answer is no."""

    exit_code = ExitCode.FACT_FAILS


class Undecided(HeadroomError):
    """The measurement is invalid or holds too little data to answer."""

    exit_code = ExitCode.UNDECIDED


class AwsError(HeadroomError):
    """AWS refused or failed."""

    exit_code = ExitCode.AWS


class Interrupted(HeadroomError):
    """Stopped by a signal after everything was restored."""

    exit_code = ExitCode.INTERRUPTED


def report(error: HeadroomError) -> None:
    """Print an error the way every command does: what on one line, the hint below, on stderr."""
    print(f"error: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  fix: {error.hint}", file=sys.stderr)


def exit_status(command: Callable[[], int | None]) -> int:
    """Run ``command`` and turn the exception tree into an exit status.

    Anything outside the tree is a bug and keeps its traceback (exit 1, Python's own).
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without our arrows still gets the numbers
    try:
        status = int(command() or ExitCode.DONE)
        sys.stdout.flush()
        return status
    except BrokenPipeError:
        if not _reader_left():
            raise
        return READER_LEFT
    except HeadroomError as error:
        report(error)
        return int(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return int(ExitCode.INTERRUPTED)


def _reader_left() -> bool:
    """Whether stdout is the broken pipe (``... | head``); what is left for it is then dropped."""
    stdout = sys.stdout.fileno()
    watched = select.poll()
    watched.register(stdout, 0)
    if not watched.poll(0):
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), stdout)
    return True
