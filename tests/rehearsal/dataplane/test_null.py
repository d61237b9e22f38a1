"""The null server: real frames, its own write stamps, no container."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import time
import wave
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ReadTimeoutError
from urllib3.exceptions import ReadTimeoutError as RawReadTimeoutError

pytestmark = pytest.mark.e2e


@pytest.fixture
def null(request: pytest.FixtureRequest) -> Iterator[Any]:
    server = subprocess.Popen(
        [sys.executable, "-m", "rehearsal", "null", "--mode", request.param], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    url = server.stdout.readline().strip()
    yield boto3.client(
        "sagemaker-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(retries={"total_max_attempts": 1}, read_timeout=1),
    )
    server.terminate()
    server.wait(10)
    server.stdout.close()


def parts(client: Any, accept: str = "audio/pcm") -> Iterator[bytes]:
    answer = client.invoke_endpoint_with_response_stream(EndpointName="any", Body=b"{}", Accept=accept)
    for part in answer["Body"]:
        yield part["PayloadPart"]["Bytes"]


@pytest.mark.parametrize("null", ["realistic"], indirect=True)
def test_every_part_carries_the_moment_it_was_written(null: Any) -> None:
    began = time.monotonic_ns()
    seen = []
    for part in parts(null):
        magic, index, written_ns = struct.unpack_from(">4sIQ", part)
        assert (magic, index, len(part) % 2) == (b"HRNS", len(seen), 0)
        assert 0 <= time.monotonic_ns() - written_ns < 50e6
        seen.append((written_ns - began) / 1e9)
    assert len(seen) == 8
    assert seen[0] == pytest.approx(0.10, abs=0.06)
    assert seen[-1] == pytest.approx(0.94, abs=0.06)


@pytest.mark.parametrize("null", ["instant"], indirect=True)
def test_wav_has_its_header_first(null: Any) -> None:
    [part] = parts(null, accept="audio/wav")
    with wave.open(io.BytesIO(part)) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (24_000, 1, 2)
    assert part[44:48] == b"HRNS"


@pytest.mark.parametrize("null", ["stall"], indirect=True)
def test_a_stall_begins_and_then_says_nothing(null: Any) -> None:
    stream = parts(null)
    assert len([next(stream), next(stream)]) == 2
    with pytest.raises((ReadTimeoutError, RawReadTimeoutError)):
        next(stream)
