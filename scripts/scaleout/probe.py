"""A closed loop of N users in a thread of its own; every request becomes a record.

The users are the ladder's. The thread has its own gevent hub, so that AWS calls of the main thread never hold up a
response.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any, Protocol

import gevent

from loadtest.agent import Agent, Speaker
from loadtest.corpus import Corpus
from loadtest.flags import ACCEPT, CEILING_S, require_bidi
from loadtest.job import Job
from loadtest.request_body import RequestBody, template
from planner.artifacts.fingerprint import Fingerprint
from planner.artifacts.records import Anchor, RequestRecord
from planner.errors import UsageError
from scripts.aws.endpoint import LiveEndpoint
from scripts.scaleout.sessions import SessionLoop

POLL_S = 0.05
JOIN_S = 30.0


class Probe(Protocol):
    """What a scale-out asks of its probe; tests play one back."""

    @property
    def records(self) -> list[RequestRecord]:
        """Finished requests so far."""

    @property
    def anchor(self) -> Anchor:
        """Ties the records' clock to UTC."""

    def start(self, run: int, users: int) -> None:
        """Begin to load with so many requests in flight."""

    def stop(self) -> None:
        """End; requests in flight are cut and recorded as cancelled."""


class ClosedLoop(Agent):
    """N users, one request each at a time, no think time."""

    def __init__(self, jobs: list[Job]) -> None:
        super().__init__(_no_messages)
        self.records: list[RequestRecord] = []
        self._jobs = jobs
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def keep(self, record: RequestRecord, gap_ms: float | None) -> None:  # noqa: ARG002
        self.records.append(record)

    def start(self, run: int, users: int) -> None:
        self._stopping.clear()
        job = replace(self._jobs[run], users=users)
        self._thread = threading.Thread(target=self._load, args=(job,), name="probe", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
            self._thread = None

    def _load(self, job: Job) -> None:
        self.begin(job, 0)
        users = [gevent.spawn(_speak, self.speaker()) for _ in range(job.users)]
        while not self._stopping.is_set():
            gevent.sleep(POLL_S)
        gevent.killall(users)


def closed_loop(
    live: LiveEndpoint,
    corpus: Corpus,
    identity: Fingerprint,
    concurrency: int,
    repeats: int,
    *,
    body_template: str | None = None,
    content_type: str = "application/json",
) -> Probe:
    """The ladder's workload over the ladder's transport, against ``live``."""
    if identity.transport == "bidi":
        require_bidi()
    workload = identity.workload
    response_format = workload.response_format or ""
    if body_template is None and response_format not in ACCEPT:
        raise UsageError(
            f"the ladder asked for {response_format or 'an unknown format'} with a request body of its own",
            "pass the same --body-template (and --content-type) here",
        )
    body = RequestBody(workload.voice, response_format, template(body_template, content_type))
    jobs = [
        Job(
            id=number,
            run=number,
            rung=0,
            users=concurrency,
            endpoint=live.name,
            variant=live.variant,
            api=identity.transport,
            client="lean",
            content_type=content_type,
            accept=ACCEPT.get(response_format, response_format),
            timeout_s=CEILING_S,
            seed=workload.seed or 0,
            bodies=[body.render(text).decode() for text in corpus.texts],
            chars=[len(text) for text in corpus.texts],
            session_each=True,
        )
        for number in range(repeats)
    ]
    return SessionLoop(jobs) if identity.transport == "bidi" else ClosedLoop(jobs)


def _speak(user: Speaker) -> None:
    try:
        user.connect()
        while True:
            user.speak()
    finally:
        user.leave()


def _no_messages(kind: str, message: dict[str, Any]) -> None:
    """The probe is one process: nobody to report to."""
