"""Starts rehearsals as a user would, in state directories of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

STUB = f"{sys.executable} {Path(__file__).with_name('stub.py')}"
QUICK = ("--stages", "provisioning=0.8,container_start=0,health_check=0,routing=0", "--time-scale", "4")
ENDPOINT, VARIANT = "speech", "primary"


@dataclass(frozen=True)
class Command:
    """One finished ``python -m rehearsal ...``."""

    code: int
    out: str
    err: str


class Up:
    """A rehearsal and how to talk to it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.url = ""
        self._clients: dict[str, Any] = {}

    def run(self, *arguments: str) -> Command:
        environment = {**os.environ, "HEADROOM_REHEARSAL_DIR": str(self.directory), "AWS_REGION": "us-east-1"}
        done = subprocess.run(
            [sys.executable, "-m", "rehearsal", *arguments],
            capture_output=True,
            text=True,
            env=environment,
            timeout=100,
            check=False,
        )
        return Command(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str) -> Up:
        done = self.run("up", "--command", STUB, "--endpoint", ENDPOINT, *QUICK, *arguments)
        assert done.code == 0, done.err
        self.url = done.out.strip()
        return self

    def client(self, service: str) -> Any:
        """A client of the test's own would cost half a second; this one is shared."""
        if service not in self._clients:
            self._clients[service] = self.new_client(service)
        return self._clients[service]

    def new_client(self, service: str) -> Any:
        return boto3.client(
            service,
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="x",
            aws_secret_access_key="x",
            config=Config(retries={"total_max_attempts": 1}, read_timeout=30),
        )

    def truth(self, path: str) -> Any:
        return self._admin("GET", path)

    def fault(self, name: str, **parameters: Any) -> None:
        self._admin("PUT", f"faults/{name}", json.dumps(parameters).encode())

    def clear_faults(self) -> None:
        self._admin("DELETE", "faults")

    def _admin(self, method: str, path: str, body: bytes | None = None) -> Any:
        asked = urllib.request.Request(f"{self.url}/_rehearsal/{path}", method=method, data=body)
        with urllib.request.urlopen(asked, timeout=10) as answer:
            return json.load(answer)

    def instances(self, endpoint: str = ENDPOINT) -> list[dict[str, Any]]:
        found = [each for each in self.truth("state")["endpoints"] if each["name"] == endpoint]
        return [instance for each in found for variant in each["variants"] for instance in variant["instances"]]

    def in_service(self, endpoint: str = ENDPOINT) -> dict[str, Any]:
        sagemaker = self.client("sagemaker")
        return until(
            lambda: _when(
                sagemaker.describe_endpoint(EndpointName=endpoint), lambda found: found["EndpointStatus"] == "InService"
            )
        )


def until(look: Callable[[], Any], timeout_s: float = 20.0, every_s: float = 0.05) -> Any:
    """The first truthy value of ``look``."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if found := look():
            return found
        time.sleep(every_s)
    raise AssertionError(f"did not happen within {timeout_s} s")


def _when(value: Any, condition: Callable[[Any], bool]) -> Any:
    return value if condition(value) else None


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Up]:
    """A rehearsal of the test's own, not started yet."""
    up = Up(tmp_path / "state")
    yield up
    up.run("down")


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """A rehearsal with a ready endpoint, shared; tests leave it as they found it."""
    up = Up(tmp_path_factory.mktemp("rehearsal")).start("--seed", "--env", "STUB_NOTE=seeded")
    yield up
    up.run("down")


@pytest.fixture
def faults(seeded: Up) -> Iterator[Callable[..., None]]:
    """Switches faults of the shared rehearsal on; all are off again afterwards."""

    yield seeded.fault
    seeded.clear_faults()
