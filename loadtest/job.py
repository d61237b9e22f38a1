"""What a load process is told before a rung, small and plain enough for Locust's messages."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import boto3

from loadtest.flags import Common
from loadtest.sigv4 import Signer
from loadtest.transports import Target, Transport
from loadtest.transports.boto import BotoTransport
from loadtest.transports.lean import Account, LeanTransport
from scripts.aws.clients import region, runtime


@dataclass(frozen=True)
class Job:
    """One rung (or rate): which requests to send; how many users comes from Locust."""

    id: int
    run: int
    rung: int
    users: int
    endpoint: str
    variant: str | None
    api: str
    client: str
    content_type: str
    accept: str
    timeout_s: float
    seed: int
    bodies: list[str]
    chars: list[int]
    session_each: bool = False
    """Over bidi a session an utterance, so that each one is routed; otherwise a session a user."""

    def message(self) -> dict[str, Any]:
        """For Runner.send_message."""
        return asdict(self)


def job(common: Common, *, id: int, run: int, rung: int, users: int, variant: str | None) -> Job:
    """The job of one rung of this command line."""
    return Job(
        id=id,
        run=run,
        rung=rung,
        users=users,
        endpoint=common.endpoint,
        variant=variant,
        api=common.transport,
        client=common.client,
        content_type=common.content_type,
        accept=common.accept,
        timeout_s=common.request_timeout_s,
        seed=common.seed,
        bodies=[common.body.render(text).decode() for text in common.corpus.texts],
        chars=[len(text) for text in common.corpus.texts],
    )


class Dialler:
    """Makes transports for the users of one process; they share credentials, signing key and boto3's client."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._target = Target(job.endpoint, job.variant, job.content_type, job.accept)
        self._client = runtime(job.users + 10, job.timeout_s)
        self._account = Account(self._client.meta.endpoint_url, region(), boto3.Session().get_credentials())
        self._signer = Signer(region(), "sagemaker")

    def transport(self) -> Transport:
        """A connection for one user."""
        api: Any = self._job.api
        if self._job.client == "boto3":
            return BotoTransport(self._target, api, self._client)
        return LeanTransport(self._target, api, self._account, self._signer, read_timeout_s=self._job.timeout_s)
