"""What the builds do: an image whose digest comes from its source archive, weights that are markers."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import urlparse

from moto.core.exceptions import ServiceException
from moto.ecr.models import ECRBackend, ecr_backends
from moto.s3.models import S3Backend, s3_backends

from rehearsal.codebuild.store import Params, variables_of
from rehearsal.image import MEDIA_TYPE, Image, is_source
from rehearsal.settings import ACCOUNT

Print = Callable[[str], None]
CHECKSUMS = "SHA256SUMS"


class BuildFailedError(Exception):
    """A command of the build failed."""


class Work:
    """Chooses by the build's environment which of Headroom's builds it is."""

    def __init__(self, region: str) -> None:
        self._region = region

    def run(self, build: Params, say: Print) -> dict[str, str]:
        """Do it; the exported variables. Any other project's build does nothing and succeeds."""
        variables = variables_of(build)
        try:
            if "REPOSITORY_NAME" in variables:
                return {"IMAGE_DIGEST": self._image(build["source"], variables, say)}
            if "WEIGHTS_REPOSITORY" in variables:
                self._weights(variables, say)
        except ServiceException as refused:
            raise BuildFailedError(str(refused)) from None
        return {}

    @property
    def _s3(self) -> S3Backend:
        return s3_backends[ACCOUNT]["aws"]

    @property
    def _ecr(self) -> ECRBackend:
        return ecr_backends[ACCOUNT][self._region]

    def _image(self, source: Params, variables: Mapping[str, str], say: Print) -> str:
        tag = variables.get("IMAGE_TAG", "unset")
        if tag == "unset":
            raise BuildFailedError("IMAGE_TAG is not set; start the build with an override")
        bucket, _, key = source.get("location", "").removeprefix("arn:aws:s3:::").partition("/")
        found = self._s3.get_object(bucket, key)
        if found is None:
            raise BuildFailedError(f"source archive s3://{bucket}/{key} does not exist")
        files = _unpacked(found.value)
        dockerfile = variables.get("DOCKERFILE", "Dockerfile")
        if dockerfile not in files:
            raise BuildFailedError(f"failed to read dockerfile: open {dockerfile}: no such file or directory")
        image = Image.of({path: content for path, content in files.items() if is_source(path)})
        say(f"the rehearsal builds no image; its digest is a hash of the archive's {len(files)} files")
        self._ecr.put_image(variables["REPOSITORY_NAME"], image.manifest, tag, MEDIA_TYPE, image.digest)
        say(f"IMAGE_DIGEST {image.digest}")
        return image.digest

    def _weights(self, variables: Mapping[str, str], say: Print) -> None:
        """Small files in place of the weights; the checksum list, written last, is true of what was written."""
        destination = urlparse(variables["DESTINATION"])
        prefix = destination.path.lstrip("/")
        sums = []
        for path in _paths(json.loads(variables["WEIGHTS_FILES"])):
            content = f"{variables['WEIGHTS_REPOSITORY']}@{variables['WEIGHTS_REVISION']}/{path}\n".encode()
            self._s3.put_object(destination.netloc, prefix + path, content)
            sums.append(f"{hashlib.sha256(content).hexdigest()}  {path}\n")
            say(f"{path}: a marker of {len(content)} bytes stands in for the weights")
        self._s3.put_object(destination.netloc, prefix + CHECKSUMS, "".join(sorted(sums)).encode())
        say(f"SYNCED {variables['DESTINATION']}")


def _unpacked(archive: bytes) -> dict[str, bytes]:
    """Names and contents alone, so that two archives of the same files are the same image."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            return {entry.filename: opened.read(entry) for entry in opened.infolist() if not entry.is_dir()}
    except zipfile.BadZipFile:
        raise BuildFailedError("the source archive is not a zip file") from None


def _paths(patterns: list[str]) -> Iterator[str]:
    return (pattern.replace("*", "rehearsal") for pattern in patterns)
