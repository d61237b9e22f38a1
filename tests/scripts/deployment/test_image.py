"""Finding or building the image: whatever the registry holds under the tag has to be one that SageMaker takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from planner.errors import AwsError
from scripts.aws.clients import control
from scripts.deployment import codebuild, image

DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
INDEX = "application/vnd.oci.image.index.v1+json"


class Registry:
    """ECR and S3; a build pushes an image of ``media_type``."""

    def __init__(self, media_type: str, *, pushed: bool) -> None:
        self.media_type, self.pushed, self.builds = media_type, pushed, 0

    def client(self, service: str, **_: Any) -> Registry:  # noqa: ARG002
        return self

    def describe_images(self, **_: Any) -> dict[str, Any]:
        if not self.pushed:
            raise ClientError({"Error": {"Code": "ImageNotFoundException", "Message": ""}}, "DescribeImages")
        return {"imageDetails": [{"imageDigest": "sha256:1"}]}

    def batch_get_image(self, **_: Any) -> dict[str, Any]:
        return {"images": [{"imageManifestMediaType": self.media_type}]}

    def put_object(self, **_: Any) -> None:
        """The source archive."""

    def build(self, *_: Any, **__: Any) -> None:
        self.builds += 1
        self.pushed = True


@pytest.fixture
def ensure(monkeypatch, tmp_path):
    (tmp_path / "container").mkdir()
    for name in ("Dockerfile", "requirements.txt"):
        (tmp_path / "container" / name).write_text("FROM scratch\n")
    monkeypatch.setenv("AWS_REGION", "us-east-1")

    def run(registry: Registry) -> image.Image:
        monkeypatch.setattr(boto3, "client", registry.client)
        monkeypatch.setattr(codebuild, "run", registry.build)
        control.cache_clear()
        return image.ensure(Path(tmp_path), repository="r", bucket="b", key="k", project="p")

    yield run
    control.cache_clear()


@pytest.mark.parametrize("pushed", [False, True])
def test_an_image_is_built_once(ensure, pushed):
    registry = Registry(DOCKER, pushed=pushed)
    assert (ensure(registry).built, registry.builds) == (not pushed, int(not pushed))


@pytest.mark.parametrize("pushed", [False, True])
def test_an_image_index_is_refused_on_the_next_run_too(ensure, pushed):
    with pytest.raises(AwsError, match=r"oci\.image\.index") as refused:
        ensure(Registry(INDEX, pushed=pushed))
    assert "--rebuild" in refused.value.hint
