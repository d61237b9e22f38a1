"""Every command, flag, path, link and sample the documents show exists."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from planner.prices import PRICE_DATE, PRICE_REGION, usd_per_h
from tests.docs.helps import ROOT, WITHOUT_FLAGS, command_of, flags

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("README.md")),
    *sorted((ROOT / "terraform/examples").rglob("README.md")),
]
LOCUSTS = {"--headless", "--processes", "--master", "--worker"}
FOREIGN = {"--extra-index-url"}
"""Flags of programs that are not ours."""
LABELS = {page: str(page.relative_to(ROOT)) for page in PAGES}


def blocks(text: str) -> list[str]:
    """Code blocks; diagrams are none."""
    found = re.findall(r"^```([a-z]*)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return [block for language, block in found if language != "mermaid"]


def code(text: str) -> Iterator[str]:
    """Lines of code blocks, continuations joined, and spans in the prose."""
    for block in blocks(text):
        for line in block.replace("\\\n", " ").splitlines():
            yield line.removeprefix("$ ").partition("  #")[0].strip()
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))


def words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def targets(text: str) -> set[str]:
    found = set()
    for line in code(text):
        for piece in re.split(r"&&|\|\||;", line):
            said = words(piece)
            if said[:1] == ["make"]:
                found |= {word for word in said[1:] if re.fullmatch(r"[a-z][a-z-]*", word)}
    return found


def module_calls(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each ``python -m module --flag ...``: the command and its flags."""
    for line in code(text):
        said = words(line)
        for at, word in enumerate(said[:-1]):
            if (
                word == "-m"
                and at
                and Path(said[at - 1]).name.startswith("python")
                and said[at + 1] not in ("pip", "venv")
            ):
                used = [re.split("[=\\])]", flag)[0] for flag in said[at + 2 :] if flag.startswith("--")]
                yield command_of([rest.strip('")') for rest in said[at + 1 : at + 3]]), used


def makefile() -> str:
    return (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=LABELS.get)
def test_make_targets_exist(page: Path) -> None:
    known = set(re.findall(r"^([a-z-]+):", makefile(), re.MULTILINE))
    assert targets(page.read_text(encoding="utf-8")) - known == set()


@pytest.mark.parametrize("page", PAGES, ids=LABELS.get)
def test_commands_take_the_flags_they_are_shown_with(page: Path) -> None:
    for command, used in module_calls(page.read_text(encoding="utf-8")):
        if command.split()[0] in WITHOUT_FLAGS or command in ("planner", "rehearsal"):
            continue
        assert command in flags(), command
        assert set(used) - flags()[command] - LOCUSTS == set(), command


@pytest.mark.parametrize("page", PAGES, ids=LABELS.get)
def test_flags_named_in_the_prose_are_somebodys(page: Path) -> None:
    known = set().union(*flags().values()) | LOCUSTS | FOREIGN
    named = {flag for span in code(page.read_text(encoding="utf-8")) for flag in re.findall(r"^--[a-z][a-z-]+", span)}
    assert named - known == set()


def test_the_makefile_passes_flags_that_exist() -> None:
    variables = dict(re.findall(r"^([A-Z_]+) *\??:?= *(.*)$", makefile(), re.MULTILINE))
    seen = 0
    for line in re.findall(r"^\t.*\$\(PY\) -m (.*)$", makefile(), re.MULTILINE):
        for _ in range(3):
            line = re.sub(r"\$\(([A-Z_]+)\)", lambda match: variables.get(match[1], ""), line)
        command = command_of(line.split())
        if command in flags():
            seen += 1
            assert set(re.findall(r"(?<=\s)--[a-z][a-z-]*", line)) - flags()[command] == set(), command
    assert seen >= 15


def test_help_lists_every_documented_target() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    listed = set(re.findall(r"^ +([a-z-]+) ", shown, re.MULTILINE))
    assert set().union(*(targets(page.read_text(encoding="utf-8")) for page in PAGES)) - listed == set()


@pytest.mark.parametrize("page", PAGES, ids=LABELS.get)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        goal = (page.parent / path) if path else page
        assert goal.exists(), link
        if anchor:
            headings = re.findall(r"^#+ (.+)$", goal.read_text(encoding="utf-8"), re.MULTILINE)
            assert anchor in {slug(heading) for heading in headings}, link


@pytest.mark.parametrize("page", PAGES, ids=LABELS.get)
def test_files_named_exist(page: Path) -> None:
    folders = "planner|loadtest|scripts|container|rehearsal|terraform|examples|bench|docs|tests"
    for span in code(page.read_text(encoding="utf-8")):
        for path in re.findall(rf"(?<![\w/.-])((?:\./)?(?:{folders})/[\w./-]+)", span):
            generated = path.endswith((".auto.tfvars", ".auto.tfvars.json"))
            assert generated or any((base / path).exists() for base in (ROOT, ROOT / "terraform", page.parent)), path


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 200


def test_the_readmes_sample_is_what_the_article_prints(tmp_path: Path) -> None:
    shown = blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    [sample] = [block for block in shown if block.startswith("kokoro-82m on ml.g5.xlarge")]
    [recipe] = re.findall(r"^plan-article:.*\n\t\$\(PY\) -m (planner plan .*?) --out", makefile(), re.MULTILINE)
    printed = subprocess.run(
        [sys.executable, "-m", *recipe.split(), "--out", str(tmp_path)],
        cwd=ROOT,
        env=os.environ | {"COLUMNS": "100"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    plain = re.sub(r"\x1b\[[0-9;]*m", "", printed)
    assert plain.startswith(sample)


def test_the_readme_and_terraform_ask_for_the_same_version() -> None:
    [floor] = re.findall(r'required_version = ">= (\d+\.\d+)', (ROOT / "terraform/versions.tf").read_text())
    assert f"Terraform {floor} or newer" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_ladder_costs_what_its_dry_run_says() -> None:
    dry = [sys.executable, "-m", "loadtest.ladder", "--endpoint", "e", "--model", "m", "--dry-run"]
    said = subprocess.run(dry, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    [(minutes, seconds)] = re.findall(r"wall clock about (\d+):(\d+)", said)
    [usd] = re.findall(r"about (\$[\d.]+) for one", said)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"| qmax | {round(int(minutes) + int(seconds) / 60)} min | {usd} |" in text
    assert f"at ${usd_per_h('ml.g5.xlarge')} an instance hour ({PRICE_REGION}, {PRICE_DATE})" in text
