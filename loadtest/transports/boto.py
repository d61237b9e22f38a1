"""The same two APIs through stock boto3: the reference that the lean transport is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic_ns
from typing import Any

from botocore.exceptions import ClientError, ConnectionError, EventStreamError, HTTPClientError, ReadTimeoutError
from urllib3.exceptions import HTTPError
from urllib3.exceptions import ReadTimeoutError as SilentSocket

from loadtest.transports.base import Failure, Stream, Target, refused
from loadtest.transports.lean import Api

READ_BYTES = 65_536


class BotoTransport:
    """Users share one client, as an application would; its pool holds a connection for each."""

    def __init__(self, target: Target, api: Api, client: Any) -> None:
        self._client = client
        self._api = api
        self._arguments: dict[str, Any] = {
            "EndpointName": target.endpoint,
            "ContentType": target.content_type,
            "Accept": target.accept,
        }
        if target.variant:
            self._arguments["TargetVariant"] = target.variant

    def open(self) -> None:
        """boto3 connects with its first request, which no measured window contains."""

    def close(self) -> None:
        """The shared pool stays."""

    def send(self, body: bytes) -> Stream:
        """One call, one attempt."""
        streamed = self._api == "response-stream"
        call = self._client.invoke_endpoint_with_response_stream if streamed else self._client.invoke_endpoint
        try:
            answer = call(Body=body, **self._arguments)
        except ClientError as error:
            raise _refused(error) from None
        except ReadTimeoutError as error:
            raise Failure("timeout", str(error)) from None
        except (HTTPClientError, ConnectionError) as error:
            raise Failure("server_error", f"{type(error).__name__}: {error}"[:300]) from None
        return Stream(
            headers_ns=monotonic_ns(),
            status=200,
            content_type=answer["ContentType"],
            attributes=answer.get("CustomAttributes", ""),
            pieces=_parts(answer["Body"]) if streamed else _body(answer["Body"]),
        )


def _parts(events: Any) -> Iterator[bytes]:
    try:
        for event in events:
            if "PayloadPart" in event:
                yield event["PayloadPart"]["Bytes"]
    except EventStreamError as error:
        raise Failure("broken", str(error)[:300], 200) from None
    except (ReadTimeoutError, SilentSocket) as error:
        raise Failure("timeout", f"silent in mid-response: {error}", 200) from None
    except (HTTPError, HTTPClientError, OSError) as error:
        raise Failure("broken", f"{type(error).__name__}: {error}"[:300], 200) from None
    finally:
        events.close()


def _body(stream: Any) -> Iterator[bytes]:
    try:
        yield from stream.iter_chunks(READ_BYTES)
    except (ReadTimeoutError, SilentSocket) as error:
        raise Failure("timeout", f"silent in mid-response: {error}", 200) from None
    except (HTTPError, HTTPClientError, OSError) as error:
        raise Failure("broken", f"{type(error).__name__}: {error}"[:300], 200) from None
    finally:
        stream.close()


def _refused(error: ClientError) -> Failure:
    answer: dict[str, Any] = dict(error.response)
    status = int(answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
    original = answer.get("OriginalStatusCode")
    return refused(
        status,
        str(answer.get("Error", {}).get("Code", "")),
        str(answer.get("Error", {}).get("Message", "")),
        int(original) if original is not None else None,
        str(answer.get("OriginalMessage", "")),
    )
