"""One run at a time on an endpoint variant of this machine; the kernel releases it when the process dies."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from planner.artifacts.base import require_writable
from planner.errors import UsageError
from scripts.aws.journal import file_path


@contextmanager
def locked(endpoint: str, variant: str, run_id: str) -> Iterator[None]:
    """Hold the lock inside the block; refuses and names the run that holds it."""
    path = file_path(endpoint, variant, "lock")
    require_writable(path.parent)
    with path.open("a+", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            stream.seek(0)
            holder = stream.read().strip() or "another run"
            raise UsageError(
                f"{endpoint}/{variant} is in use by {holder}", "wait until it ends, or stop it: it restores by itself"
            ) from None
        stream.seek(0)
        stream.truncate()
        stream.write(
            f"run {run_id} (process {os.getpid()} on {socket.gethostname()}, since {datetime.now(UTC):%H:%M:%SZ})"
        )
        stream.flush()
        yield


def holder(endpoint: str, variant: str) -> str | None:
    """The run that holds the lock on this machine right now, or None."""
    path = file_path(endpoint, variant, "lock")
    if not path.exists():
        return None
    with path.open("r", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return stream.read().strip() or "another run"
    return None
