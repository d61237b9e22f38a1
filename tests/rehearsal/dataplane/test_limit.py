"""The ceiling on an invocation, shortened from SageMaker's 60 s."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError, EventStreamError

from tests.rehearsal.conftest import ENDPOINT, Up

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    up = Up(tmp_path_factory.mktemp("limited")).start("--seed", "--invocation-limit-s", "0.6")
    yield up
    up.run("down")


@pytest.mark.parametrize("operation", ["invoke_endpoint", "invoke_endpoint_with_response_stream"])
def test_no_answer_in_time_is_a_model_error_without_a_status(limited: Up, operation: str) -> None:
    began = time.monotonic()
    with pytest.raises(ClientError) as caught:
        getattr(limited.client("sagemaker-runtime"), operation)(EndpointName=ENDPOINT, Body=b'{"first_s": 20}')
    assert 0.5 < time.monotonic() - began < 5
    answer = caught.value.response
    assert (answer["Error"]["Code"], answer["OriginalStatusCode"]) == ("ModelError", 0)
    assert "timed out while waiting for a response from container primary" in answer["OriginalMessage"]


def test_an_endless_stream_is_ended(limited: Up) -> None:
    answer = limited.client("sagemaker-runtime").invoke_endpoint_with_response_stream(
        EndpointName=ENDPOINT, Body=b'{"pieces": 100000, "gap_s": 0.05}'
    )
    parts = iter(answer["Body"])
    assert len(next(parts)["PayloadPart"]["Bytes"]) >= 480
    with pytest.raises(EventStreamError, match="ModelStreamError"):
        list(parts)
    assert limited.truth("requests")[-1]["outcome"] == "ModelStreamError"
