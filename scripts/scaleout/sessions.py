"""The probe over bidirectional streams: a closed loop of N users in a process of its own.

A session stays with the instance it was opened on, whatever joins the fleet. So each utterance gets a session of its
own, which SageMaker routes as it routes a request of the other transports: T_total is then about the fleet, not about
how long somebody's sessions last. The next session is opened when the last one has ended, before its utterance is
stamped, so that N is never exceeded and no latency contains a handshake, as in the ladder.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from loadtest.agent import reported, worker_name
from loadtest.bidi import COMMAND, Child
from loadtest.job import Job
from planner.artifacts.records import Anchor, RequestRecord
from planner.errors import Undecided

CLOCKS_APART_S = 1.0
"""Both processes read one monotonic clock; more than this means that the wall clock was set in between."""


class SessionLoop:
    """``records`` grow while the other process reports; they raise Undecided when it can no longer be believed."""

    def __init__(self, jobs: list[Job], command: Sequence[str] = COMMAND) -> None:
        self.anchor = Anchor(worker_name(), time.monotonic_ns(), time.time_ns())
        self._jobs = jobs
        self._command = command
        self._records: list[RequestRecord] = []
        self._apart_s = 0.0
        self._child: Child | None = None

    @property
    def records(self) -> list[RequestRecord]:
        """Finished requests so far."""
        exit_code = self._child.exit_code if self._child is not None else None
        if exit_code is not None:
            raise Undecided(
                f"the load process ended by itself (exit code {exit_code})", "what it said is above; run it again"
            )
        if self._apart_s > CLOCKS_APART_S:
            raise Undecided(
                f"the load process is {self._apart_s:.1f} s off this one's clock",
                "the clock was set meanwhile: run again",
            )
        return self._records

    def start(self, run: int, users: int) -> None:
        """Start the process and its users."""
        self._child = Child(self.anchor.worker, self._receive, self._command)
        self._child.begin(replace(self._jobs[run], users=users), 0)
        self._child.want(users)

    def stop(self) -> None:
        """End the process; its last report holds the requests that were cut."""
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def _receive(self, status: dict[str, Any]) -> None:
        monotonic_ns, utc_ns = status["anchor"]
        apart_ns = (utc_ns - monotonic_ns) - (self.anchor.utc_ns - self.anchor.monotonic_ns)
        self._apart_s = max(self._apart_s, abs(apart_ns) / 1e9)
        self._records.extend(record for record, _ in reported(status))
