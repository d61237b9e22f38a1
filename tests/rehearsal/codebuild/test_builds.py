"""CodeBuild through stock boto3: what the two builds leave behind, and how they fail."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.rehearsal.conftest import Up, until

pytestmark = pytest.mark.e2e
DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
ROLE = "arn:aws:iam::123456789012:role/build"


def zipped(files: dict[str, str], year: int = 2026) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (year, 1, 1, 0, 0, 0)), content)
    return buffer.getvalue()


class Builder:
    """A bucket, a repository, and projects of one test."""

    def __init__(self, up: Up, name: str) -> None:
        self.up, self.name = up, name
        self.codebuild, self.s3, self.ecr = (up.client(service) for service in ("codebuild", "s3", "ecr"))
        self.s3.create_bucket(Bucket=name)
        self.ecr.create_repository(repositoryName=name, imageTagMutability="IMMUTABLE")

    def project(self, source: dict[str, Any], **variables: str) -> str:
        self.codebuild.create_project(
            name=self.name,
            source=source,
            artifacts={"type": "NO_ARTIFACTS"},
            environment={
                "type": "LINUX_CONTAINER",
                "image": "standard",
                "computeType": "BUILD_GENERAL1_SMALL",
                "environmentVariables": [{"name": key, "value": value} for key, value in variables.items()],
            },
            serviceRole=ROLE,
        )
        return self.name

    def image_project(self) -> str:
        source = {"type": "S3", "location": f"{self.name}/source/image.zip"}
        return self.project(source, REPOSITORY_NAME=self.name, DOCKERFILE="container/Dockerfile", IMAGE_TAG="unset")

    def upload(self, files: dict[str, str], year: int = 2026) -> None:
        self.s3.put_object(Bucket=self.name, Key="source/image.zip", Body=zipped(files, year))

    def build(self, **overrides: str) -> dict[str, Any]:
        given = [{"name": key, "value": value} for key, value in overrides.items()]
        build_id = self.codebuild.start_build(projectName=self.name, environmentVariablesOverride=given)["build"]["id"]

        def look() -> dict[str, Any] | None:
            [build] = self.codebuild.batch_get_builds(ids=[build_id])["builds"]
            return None if build["buildStatus"] == "IN_PROGRESS" else build

        return until(look)

    def digest(self, tag: str) -> str:
        exported = self.build(IMAGE_TAG=tag)["exportedEnvironmentVariables"]
        return {item["name"]: item["value"] for item in exported}["IMAGE_DIGEST"]


def test_an_image_is_its_sources(seeded: Up) -> None:
    builder = Builder(seeded, "images-one")
    builder.image_project()
    builder.upload({"container/Dockerfile": "FROM x", "container/a.py": "1"})
    first = builder.digest("one")
    [image] = builder.ecr.describe_images(repositoryName=builder.name, imageIds=[{"imageDigest": first}])[
        "imageDetails"
    ]
    assert (image["imageTags"], image["imageManifestMediaType"]) == (["one"], DOCKER)
    [stored] = builder.ecr.batch_get_image(repositoryName=builder.name, imageIds=[{"imageTag": "one"}])["images"]
    assert "sha256:" + hashlib.sha256(stored["imageManifest"].encode()).hexdigest() == first
    builder.upload({"container/a.py": "1", "container/Dockerfile": "FROM x"}, year=2020)
    assert builder.digest("two") == first
    builder.upload({"container/Dockerfile": "FROM x", "container/a.py": "2"})
    assert builder.digest("three") != first


@pytest.mark.parametrize(
    ("files", "overrides", "reason"),
    [
        ({"container/Dockerfile": "FROM x"}, {}, "IMAGE_TAG is not set"),
        ({"Dockerfile": "FROM x"}, {"IMAGE_TAG": "t"}, "failed to read dockerfile"),
        (None, {"IMAGE_TAG": "t"}, "does not exist"),
    ],
    ids=["no tag", "no dockerfile", "no archive"],
)
def test_a_build_that_fails_says_why(
    seeded: Up, request: pytest.FixtureRequest, files: dict[str, str] | None, overrides: dict[str, str], reason: str
) -> None:
    builder = Builder(seeded, "fails-" + hashlib.sha256(request.node.name.encode()).hexdigest()[:8])
    builder.image_project()
    if files is not None:
        builder.upload(files)
    build = builder.build(**overrides)
    assert build["buildStatus"] == "FAILED"
    [context] = build["phases"][-1]["contexts"]
    assert reason in context["message"]
    logs = seeded.client("logs").get_log_events(
        logGroupName=build["logs"]["groupName"], logStreamName=build["logs"]["streamName"], startFromHead=True
    )
    assert reason in logs["events"][-1]["message"]


def test_weights_end_with_a_true_checksum_list(seeded: Up) -> None:
    builder = Builder(seeded, "weights-one")
    builder.project(
        {"type": "NO_SOURCE", "buildspec": "version: 0.2"},
        WEIGHTS_REPOSITORY="hexgrad/Kokoro-82M",
        WEIGHTS_REVISION="abc",
        WEIGHTS_FILES=json.dumps(["config.json", "voices/*.pt"]),
        DESTINATION="s3://weights-one/models/k/abc/",
    )
    assert builder.build()["buildStatus"] == "SUCCEEDED"
    read = lambda key: builder.s3.get_object(Bucket="weights-one", Key=key)["Body"].read()  # noqa: E731
    sums = dict(reversed(line.split("  ")) for line in read("models/k/abc/SHA256SUMS").decode().splitlines())
    assert set(sums) == {"config.json", "voices/rehearsal.pt"}
    assert sums["config.json"] == hashlib.sha256(read("models/k/abc/config.json")).hexdigest()


def test_projects_keep_what_they_are_given(seeded: Up) -> None:
    codebuild = seeded.client("codebuild")
    name = Builder(seeded, "projects-one").image_project()
    [made] = codebuild.batch_get_projects(names=[name])["projects"]
    codebuild.update_project(name=name, description="changed", encryptionKey="arn:aws:kms:us-east-1:123456789012:key/k")
    [changed] = codebuild.batch_get_projects(names=[made["arn"]])["projects"]
    assert (changed["description"], changed["source"]) == ("changed", made["source"])
    assert changed["encryptionKey"].endswith("key/k")
    with pytest.raises(ClientError, match="ResourceAlreadyExistsException"):
        codebuild.create_project(
            **{key: made[key] for key in ("name", "source", "artifacts", "environment", "serviceRole")}
        )
    codebuild.delete_project(name=made["arn"])
    assert codebuild.batch_get_projects(names=[name])["projectsNotFound"] == [name]


def test_a_bucket_that_insists_on_tls_can_be_used_and_emptied(seeded: Up) -> None:
    s3 = seeded.client("s3")
    s3.create_bucket(Bucket="strict-bucket")
    s3.put_bucket_versioning(Bucket="strict-bucket", VersioningConfiguration={"Status": "Enabled"})
    statement = {
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": ["arn:aws:s3:::strict-bucket", "arn:aws:s3:::strict-bucket/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    s3.put_bucket_policy(Bucket="strict-bucket", Policy=json.dumps({"Version": "2012-10-17", "Statement": [statement]}))
    s3.put_object(Bucket="strict-bucket", Key="a", Body=b"1")
    s3.delete_object(Bucket="strict-bucket", Key="a")
    versions = s3.list_object_versions(Bucket="strict-bucket")
    doomed = [
        {"Key": each["Key"], "VersionId": each["VersionId"]}
        for each in (*versions["Versions"], *versions["DeleteMarkers"])
    ]
    s3.delete_objects(Bucket="strict-bucket", Delete={"Objects": doomed})
    s3.delete_bucket(Bucket="strict-bucket")
