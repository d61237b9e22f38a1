"""The state directory: who runs, where it listens, and which processes it started."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from rehearsal.errors import UsageError

DEFAULT_DIRECTORY = "~/.cache/headroom/rehearsal"
DIRECTORY_VARIABLE = "HEADROOM_REHEARSAL_DIR"


@dataclass(frozen=True, slots=True)
class Running:
    """What a running rehearsal writes once it answers."""

    pid: int
    port: int
    url: str
    region: str
    bidi_url: str | None = None
    bidi_ca: str | None = None


class StateDir:
    """Files of one rehearsal. The server holds the lock for as long as it lives, so a lock says more than a pid."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)

    @classmethod
    def from_environment(cls) -> StateDir:
        """The directory every command uses unless the environment names another."""
        path = Path(os.environ.get(DIRECTORY_VARIABLE) or DEFAULT_DIRECTORY).expanduser()
        try:
            return cls(path)
        except OSError as error:
            raise UsageError(f"{path} cannot be used: {error}", f"set {DIRECTORY_VARIABLE} to another one") from None

    @property
    def log(self) -> Path:
        """What the server prints."""
        return self.path / "rehearsal.log"

    @property
    def settings(self) -> Path:
        """What the server was started with."""
        return self.path / "settings.json"

    def hold(self) -> IO[str] | None:
        """Take the server's lock; None when a server lives. The lock goes with the returned file."""
        return _try_lock(self.path / "server.lock")

    def alive(self) -> bool:
        """Whether a server holds the lock."""
        lock = self.hold()
        if lock is None:
            return True
        lock.close()
        return False

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Only one command at a time starts or stops a server."""
        with (self.path / "command.lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def running(self) -> Running | None:
        """The live server, or None when there is none or it does not answer yet."""
        if not self.alive():
            return None
        return self._read()

    def wait_running(self, timeout_s: float, still_starting: Callable[[], bool]) -> Running | None:
        """Wait until a server has announced itself, for as long as ``still_starting``."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and still_starting():
            if found := self.running():
                return found
            time.sleep(0.05)
        return None

    def announce(self, running: Running) -> None:
        """Say where this server answers."""
        _write_atomically(self.path / "running.json", json.dumps(asdict(running)))

    def announces(self, pid: int) -> bool:
        """Whether the directory still says that this process is the server."""
        found = self._read()
        return found is not None and found.pid == pid

    def withdraw(self) -> None:
        """Forget the last server."""
        (self.path / "running.json").unlink(missing_ok=True)

    def note_process(self, pid: int) -> None:
        """Remember a container's process group, for the next ``up`` should this server be killed."""
        with (self.path / "processes").open("a") as file:
            file.write(f"{pid} {start_ticks(pid)}\n")

    def kill_leftovers(self) -> int:
        """Kill what a killed server left behind; returns how many process groups were found."""
        found = 0
        file = self.path / "processes"
        if not file.exists():
            return 0
        for line in file.read_text().splitlines():
            pid, ticks = line.split()
            if start_ticks(int(pid)) == int(ticks):
                found += 1
                with suppress(ProcessLookupError):
                    os.killpg(int(pid), signal.SIGKILL)
        file.unlink()
        return found

    def _read(self) -> Running | None:
        try:
            return Running(**json.loads((self.path / "running.json").read_text()))
        except FileNotFoundError:
            return None


def start_ticks(pid: int) -> int:
    """When the process started, in clock ticks since boot; 0 when there is none, or a zombie. Tells a reused pid."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    fields = stat.rpartition(")")[2].split()
    return 0 if fields[0] == "Z" else int(fields[19])


def _try_lock(path: Path) -> IO[str] | None:
    file = path.open("a")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def _write_atomically(path: Path, text: str) -> None:
    temporary = path.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.replace(path)
