"""The weights in the cache: complete or not, and copy them when not."""

from __future__ import annotations

from urllib.parse import urlparse

from botocore.exceptions import ClientError

from planner.errors import AwsError
from scripts.aws.clients import aws_errors, control, error_code
from scripts.aws.endpoint import CHECKSUMS
from scripts.deployment import codebuild

TYPICAL_S = 120.0
LIMIT_S = 3600.0


def complete(uri: str) -> bool:
    """The checksum list is written last: where it is, the weights are whole."""
    parsed = urlparse(uri)
    with aws_errors(f"looking for weights at {uri}"):
        try:
            control("s3").head_object(Bucket=parsed.netloc, Key=f"{parsed.path.lstrip('/')}{CHECKSUMS}")
        except ClientError as error:
            if error_code(error) in {"404", "NoSuchKey", "NotFound"}:
                return False
            raise
    return True


def ensure(uri: str, project: str, *, again: bool = False) -> bool:
    """True when a copy was made, False when the weights were there."""
    if not again and complete(uri):
        return False
    codebuild.run(project, {}, typical_s=TYPICAL_S, limit_s=LIMIT_S)
    if not complete(uri):
        raise AwsError(f"the copy succeeded, but {uri}{CHECKSUMS} is missing", "read the build's log")
    return True
