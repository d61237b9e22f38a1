"""Locust's side of bidirectional streams: users are counted here and speak in a process of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import gevent
from gevent.subprocess import PIPE, Popen

from loadtest.agent import STATUS, Agent
from loadtest.job import Job

TURN_S = 0.2
"""How often a counted user looks whether it should stop."""


class Relay:
    """The other process, and its reports passed on under this process's name."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._users = 0
        command = [sys.executable, "-m", "loadtest.bidi_process", agent.name]
        self._child: subprocess.Popen[bytes] = Popen(command, stdin=PIPE, stdout=PIPE)
        gevent.spawn(self._pass_on)

    def begin(self, job: Job, index: int) -> None:
        """A new rung."""
        self._tell({"job": job.message(), "index": index})

    def change(self, by: int) -> None:
        """One user more or less."""
        self._users += by
        self._tell({"users": self._users})

    def _tell(self, command: dict[str, Any]) -> None:
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(command).encode() + b"\n")
        self._child.stdin.flush()

    def _pass_on(self) -> None:
        assert self._child.stdout is not None
        for line in self._child.stdout:
            self._agent.pass_on(STATUS, json.loads(line))


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
