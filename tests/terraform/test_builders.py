"""What CodeBuild runs: the weights script against a hub of our own, and both build specifications."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from container.weights.model_dir import verify

from .conftest import MODULE

SCRIPT = MODULE / "modules" / "model_cache" / "sync_weights.py"
TEMPLATE = MODULE / "modules" / "model_cache" / "buildspec.yml.tftpl"
IMAGE_SPEC = MODULE / "modules" / "registry" / "buildspec.yml"

MODEL = b"weights" * 1000
CONFIG = b'{"n_token": 178}'
VOICE = b"voice"
FILES = {"model.pth": MODEL, "config.json": CONFIG, "voices/a.pt": VOICE, "README.md": b"hello"}


def blob(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def entry(path: str, data: bytes) -> dict[str, Any]:
    """As the hub lists it: large files with their SHA-256, small ones with git's id."""
    found: dict[str, Any] = {"type": "file", "path": path, "oid": blob(data), "size": len(data)}
    if path.endswith((".pth", ".pt")):
        found["lfs"] = {"oid": hashlib.sha256(data).hexdigest()}
    return found


class Hub(http.server.BaseHTTPRequestHandler):
    """Two pages of listing and the files; ``served`` may differ from what is listed."""

    served: dict[str, bytes] = {}

    def do_GET(self) -> None:
        entries = [{"type": "directory", "path": "voices"}, *(entry(path, data) for path, data in FILES.items())]
        if self.path == "/api/models/owner/model/tree/c0ffee?recursive=true":
            self.answer(json.dumps(entries[:2]).encode(), link=f'<http://{self.headers["Host"]}/page2>; rel="next"')
        elif self.path == "/page2":
            self.answer(json.dumps(entries[2:]).encode())
        else:
            self.answer(self.served[self.path.removeprefix("/owner/model/resolve/c0ffee/")])

    def answer(self, body: bytes, link: str | None = None) -> None:
        self.send_response(200)
        if link:
            self.send_header("Link", link)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def hub() -> Iterator[str]:
    Hub.served = dict(FILES)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def sync(hub: str, tmp_path: Path) -> Run:
    def run(files: tuple[str, ...] = ("*.pth", "config.json", "voices/*.pt"), pinned: dict[str, str] | None = None):
        environment = {
            "PATH": os.environ["PATH"], "HF_ENDPOINT": hub, "WEIGHTS_REPOSITORY": "owner/model",
            "WEIGHTS_REVISION": "c0ffee", "WEIGHTS_FILES": json.dumps(files),
            "WEIGHTS_SHA256": json.dumps(pinned or {}),
        }  # fmt: skip
        command = [sys.executable, str(SCRIPT), str(tmp_path)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=30)

    return run


def test_chosen_files_arrive_verified(sync: Run, tmp_path: Path) -> None:
    result = sync()
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "model.pth").read_bytes() == MODEL
    assert (tmp_path / "voices/a.pt").read_bytes() == VOICE
    assert not (tmp_path / "README.md").exists()
    expected = sorted(f"{hashlib.sha256(FILES[path]).hexdigest()}  {path}\n" for path in FILES if path != "README.md")
    assert (tmp_path / "SHA256SUMS").read_text() == "".join(expected)


def test_the_container_accepts_what_was_written(sync: Run, tmp_path: Path) -> None:
    assert sync().returncode == 0
    assert verify(tmp_path) == 3


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"model.pth": b"other"}, "model.pth: sha256"),
        ({"config.json": b"{}"}, "config.json: git blob"),
    ],
)
def test_a_file_that_differs_from_its_listing_is_refused(
    sync: Run, tmp_path: Path, broken: dict[str, bytes], said: str
) -> None:
    Hub.served = FILES | broken
    result = sync()
    assert result.returncode == 1
    assert said in result.stderr
    assert "the repository says" in result.stderr
    assert not (tmp_path / "SHA256SUMS").exists(), "an incomplete copy must not look complete"


@pytest.mark.parametrize(
    ("files", "pinned", "said"),
    [
        (("*.pth",), {"model.pth": "0" * 64}, "weights_sha256 says " + "0" * 64),
        (("*.pth", "nothing/*"), {}, "no file matches nothing/*"),
        (("*.pth",), {"config.json": "0" * 64}, "weights_sha256 names config.json, which weights_files leaves out"),
    ],
)
def test_what_was_asked_for_and_is_not_there_is_refused(
    sync: Run, tmp_path: Path, files: tuple[str, ...], pinned: dict[str, str], said: str
) -> None:
    result = sync(files, pinned)
    assert result.returncode == 1
    assert said in result.stderr
    assert not (tmp_path / "SHA256SUMS").exists()


def rendered() -> dict[str, Any]:
    """As templatefile renders it: indent(8, script), and $${ is a literal ${."""
    indented = SCRIPT.read_text().replace("\n", "\n" + " " * 8)
    return yaml.safe_load(TEMPLATE.read_text().replace("${indent(8, script)}", indented).replace("$${", "${"))


def test_the_build_carries_the_script_unchanged(tmp_path: Path) -> None:
    write = rendered()["phases"]["build"]["commands"][0]
    subprocess.run(["bash", "-c", write], cwd=tmp_path, check=True)
    assert (tmp_path / "sync_weights.py").read_text() == SCRIPT.read_text() + "\n"


def test_checksums_are_uploaded_last() -> None:
    copy, finish = rendered()["phases"]["build"]["commands"][2:4]
    assert "--exclude SHA256SUMS" in copy
    assert finish.endswith('"${DESTINATION}SHA256SUMS"')


def test_the_image_is_one_sagemaker_takes() -> None:
    spec = yaml.safe_load(IMAGE_SPEC.read_text())
    build = " ".join(spec["phases"]["build"]["commands"])
    assert "--platform linux/amd64 --provenance=false --sbom=false" in build
    assert "oci-mediatypes=false" in build
    checks = "\n".join(spec["phases"]["post_build"]["commands"])
    assert checks.index("imageManifestMediaType") < checks.index("vnd.docker.distribution.manifest.v2+json")
    assert spec["env"]["exported-variables"] == ["IMAGE_DIGEST"]


def test_commands_of_the_image_build_are_valid_shell() -> None:
    spec = yaml.safe_load(IMAGE_SPEC.read_text())
    for phase in spec["phases"].values():
        for command in phase["commands"]:
            subprocess.run(["bash", "-n", "-c", command], check=True)
