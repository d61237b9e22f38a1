"""ARNs and AWS's wording for things that are or are not there."""

from __future__ import annotations

from rehearsal.aws.service import ApiError
from rehearsal.settings import ACCOUNT


def arn(region: str, kind: str, name: str) -> str:
    """SageMaker writes names in ARNs in lower case."""
    return f"arn:aws:sagemaker:{region}:{ACCOUNT}:{kind}/{name.lower()}"


def not_found(kind: str, resource_arn: str) -> ApiError:
    """``kind`` in AWS's words: model, endpoint configuration, endpoint."""
    return ApiError("ValidationException", f'Could not find {kind} "{resource_arn}".')


def already_exists(kind: str, resource_arn: str) -> ApiError:
    """Names are unique in an account and region."""
    return ApiError("ValidationException", f'Cannot create already existing {kind} "{resource_arn}".')
