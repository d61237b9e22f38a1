"""Invocations through stock boto3, judged against what the rehearsal recorded."""

from __future__ import annotations

import itertools
import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlparse

import pytest
from botocore.exceptions import ClientError, EventStreamError

from tests.rehearsal.conftest import ENDPOINT, Up, until

pytestmark = pytest.mark.e2e
PIECE_BYTES = 480


def stream(up: Up, **behaviour: Any) -> Any:
    return up.client("sagemaker-runtime").invoke_endpoint_with_response_stream(
        EndpointName=ENDPOINT, Body=json.dumps(behaviour), ContentType="application/json", Accept="audio/wav"
    )


def whole(up: Up, **behaviour: Any) -> Any:
    return up.client("sagemaker-runtime").invoke_endpoint(
        EndpointName=ENDPOINT, Body=json.dumps(behaviour), ContentType="application/json", Accept="audio/mpeg"
    )


def size(parts: Any) -> int:
    return sum(len(part["PayloadPart"]["Bytes"]) for part in parts["Body"])


def newest(up: Up) -> dict[str, Any]:
    return up.truth("requests")[-1]


def test_parts_arrive_as_they_are_written(seeded: Up) -> None:
    answer = stream(seeded, pieces=4, gap_s=0.1)
    began = time.monotonic()
    at = [time.monotonic() - began for _ in answer["Body"]]
    gaps = [later - earlier for earlier, later in itertools.pairwise(at)]
    assert len(at) == 4
    assert all(0.05 < gap < 0.3 for gap in gaps), gaps


def test_headers_that_pass_and_headers_that_stay(seeded: Up) -> None:
    answer = stream(seeded)
    assert answer["ContentType"] == "audio/wav"
    assert answer["InvokedProductionVariant"] == "primary"
    assert answer["CustomAttributes"].startswith("boot_id=")
    assert "x-private" not in answer["ResponseMetadata"]["HTTPHeaders"]
    assert size(answer) == 3 * PIECE_BYTES


def test_whole_responses(seeded: Up) -> None:
    answer = whole(seeded, pieces=5)
    assert len(answer["Body"].read()) == 5 * PIECE_BYTES
    assert answer["ContentType"] == "audio/mpeg"
    assert newest(seeded)["outcome"] == "ok"


@pytest.mark.parametrize("invoke", [stream, whole])
@pytest.mark.parametrize(("status", "kind"), [(400, "client"), (503, "server")])
def test_a_container_error_is_a_model_error(seeded: Up, invoke: Callable[..., Any], status: int, kind: str) -> None:
    with pytest.raises(ClientError) as caught:
        invoke(seeded, status=status)
    answer = caught.value.response
    assert answer["Error"]["Code"] == "ModelError"
    assert answer["ResponseMetadata"]["HTTPStatusCode"] == 424
    assert answer["OriginalStatusCode"] == status
    assert json.loads(answer["OriginalMessage"])["error"] == "queue_saturated"
    assert f"Received {kind} error ({status}) from primary" in answer["Error"]["Message"]


def test_an_unknown_endpoint_is_a_validation_error(seeded: Up) -> None:
    with pytest.raises(ClientError) as caught:
        seeded.client("sagemaker-runtime").invoke_endpoint(EndpointName="nowhere", Body=b"{}")
    assert caught.value.response["Error"]["Code"] == "ValidationError"
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


def test_a_container_that_hangs_up_mid_stream(seeded: Up) -> None:
    parts = iter(stream(seeded, pieces=2, gap_s=0.05, cut=True)["Body"])
    assert len(next(parts)["PayloadPart"]["Bytes"]) == PIECE_BYTES
    with pytest.raises(EventStreamError, match="ModelStreamError"):
        list(parts)
    assert newest(seeded)["outcome"] == "ModelStreamError"


@pytest.mark.parametrize("kind", ["ModelStreamError", "InternalStreamFailure"])
def test_a_stream_broken_on_request(seeded: Up, faults: Callable[..., None], kind: str) -> None:
    faults("stream-error", kind=kind, after_bytes=500)
    with pytest.raises(EventStreamError, match=kind):
        size(stream(seeded, gap_s=0.02))


def test_pieces_cut_to_single_bytes_are_the_same_audio(seeded: Up, faults: Callable[..., None]) -> None:
    faults("cut-parts")
    parts = [part["PayloadPart"]["Bytes"] for part in stream(seeded, pieces=1)["Body"]]
    assert {len(part) for part in parts} == {1}
    assert b"".join(parts) == b"\x01\x02" * 240


def test_a_slow_reader(seeded: Up, faults: Callable[..., None]) -> None:
    faults("slow-reader", bytes_per_s=4800)
    began = time.monotonic()
    assert size(stream(seeded, pieces=3)) == 3 * PIECE_BYTES
    assert time.monotonic() - began > 0.25


@pytest.mark.parametrize("behaviour", [{"first_s": 30}, {"pieces": 1000, "gap_s": 0.03}], ids=["waiting", "playing"])
def test_a_client_that_leaves_frees_its_place(seeded: Up, behaviour: dict[str, Any]) -> None:
    body = json.dumps(behaviour).encode()
    address = urlparse(seeded.url)
    with socket.create_connection((address.hostname, address.port)) as client:
        path = f"/endpoints/{ENDPOINT}/invocations-response-stream"
        client.sendall(f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        until(lambda: [instance["in_flight"] for instance in seeded.instances()] == [1])
    until(lambda: [instance["in_flight"] for instance in seeded.instances()] == [0], timeout_s=2)
    assert newest(seeded)["outcome"] == "client_gone"


def test_the_record_says_what_happened(seeded: Up) -> None:
    before = seeded.truth("requests")
    client = seeded.new_client("sagemaker-runtime")
    connections = seeded.truth("state")["connections"]
    for _ in range(3):
        client.invoke_endpoint(EndpointName=ENDPOINT, Body=b'{"first_s": 0.05}')["Body"].read()
    after = seeded.truth("requests")[len(before) :]
    assert len(after) == 3
    assert len({trace["connection"] for trace in after}) == 1
    assert seeded.truth("state")["connections"] == connections + 1
    for trace in after:
        assert trace["arrival_ns"] <= trace["routed_ns"] <= trace["headers_ns"] <= trace["end_ns"]
        assert trace["headers_ns"] - trace["routed_ns"] >= 50e6
        assert trace["bytes"] == 3 * PIECE_BYTES


def test_custom_attributes_that_are_too_long_are_dropped(seeded: Up) -> None:
    assert "CustomAttributes" not in whole(seeded, attributes="a" * 1025)
    assert whole(seeded, attributes="a" * 1024)["CustomAttributes"] == "a" * 1024


def test_in_flight_is_counted_exactly(seeded: Up) -> None:
    with ThreadPoolExecutor(6) as pool:
        calls = [pool.submit(whole, seeded, first_s=0.6) for _ in range(6)]
        until(lambda: [instance["in_flight"] for instance in seeded.instances()] == [6])
        assert {call.result()["ResponseMetadata"]["HTTPStatusCode"] for call in calls} == {200}
    assert [instance["in_flight"] for instance in seeded.instances()] == [0]
