"""InvokeEndpoint and InvokeEndpointWithResponseStream without boto3 in the hot path.

bench/harness.py shows why: stock boto3 doubles the load generator's own delay from 50 users on. Credentials, region
and address still come from boto3, so the same environment variables decide.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote

from loadtest.connection import CONNECTION_ERRORS, Answer, Connection
from loadtest.eventstream import DamagedStream, Decoder
from loadtest.sigv4 import Signer
from loadtest.transports.base import Failure, Stream, Target, refused

Api = Literal["response-stream", "invoke"]
_SUFFIX: dict[Api, str] = {"response-stream": "invocations-response-stream", "invoke": "invocations"}
_ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"


@dataclass(frozen=True)
class Account:
    """What signs requests: botocore's credentials object refreshes itself."""

    url: str
    region: str
    credentials: Any


class LeanTransport:
    """One keep-alive connection, signed with one cached key."""

    def __init__(self, target: Target, api: Api, account: Account, signer: Signer, *, read_timeout_s: float) -> None:
        self._api = api
        self._account = account
        self._signer = signer
        self._connection = Connection(account.url, read_timeout_s=read_timeout_s)
        self._path = f"{self._connection.base_path}/endpoints/{quote(target.endpoint)}/{_SUFFIX[api]}"
        accept = "X-Amzn-SageMaker-Accept" if api == "response-stream" else "Accept"
        self._headers = {"Content-Type": target.content_type, accept: target.accept}
        if target.variant:
            self._headers["X-Amzn-SageMaker-Target-Variant"] = target.variant

    def open(self) -> None:
        """Connect. A failure here shows again at the first request, which counts it."""
        try:
            self._connection.open()
        except CONNECTION_ERRORS:
            self._connection.close()

    def close(self) -> None:
        """Drop the connection."""
        self._connection.close()

    def send(self, body: bytes) -> Stream:
        """Sign, send, wait for the headers."""
        try:
            answer = self._connection.post(self._path, self._headers | self._authorisation(body), body)
        except TimeoutError as error:
            raise Failure("timeout", f"no answer: {error}") from None
        except CONNECTION_ERRORS as error:
            raise Failure("server_error", f"{type(error).__name__}: {error}"[:300]) from None
        if answer.status != 200:
            raise _error(answer)
        streamed = self._api == "response-stream"
        return Stream(
            headers_ns=answer.headers_ns,
            status=answer.status,
            content_type=answer.header("X-Amzn-SageMaker-Content-Type" if streamed else "Content-Type"),
            attributes=answer.header(_ATTRIBUTES),
            pieces=_parts(answer) if streamed else _body(answer),
        )

    def _authorisation(self, body: bytes) -> dict[str, str]:
        frozen = self._account.credentials.get_frozen_credentials()
        return self._signer.headers(
            host=self._connection.host,
            path=self._path,
            body=body,
            access_key=frozen.access_key,
            secret_key=frozen.secret_key,
            token=frozen.token,
            now=datetime.now(UTC),
        )


def _body(answer: Answer) -> Iterator[bytes]:
    try:
        yield from answer
    except TimeoutError as error:
        raise Failure("timeout", f"silent in mid-response: {error}", answer.status) from None
    except CONNECTION_ERRORS as error:
        raise Failure("broken", f"{type(error).__name__}: {error}"[:300], answer.status) from None


def _parts(answer: Answer) -> Iterator[bytes]:
    decoder = Decoder()
    try:
        for piece in _body(answer):
            for message in decoder.feed(piece):
                if message.headers.get(":message-type") != "event":
                    raise Failure("broken", _exception_text(message.headers, message.payload), answer.status)
                if message.headers.get(":event-type") == "PayloadPart":
                    yield message.payload
    except DamagedStream as error:
        raise Failure("broken", str(error), answer.status) from None
    if decoder.pending:
        raise Failure("broken", "the event stream ended inside a message", answer.status)


def _exception_text(headers: dict[str, str], payload: bytes) -> str:
    name = headers.get(":exception-type") or headers.get(":error-code") or "stream error"
    return f"{name}: {payload[:200].decode('utf-8', 'replace')}"


def _error(answer: Answer) -> Failure:
    try:
        raw = b"".join(answer)
    except CONNECTION_ERRORS:
        raw = b""
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    body: dict[str, Any] = found if isinstance(found, dict) else {"message": raw[:200].decode("utf-8", "replace")}
    code = answer.header("x-amzn-errortype") or str(body.get("__type") or body.get("Code") or answer.status)
    original = body.get("OriginalStatusCode")
    return refused(
        answer.status,
        code.partition(":")[0].rpartition("#")[2],
        str(body.get("message") or body.get("Message") or ""),
        int(original) if original is not None else None,
        str(body.get("OriginalMessage") or ""),
    )
