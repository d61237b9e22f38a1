"""A copy of terraform/ that is initialised once; nothing is ever written into the tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from scripts.deployment import mirror

REPOSITORY = Path(__file__).parents[2]
MODULE = REPOSITORY / "terraform"
LOCAL = shutil.ignore_patterns(
    ".terraform", ".terraform.lock.hcl", "*.tfstate*", "*.auto.tfvars*", "terraform.tfstate.d"
)


@dataclass(frozen=True)
class Workdir:
    """One copy of the root module with its own state."""

    path: Path
    environment: dict[str, str]

    def __call__(self, *arguments: str, timeout_s: float = 240) -> subprocess.CompletedProcess[str]:
        """Run terraform."""
        return subprocess.run(
            ["terraform", f"-chdir={self.path}", *arguments],
            env=self.environment, capture_output=True,
            text=True, check=False, timeout=timeout_s,
        )  # fmt: skip


@contextmanager
def one_provider(workdir: Workdir) -> Iterator[Workdir]:
    """Every command talks to one provider process; Terraform would start its own for each, and for each run of a test.

    The provider's debugging mode prints what TF_REATTACH_PROVIDERS has to hold.
    """
    (binary,) = workdir.path.glob(".terraform/providers/*/*/aws/*/*/terraform-provider-aws*")
    process = subprocess.Popen(
        [binary, "-debug"], env=workdir.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        address = next((line for line in process.stdout if "TF_REATTACH_PROVIDERS='" in line), "")
        assert address, "the provider has ended"
        yield replace(workdir, environment=workdir.environment | {"TF_REATTACH_PROVIDERS": address.split("'")[1]})
    finally:
        process.kill()
        process.communicate()


def said(result: subprocess.CompletedProcess[str]) -> str:
    """Both streams without frames, wrapped lines joined."""
    return " ".join(re.sub("[│╷╵]", "", result.stdout + result.stderr).split())


@pytest.fixture(scope="session")
def make_workdir(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Workdir]:
    """Copies and initialises; skips with the reason where that cannot be."""
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not installed")

    def make(name: str, **environment: str) -> Workdir:
        path = tmp_path_factory.mktemp(name) / "terraform"
        shutil.copytree(MODULE, path, ignore=LOCAL)
        workdir = Workdir(path, {**os.environ, "CHECKPOINT_DISABLE": "1", "TF_IN_AUTOMATION": "1", **environment})
        found = mirror.find(os.environ, Path.home(), path)
        offline = [] if found is None else [f"-plugin-dir={found}"]
        result = workdir("init", "-input=false", "-no-color", *offline)
        if result.returncode:
            pytest.skip(f"terraform init: no AWS provider here: {said(result)[-300:]}")
        return workdir

    return make
