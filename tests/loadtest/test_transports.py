"""Both transports turn the same wire bytes into the same exchange, with one attempt a request."""

from __future__ import annotations

import io
import random
import struct
import time
import wave
from collections.abc import Callable
from typing import Any

import boto3
import pytest

from loadtest.exchange import Exchange, perform
from loadtest.sigv4 import Signer
from loadtest.transports import Target, Transport
from loadtest.transports.boto import BotoTransport
from loadtest.transports.lean import Account, Api, LeanTransport
from scripts.aws.clients import runtime

KINDS = ["lean", "boto"]
Part = Callable[[bytes], bytes]


def transport(
    kind: str, api: Api = "response-stream", read_timeout_s: float = 0.5, variant: str | None = None
) -> Transport:
    target = Target("speech", variant, "application/json", "audio/wav")
    client = runtime(4, read_timeout_s)
    if kind == "boto":
        return BotoTransport(target, api, client)
    credentials = boto3.Session().get_credentials()
    account = Account(client.meta.endpoint_url, "eu-west-1", credentials)
    return LeanTransport(target, api, account, Signer("eu-west-1", "sagemaker"), read_timeout_s=read_timeout_s)


def once(kind: str, api: Api = "response-stream", **options: Any) -> Exchange:
    return perform(transport(kind, api, **options), b'{"text":"hi"}', 5.0)


def wav_bytes(samples: int) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(24_000)
        writer.writeframes(b"ab" * samples)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_a_stream_gives_every_stamp_in_order(scripted: Any, payload_part: Part, kind: str) -> None:
    scripted.script = lambda call: call.stream([payload_part(b"abc"), payload_part(b"de")], attributes="boot_id=1a")
    found = once(kind)
    assert (found.outcome, found.audio_bytes, found.attributes, found.status) == ("ok", 5, "boot_id=1a", 200)
    assert found.headers_ns is not None
    assert found.first_audio_ns is not None
    assert found.sent_ns < found.headers_ns <= found.first_audio_ns <= found.done_ns


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [1, 3, 44, 45, 300])
def test_a_wav_header_is_no_first_audio(scripted: Any, payload_part: Part, kind: str, size: int) -> None:
    body = wav_bytes(60)

    def script(call: Any) -> None:
        pieces = [payload_part(body[i : i + size]) for i in range(0, len(body), size)]
        header = [p for i, p in enumerate(pieces) if (i + 1) * size <= 44]
        call.stream(header, content_type="audio/wav", end=False)
        time.sleep(0.05)
        for piece in pieces[len(header) :]:
            call.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        call.send(b"0\r\n\r\n")

    scripted.script = script
    found = once(kind)
    assert (found.outcome, found.audio_bytes) == ("ok", 120)
    assert found.first_audio_ns is not None
    assert found.first_audio_ns - found.sent_ns >= 50e6


@pytest.mark.parametrize("kind", KINDS)
def test_tcp_may_cut_the_frames_anywhere(scripted: Any, payload_part: Part, kind: str) -> None:
    wire = b"".join(payload_part(bytes([n])) for n in range(20))
    generator = random.Random(5)

    def script(call: Any) -> None:
        cuts = sorted(generator.sample(range(1, len(wire)), 40))
        call.stream([wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)])

    scripted.script = script
    assert once(kind).audio_bytes == 20


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_response(scripted: Any, kind: str) -> None:
    scripted.script = lambda call: call.whole(wav_bytes(60))
    found = once(kind, "invoke")
    assert (found.outcome, found.audio_bytes) == ("ok", 120)
    assert scripted.calls[0].path == "/endpoints/speech/invocations"
    assert scripted.calls[0].headers["accept"] == "audio/wav"


@pytest.mark.parametrize("kind", KINDS)
def test_the_request_on_the_wire(scripted: Any, kind: str) -> None:
    once(kind, variant="primary")
    (call,) = scripted.calls
    assert call.path == "/endpoints/speech/invocations-response-stream"
    assert call.body == b'{"text":"hi"}'
    assert call.headers["content-type"] == "application/json"
    assert call.headers["x-amzn-sagemaker-accept"] == "audio/wav"
    assert call.headers["x-amzn-sagemaker-target-variant"] == "primary"
    assert call.headers["x-amz-security-token"] == "token"
    assert "/eu-west-1/sagemaker/aws4_request" in call.headers["authorization"]


def saturated(call: Any) -> None:
    call.error(
        424, "ModelError", Message="received 503", OriginalStatusCode=503, OriginalMessage='{"error":"queue_saturated"}'
    )


def model_error(original: int) -> Callable[[Any], None]:
    return lambda call: call.error(424, "ModelError", Message="m", OriginalStatusCode=original, OriginalMessage="o")


ERRORS = [
    (saturated, "rejected", 503),
    (model_error(503), "server_error", 503),
    (model_error(500), "server_error", 500),
    (model_error(400), "client_error", 400),
    (model_error(429), "throttled", 429),
    (lambda call: call.error(400, "ValidationError", message="no such endpoint"), "client_error", 400),
    (lambda call: call.error(400, "ThrottlingException", message="slow down"), "throttled", 400),
    (lambda call: call.error(503, "ServiceUnavailable", message="busy"), "server_error", 503),
    (lambda call: call.error(500, "InternalFailure", message="oops"), "server_error", 500),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("script", "outcome", "status"), ERRORS)
def test_errors_are_outcomes(scripted: Any, kind: str, script: Any, outcome: str, status: int) -> None:
    scripted.script = script
    found = once(kind)
    assert (found.outcome, found.status) == (outcome, status)
    assert found.first_audio_ns is None
    assert len(scripted.calls) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_forty_refused_calls_are_forty_hits(scripted: Any, kind: str) -> None:
    scripted.script = saturated
    user = transport(kind)
    outcomes = {perform(user, b"{}", 5.0).outcome for _ in range(40)}
    assert outcomes == {"rejected"}
    assert len(scripted.calls) == 40


@pytest.mark.parametrize("kind", KINDS)
def test_an_exception_frame_breaks_the_stream(scripted: Any, payload_part: Part, event_frame: Any, kind: str) -> None:
    bad = event_frame(
        b'{"Message":"died"}',
        {":message-type": "exception", ":exception-type": "ModelStreamError", ":content-type": "a/b"},
    )
    scripted.script = lambda call: call.stream([payload_part(b"abc"), bad])
    found = once(kind)
    assert found.outcome == "broken"
    assert "ModelStreamError" in (found.error or "")
    assert found.audio_bytes == 3


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_connection_is_broken(scripted: Any, payload_part: Part, kind: str) -> None:
    def script(call: Any) -> None:
        call.stream([payload_part(b"abc")], end=False)
        call.connection.shutdown(2)

    scripted.script = script
    assert once(kind).outcome == "broken"


@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_cut_before_the_headers(scripted: Any, kind: str) -> None:
    scripted.script = lambda call: call.connection.shutdown(2)
    assert once(kind).outcome == "server_error"
    assert len(scripted.calls) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_silence_is_a_timeout(scripted: Any, payload_part: Part, kind: str) -> None:
    scripted.script = lambda call: call.stream([payload_part(b"abc")], end=False)
    found = once(kind, read_timeout_s=0.2)
    assert found.outcome == "timeout"


@pytest.mark.parametrize("kind", KINDS)
def test_no_audio_is_a_failure(scripted: Any, payload_part: Part, kind: str) -> None:
    scripted.script = lambda call: call.stream([payload_part(wav_bytes(0))], content_type="audio/wav")
    assert once(kind).outcome == "no_audio"


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_listens(scripted: Any, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    assert once(kind).outcome == "server_error"
    assert scripted.calls == []


def test_an_endless_response_ends(scripted: Any, payload_part: Part) -> None:
    def script(call: Any) -> None:
        call.stream([payload_part(b"abc")], end=False)
        piece = payload_part(struct.pack(">d", 0.0))
        while True:
            call.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            time.sleep(0.01)

    scripted.script = script
    started = time.monotonic()
    found = perform(transport("lean"), b"{}", 0.4)
    assert found.outcome == "timeout"
    assert found.audio_bytes > 3
    assert time.monotonic() - started < 20


def test_a_user_keeps_its_connection(scripted: Any) -> None:
    user = transport("lean")
    user.open()
    for _ in range(30):
        assert perform(user, b"{}", 5.0).outcome == "ok"
    assert scripted.accepted == 1


def test_a_connection_the_server_closed_while_idle_is_replaced(scripted: Any, payload_part: Part) -> None:
    def script(call: Any) -> None:
        call.stream([payload_part(b"abc")])
        call.connection.shutdown(2)

    scripted.script = script
    user = transport("lean")
    for _ in range(3):
        assert perform(user, b"{}", 5.0).outcome == "ok"
        time.sleep(0.02)
    assert scripted.accepted == 3
