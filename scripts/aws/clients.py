"""boto3 clients and the one translation of botocore's failures into our error tree."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, cast

import boto3
from botocore import exceptions as bc
from botocore.config import Config

from planner.errors import AwsError, UsageError

THROTTLED = frozenset(
    {
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "LimitExceededException",
        "ConcurrentUpdateException",
    }
)
_DENIED = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})
_BAD_CREDENTIALS = frozenset(
    {
        "ExpiredToken",
        "ExpiredTokenException",
        "InvalidClientTokenId",
        "UnrecognizedClientException",
        "InvalidSignatureException",
    }
)
_REGION = re.compile(r"[A-Za-z0-9-]{1,63}")
_CREDENTIALS_HINT = (
    'export AWS_PROFILE or AWS_ACCESS_KEY_ID; for the rehearsal: eval "$(.venv/bin/python -m rehearsal env)"'
)


def region() -> str:
    """The region every client uses; boto3 alone ignores AWS_REGION."""
    found = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or boto3.Session().region_name
    if not found:
        raise UsageError("no AWS region is set", "export AWS_REGION, for example us-east-1")
    if not _REGION.fullmatch(found):
        raise UsageError(f"AWS_REGION is {found!r}, which names no region", "for example us-east-1")
    return found


def aws_endpoint_url() -> str | None:
    """Where AWS is, when it is not AWS's own address."""
    url = os.environ.get("AWS_ENDPOINT_URL") or None
    if url is not None and not url.startswith(("http://", "https://")):
        raise UsageError(f"AWS_ENDPOINT_URL is {url!r}, not an http address", "fix or unset it")
    return url


@lru_cache(maxsize=32)
def control(service: str) -> Any:
    """Cached control-plane client: throttling and 5xx are retried with back-off."""
    aws_endpoint_url()
    config = Config(retries={"mode": "standard", "total_max_attempts": 8}, connect_timeout=5, read_timeout=30)
    return cast(Any, boto3.client)(service, region_name=region(), config=config)


def runtime(max_connections: int, read_timeout_s: float = 60) -> Any:
    """Data-plane client: exactly one attempt a request, so that no retry hides inside a latency."""
    aws_endpoint_url()
    config = Config(
        retries={"total_max_attempts": 1},
        max_pool_connections=max_connections,
        connect_timeout=5,
        read_timeout=read_timeout_s,
        tcp_keepalive=True,
    )
    return cast(Any, boto3.client)("sagemaker-runtime", region_name=region(), config=config)


def error_code(error: bc.ClientError) -> str:
    """AWS's error code, for example ``ValidationException``."""
    return str(error.response.get("Error", {}).get("Code", "Unknown"))


def error_message(error: bc.ClientError) -> str:
    """AWS's own words."""
    return str(error.response.get("Error", {}).get("Message", "")) or str(error)


def is_transient(error: Exception) -> bool:
    """Throttling, a 5xx or a broken connection: the same call may work later."""
    if isinstance(error, bc.ClientError):
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        return error_code(error) in THROTTLED or status >= 500
    return isinstance(error, (bc.HTTPClientError, bc.ConnectionError))


@contextmanager
def aws_errors(what: str) -> Iterator[None]:
    """Turn botocore failures inside the block into AwsError or UsageError; ``what`` says what was tried."""
    try:
        yield
    except bc.ClientError as error:
        raise _translated(error, what) from error
    except (
        bc.NoCredentialsError,
        bc.PartialCredentialsError,
        bc.TokenRetrievalError,
        bc.UnauthorizedSSOTokenError,
    ) as error:
        raise UsageError(f"{what}: no usable AWS credentials ({error})", _CREDENTIALS_HINT) from error
    except bc.ProfileNotFound as error:
        raise UsageError(f"{what}: {error}", "fix AWS_PROFILE") from error
    except bc.NoRegionError as error:
        raise UsageError(f"{what}: no AWS region is set", "export AWS_REGION, for example us-east-1") from error
    except (bc.ParamValidationError, bc.InvalidEndpointDiscoveryConfigurationError) as error:
        raise UsageError(f"{what}: {error}", "check the names on the command line") from error
    except (bc.HTTPClientError, bc.ConnectionError) as error:
        raise AwsError(f"{what}: AWS does not answer ({error})", _unreachable_hint()) from error


def _translated(error: bc.ClientError, what: str) -> AwsError | UsageError:
    code, message = error_code(error), error_message(error)
    action = f"{error.operation_name}"
    if code in _BAD_CREDENTIALS:
        return UsageError(f"{what}: {action} refused the credentials ({code}: {message})", _CREDENTIALS_HINT)
    if code in _DENIED:
        return AwsError(
            f"{what}: not allowed to call {action} ({message})", "attach docs/operator-policy.json to the caller"
        )
    if code == "ValidationException" and "failed to satisfy constraint" in message:
        return UsageError(f"{what}: {message}", "check the names on the command line")
    if is_transient(error):
        return AwsError(f"{what}: {action} still failed after retries ({code}: {message})", "wait a minute, run again")
    return AwsError(f"{what}: {action} failed ({code}: {message})", "read the message above; nothing was retried")


def _unreachable_hint() -> str:
    url = aws_endpoint_url()
    if url is None:
        return "check the network and AWS_REGION"
    return (
        f'AWS_ENDPOINT_URL is {url}: unset it, or `make rehearsal-up` and eval "$(.venv/bin/python -m rehearsal env)"'
    )
