"""The image that is never built: its digest comes from the sources, so that a changed container is another image."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

MEDIA_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG_TYPE = "application/vnd.docker.container.image.v1+json"
LAYER_TYPE = "application/vnd.docker.image.rootfs.diff.tar.gzip"
_NOT_SOURCES = ("__pycache__", ".pyc")


@dataclass(frozen=True, slots=True)
class Image:
    """A docker manifest whose one layer is a hash of the sources."""

    manifest: str

    @property
    def digest(self) -> str:
        """As ECR computes it."""
        return "sha256:" + hashlib.sha256(self.manifest.encode()).hexdigest()

    @classmethod
    def of(cls, files: Mapping[str, bytes]) -> Image:
        """From path → content; the order of files and their times do not matter."""
        sources = hashlib.sha256()
        size = 0
        for path in sorted(files):
            sources.update(f"{path}\0{len(files[path])}\0".encode() + files[path])
            size += len(files[path])
        layer = "sha256:" + sources.hexdigest()
        body = {
            "schemaVersion": 2,
            "mediaType": MEDIA_TYPE,
            "config": {"mediaType": CONFIG_TYPE, "size": size, "digest": layer},
            "layers": [{"mediaType": LAYER_TYPE, "size": size, "digest": layer}],
        }
        return cls(json.dumps(body, sort_keys=True))

    def push(self, ecr: Any, repository: str, tag: str = "rehearsal") -> str:
        """Into ECR through its API; the image's URI by digest."""
        try:
            found = ecr.describe_repositories(repositoryNames=[repository])["repositories"][0]
        except ClientError as error:
            if error.response["Error"]["Code"] != "RepositoryNotFoundException":
                raise
            found = ecr.create_repository(repositoryName=repository)["repository"]
        if not _holds(ecr, repository, self.digest):
            ecr.put_image(
                repositoryName=repository,
                imageManifest=self.manifest,
                imageManifestMediaType=MEDIA_TYPE,
                imageTag=tag,
                imageDigest=self.digest,
            )
        return f"{found['repositoryUri']}@{self.digest}"


def container_sources() -> dict[str, bytes]:
    """Everything below container/."""
    return sources(Path(__file__).resolve().parents[1] / "container")


def sources(root: Path) -> dict[str, bytes]:
    """A folder's files, or one file, by path."""
    if root.is_file():
        return {root.name: root.read_bytes()}
    found = [path for path in root.rglob("*") if path.is_file() and is_source(path.as_posix())]
    return {path.relative_to(root.parent).as_posix(): path.read_bytes() for path in found}


def is_source(path: str) -> bool:
    """Not what Python leaves behind."""
    return not any(mark in path for mark in _NOT_SOURCES)


def _holds(ecr: Any, repository: str, digest: str) -> bool:
    try:
        ecr.describe_images(repositoryName=repository, imageIds=[{"imageDigest": digest}])
    except ClientError as error:
        if error.response["Error"]["Code"] != "ImageNotFoundException":
            raise
        return False
    return True
