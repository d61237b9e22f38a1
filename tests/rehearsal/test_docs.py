"""docs/rehearsal.md names what there is."""

from __future__ import annotations

import re
from pathlib import Path

from rehearsal.faults import KINDS
from rehearsal.settings import STAGE_NAMES

TEXT = (Path(__file__).parents[2] / "docs" / "rehearsal.md").read_text()


def section(title: str) -> str:
    return TEXT.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_every_fault_and_parameter_is_described() -> None:
    rows = dict(re.findall(r"^\| ([a-z-]+) \| .* \| (.*) ?\|$", section("Faults"), re.MULTILINE))
    rows.pop("fault", None)
    assert set(rows) == set(KINDS)
    for name, kind in KINDS.items():
        assert {word.partition("=")[0] for word in rows[name].split()} == set(kind.parameters), name


def test_every_stage_is_described() -> None:
    assert re.findall(r"^\| ([a-z_]+) \|", section("Provisioning, scripted"), re.MULTILINE)[1:] == list(STAGE_NAMES)
