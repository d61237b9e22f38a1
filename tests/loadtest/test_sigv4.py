"""The quick signer agrees with botocore's for every header it signs."""

from __future__ import annotations

from datetime import UTC, datetime
from unittest import mock

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from loadtest.sigv4 import Signer

NOW = datetime(2026, 11, 29, 13, 0, 1, tzinfo=UTC)
ACCESS, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


def botocore_authorization(path: str, body: bytes, token: str | None) -> str:
    request = AWSRequest("POST", f"https://runtime.sagemaker.eu-west-1.amazonaws.com{path}", data=body)
    with mock.patch.object(auth, "get_current_datetime", return_value=NOW.replace(tzinfo=None)):
        auth.SigV4Auth(Credentials(ACCESS, SECRET, token), "sagemaker", "eu-west-1").add_auth(request)
    return str(request.headers["Authorization"])


@pytest.mark.parametrize("token", [None, "a/session+token=="])
@pytest.mark.parametrize("path", ["/endpoints/speech/invocations", "/endpoints/a%20b/invocations-response-stream"])
@pytest.mark.parametrize("body", [b"", b'{"text":"hello"}', "größe".encode()])
def test_signature_equals_botocores(path: str, body: bytes, token: str | None) -> None:
    signer = Signer("eu-west-1", "sagemaker")
    host = "runtime.sagemaker.eu-west-1.amazonaws.com"
    for _ in range(2):
        headers = signer.headers(
            host=host, path=path, body=body, access_key=ACCESS, secret_key=SECRET, token=token, now=NOW
        )
        assert headers["Authorization"] == botocore_authorization(path, body, token)
    assert headers.get("X-Amz-Security-Token") == token


def test_a_new_day_and_new_credentials_change_the_key() -> None:
    signer = Signer("eu-west-1", "sagemaker")

    def sign(secret: str, now: datetime) -> str:
        return signer.headers(host="h", path="/", body=b"", access_key="a", secret_key=secret, token=None, now=now)[
            "Authorization"
        ]

    first = sign("one", NOW)
    assert sign("two", NOW) != first
    assert sign("one", NOW.replace(day=30)) != first
    assert sign("one", NOW) == first
