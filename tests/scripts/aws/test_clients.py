"""botocore's failures in our words, with stubbed responses of the real client."""

from __future__ import annotations

import boto3
import pytest
from botocore.exceptions import EndpointConnectionError, NoCredentialsError
from botocore.stub import Stubber

from planner.errors import AwsError, UsageError
from scripts.aws import clients


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("AWS_PROFILE", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    clients.control.cache_clear()


@pytest.mark.parametrize(
    ("code", "status", "kind", "words"),
    [
        ("AccessDeniedException", 400, AwsError, "not allowed to call DescribeEndpoint"),
        ("ExpiredTokenException", 400, UsageError, "refused the credentials"),
        ("UnrecognizedClientException", 400, UsageError, "refused the credentials"),
        ("ThrottlingException", 400, AwsError, "still failed after retries"),
        ("InternalFailure", 500, AwsError, "still failed after retries"),
        ("ValidationException", 400, AwsError, "ValidationException: why"),
        ("ValidationException failed to satisfy constraint", 400, UsageError, "failed to satisfy constraint"),
    ],
)
def test_service_errors(code, status, kind, words):
    client = boto3.client("sagemaker", region_name="us-east-1")
    with Stubber(client) as stub:
        code, _, more = code.partition(" ")
        stub.add_client_error("describe_endpoint", code, more or "why", http_status_code=status)
        with pytest.raises(kind, match="reading") as raised, clients.aws_errors("reading"):
            client.describe_endpoint(EndpointName="e")
    assert words in raised.value.message
    assert raised.value.hint


def test_no_credentials():
    with pytest.raises(UsageError, match="no usable AWS credentials"), clients.aws_errors("x"):
        raise NoCredentialsError


def test_nothing_listens(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(AwsError, match="does not answer") as raised, clients.aws_errors("x"):
        raise EndpointConnectionError(endpoint_url="http://127.0.0.1:1")
    assert "make rehearsal-up" in raised.value.hint


def test_a_bug_is_not_translated():
    with pytest.raises(KeyError), clients.aws_errors("x"):
        raise KeyError("bug")


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"AWS_REGION": "eu-west-1"}, "eu-west-1"),
        ({"AWS_DEFAULT_REGION": "eu-west-2"}, "eu-west-2"),
        ({"AWS_REGION": "eu-west-1", "AWS_DEFAULT_REGION": "eu-west-2"}, "eu-west-1"),
    ],
)
def test_region(monkeypatch, variables, expected):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert clients.region() == expected


def test_names_that_are_no_region_and_no_address(monkeypatch):
    monkeypatch.setenv("AWS_REGION", " ")
    with pytest.raises(UsageError, match="names no region"):
        clients.region()
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "garbage")
    for client in (lambda: clients.control("sagemaker"), lambda: clients.runtime(1)):
        with pytest.raises(UsageError, match="AWS_ENDPOINT_URL is 'garbage'"):
            client()


def test_no_region(monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    with pytest.raises(UsageError, match="no AWS region"):
        clients.region()


def test_the_data_plane_makes_one_attempt(monkeypatch):
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    config = clients.runtime(7).meta.config
    assert config.retries["total_max_attempts"] == 1
    assert config.max_pool_connections == 7
    assert clients.control("sagemaker").meta.config.retries["total_max_attempts"] == 8
