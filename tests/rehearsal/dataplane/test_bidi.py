"""The bidirectional API as its SDK speaks it: HTTP/2 over trusted TLS, events in signed events."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import h2.config
import h2.connection
import h2.events
import pytest
from botocore.eventstream import EventStreamBuffer

from rehearsal.dataplane.eventstream import frame
from tests.rehearsal.conftest import ENDPOINT, Up, until

pytestmark = pytest.mark.e2e
PART = {":event-type": "PayloadPart", ":message-type": "event"}


class Session:
    """One bidirectional invocation."""

    def __init__(self, url: str, bundle: str, endpoint: str) -> None:
        address = urlparse(url)
        context = ssl.create_default_context(cafile=bundle)
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection((address.hostname, address.port), timeout=10)
        self.socket = context.wrap_socket(plain, server_hostname=address.hostname)
        self.http = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
        self.http.initiate_connection()
        path = f"/endpoints/{endpoint}/invocations-bidirectional-stream"
        self.request = [(":method", "POST"), (":path", path), (":scheme", "https"), (":authority", address.netloc)]
        self.begin()

    def begin(self) -> None:
        """A new stream on the connection."""
        self.stream = self.http.get_next_available_stream_id()
        self.http.send_headers(self.stream, self.request)
        self.buffer = EventStreamBuffer()
        self.status, self.headers, self.body = 0, {}, b""  # type: tuple[int, dict[str, str], bytes]
        self._flush()

    def say(self, payload: bytes, **headers: str) -> None:
        """A signed event around an event, as the SDK sends it."""
        self._send(frame({":chunk-signature": "x"}, frame({**PART, **headers}, payload)))

    def end(self) -> None:
        self._send(frame({":chunk-signature": "x"}, b""), last=True)

    def events(self) -> Iterator[Any]:
        """Until the server ends the stream."""
        ended = False
        while not ended:
            for event in self.http.receive_data(self.socket.recv(65536)):
                if isinstance(event, h2.events.ResponseReceived):
                    self.headers = {name.decode(): value.decode() for name, value in event.headers}
                    self.status = int(self.headers[":status"])
                elif isinstance(event, h2.events.DataReceived):
                    self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    if self.status == 200:
                        self.buffer.add_data(event.data)
                        yield from self.buffer
                    else:
                        self.body += event.data
                elif isinstance(event, h2.events.StreamEnded):
                    ended = True
            self._flush()

    def _send(self, data: bytes, last: bool = False) -> None:
        self.http.send_data(self.stream, data, end_stream=last)
        self._flush()

    def _flush(self) -> None:
        self.socket.sendall(self.http.data_to_send())


@pytest.fixture(scope="module")
def bidi(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    up = Up(tmp_path_factory.mktemp("bidi")).start("--seed", "--bidi")
    running = json.loads((up.directory / "running.json").read_text())
    opened: list[Session] = []

    def invoke(endpoint: str = ENDPOINT) -> Session:
        opened.append(Session(running["bidi_url"], running["bidi_ca"], endpoint))
        return opened[-1]

    invoke.up = up  # type: ignore[attr-defined]
    yield invoke
    for session in opened:
        session.socket.close()
    up.run("down")


def test_both_sides_speak_until_the_container_ends(bidi: Any) -> None:
    session = bidi()
    session.say(b"one")
    session.say(b"tw", CompletionState="PARTIAL")
    session.say(b"o", CompletionState="COMPLETE")
    session.say(b"bye")
    events = list(session.events())
    assert session.headers["x-amzn-invoked-production-variant"] == "primary"
    assert [(event.headers["DataType"], event.payload) for event in events] == [
        ("UTF8", b"hello"),
        ("BINARY", b"echo:one"),
        ("BINARY", b"echo:two"),
    ]
    trace = bidi.up.truth("requests")[-1]
    assert (trace["outcome"], trace["status"]) == ("ok", 200)


def test_a_client_that_ends_after_the_container_keeps_its_connection(bidi: Any) -> None:
    session = bidi()
    session.say(b"bye")
    time.sleep(0.1)
    session.end()
    assert [event.payload for event in session.events()] == [b"hello"]
    session.begin()
    session.say(b"bye")
    assert [event.payload for event in session.events()] == [b"hello"]


def test_answers_come_while_the_client_still_speaks(bidi: Any) -> None:
    session = bidi()
    events = session.events()
    assert next(events).payload == b"hello"
    for number in range(3):
        session.say(b"%d" % number)
        assert next(events).payload == b"echo:%d" % number
    assert [instance["in_flight"] for instance in bidi.up.instances()] == [1]
    session.say(b"bye")
    assert list(events) == []
    until(lambda: [instance["in_flight"] for instance in bidi.up.instances()] == [0])


def test_a_container_that_closes_badly_is_a_model_stream_error(bidi: Any) -> None:
    session = bidi()
    session.say(b"fail")
    *_, last = session.events()
    assert last.headers[":exception-type"] == "ModelStreamError"
    assert "code 1011" in json.loads(last.payload)["Message"]


def test_the_client_may_end_first(bidi: Any) -> None:
    session = bidi()
    session.say(b"last words")
    session.end()
    assert [event.payload for event in session.events()] == [b"hello", b"echo:last words"]


def test_an_unknown_endpoint_is_refused_before_the_stream(bidi: Any) -> None:
    session = bidi("nowhere")
    assert list(session.events()) == []
    assert (session.status, session.headers["x-amzn-errortype"]) == (400, "InputValidationError")
    assert "nowhere" in json.loads(session.body)["Message"]


def test_env_names_the_address_and_the_trust(bidi: Any) -> None:
    shell = bidi.up.run("env").out
    assert "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME_HTTP2=https://127.0.0.1:" in shell
    [line] = [line for line in shell.splitlines() if "SSL_CERT_FILE" in line]
    assert "BEGIN CERTIFICATE" in Path(line.partition("=")[2]).read_text()
