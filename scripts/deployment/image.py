"""The container image in the registry: is it there, and build it when not."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

from botocore.exceptions import ClientError

from planner.errors import AwsError
from scripts.aws.clients import aws_errors, control, error_code
from scripts.deployment import codebuild, source

MEDIA_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
TYPICAL_S = 600.0
LIMIT_S = 3600.0


@dataclass(frozen=True)
class Image:
    """An image by digest."""

    digest: str
    tag: str
    built: bool


def find(repository: str, tag: str) -> str | None:
    """Digest of the image with this tag, or None."""
    with aws_errors(f"looking for {repository}:{tag}"):
        try:
            found = control("ecr").describe_images(repositoryName=repository, imageIds=[{"imageTag": tag}])
        except ClientError as error:
            if error_code(error) == "ImageNotFoundException":
                return None
            raise
    return str(found["imageDetails"][0]["imageDigest"])


def ensure(root: Path, *, repository: str, bucket: str, key: str, project: str, rebuild: bool = False) -> Image:
    """The image of the sources in ``root``; built unless the registry has it already."""
    data = source.archive(root)
    tag = source.tag(data) + (f"-{uuid.uuid4().hex[:6]}" if rebuild else "")
    digest = None if rebuild else find(repository, tag)
    if digest is not None:
        _require_media_type(repository, tag)
        return Image(digest, tag, built=False)
    with aws_errors(f"uploading the source archive to s3://{bucket}/{key}"):
        control("s3").put_object(Bucket=bucket, Key=key, Body=data)
    codebuild.run(project, {"IMAGE_TAG": tag}, typical_s=TYPICAL_S, limit_s=LIMIT_S)
    digest = find(repository, tag)
    if digest is None:
        raise AwsError(f"the build succeeded, but {repository} has no image {tag}", "read the build's log")
    _require_media_type(repository, tag)
    return Image(digest, tag, built=True)


def _require_media_type(repository: str, tag: str) -> None:
    with aws_errors(f"reading the manifest of {repository}:{tag}"):
        answer = control("ecr").batch_get_image(repositoryName=repository, imageIds=[{"imageTag": tag}])
    for image in answer["images"]:
        found = image.get("imageManifestMediaType", MEDIA_TYPE)
        if found != MEDIA_TYPE:
            raise AwsError(
                f"{repository}:{tag} was pushed as {found}; SageMaker takes {MEDIA_TYPE}",
                "build without provenance and SBOM (terraform/modules/registry/buildspec.yml); the tag is taken: "
                "python -m scripts.build_image --rebuild makes another",
            )
