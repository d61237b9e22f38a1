"""This side of bidirectional streams: requests are sent by a process of its own, which is told what to do here."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import gevent

from loadtest.agent import STATUS, Agent
from loadtest.job import Job

COMMAND = (sys.executable, "-m", "loadtest.bidi_process")
TURN_S = 0.2
"""How often a counted user looks whether it should stop."""
END_LIMIT_S = 10.0
"""The other process hangs up within two seconds; past this it is killed."""


class Child:
    """The other process: commands and statuses are one JSON object a line.

    It lives as long as its stdin, so it also ends when this process is killed. Pipes and thread are the standard
    library's, which Locust has made gevent's where it runs.
    """

    def __init__(self, name: str, receive: Callable[[dict[str, Any]], None], command: Sequence[str] = COMMAND) -> None:
        self._process = subprocess.Popen([*command, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._reader = threading.Thread(target=self._read, args=(receive,), name="bidi", daemon=True)
        self._reader.start()

    @property
    def exit_code(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    def begin(self, job: Job, index: int) -> None:
        """A new rung."""
        self._tell({"job": job.message(), "index": index})

    def want(self, users: int) -> None:
        """How many users there should be."""
        self._tell({"users": users})

    def end(self) -> None:
        """Cut what is out, take the last report, wait for the process."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._reader.join(END_LIMIT_S)
        if self._reader.is_alive():
            self._process.kill()
        self._process.wait()
        self._reader.join()

    def _tell(self, command: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        # A process that died says so by its silence and its exit code.
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()

    def _read(self, receive: Callable[[dict[str, Any]], None]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as statuses:
            for line in statuses:
                receive(json.loads(line))


class Relay:
    """Users of a Locust process counted here, the other process's reports passed on under this one's name."""

    def __init__(self, agent: Agent) -> None:
        self._users = 0
        self._child = Child(agent.name, lambda status: agent.pass_on(STATUS, status))

    def begin(self, job: Job, index: int) -> None:
        """A new rung."""
        self._child.begin(job, index)

    def change(self, by: int) -> None:
        """One user more or less."""
        self._users += by
        self._child.want(self._users)


class CountedUser:
    """A Locust user whose requests the other process sends."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay

    def connect(self) -> None:
        """One more."""
        self._relay.change(1)

    def leave(self) -> None:
        """One less."""
        self._relay.change(-1)

    def speak(self) -> None:
        """Wait a turn."""
        gevent.sleep(TURN_S)
