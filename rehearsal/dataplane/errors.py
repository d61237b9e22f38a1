"""How SageMaker Runtime words its refusals."""

from __future__ import annotations

import secrets

from aiohttp import web

from rehearsal.aws.service import ApiError
from rehearsal.fleet.logs import log_group
from rehearsal.settings import ACCOUNT

TIMED_OUT = (
    "Your invocation timed out while waiting for a response from container {variant}. Review the latency metrics for "
    "each container in Amazon CloudWatch, resolve the issue, and try again."
)
HUNG_UP = "The container {variant} closed the connection before it answered."


def response(error: ApiError) -> web.Response:
    """As JSON, with the headers SDKs read the error's name from."""
    headers = {"x-amzn-ErrorType": error.code, "x-amzn-RequestId": secrets.token_hex(16)}
    return web.Response(status=error.status, body=error.body(), headers=headers, content_type="application/json")


def endpoint_not_found(name: str) -> ApiError:
    """Also what AWS says while an endpoint is still being created."""
    return ApiError("ValidationError", f"Endpoint {name} of account {ACCOUNT} not found.")


def no_instance(name: str) -> ApiError:
    """The endpoint is there and nobody serves."""
    return ApiError("ServiceUnavailable", f"No instance of endpoint {name} is in service.", 503)


def model_error(region: str, endpoint: str, variant: str, status: int, text: str) -> ApiError:
    """The container answered with an error, or (status 0) not at all."""
    kind = "client" if 400 <= status < 500 else "server"
    group = log_group(endpoint)
    console = f"https://{region}.console.aws.amazon.com/cloudwatch/home?region={region}#logEventViewer:group={group}"
    return ApiError(
        "ModelError",
        f'Received {kind} error ({status}) from {variant} with message "{text}". '
        f"See {console} in account {ACCOUNT} for more information.",
        424,
        OriginalStatusCode=status,
        OriginalMessage=text,
        LogStreamArn=f"arn:aws:logs:{region}:{ACCOUNT}:log-group:{group}",
    )
