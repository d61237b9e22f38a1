"""The map in docs/architecture.md says who may import whom."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.helps import ROOT

OURS = {"planner", "loadtest", "scripts", "container", "rehearsal", "bench", "tests", "examples"}
ALLOWED = {
    "planner": (),
    "loadtest": ("planner.artifacts", "planner.errors", "planner.prices", "planner.simulate", "scripts.aws"),
    "scripts": ("planner", "loadtest"),
    "container": (),
    "rehearsal": (),
}


def imports(folder: str) -> dict[str, str]:
    """Modules of ours that a folder's files import, with one file each."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                if name.partition(".")[0] in OURS - {folder}:
                    found[name] = str(path.relative_to(ROOT))
    return found


@pytest.mark.parametrize("folder", ALLOWED)
def test_folders_keep_to_themselves(folder: str) -> None:
    outside = {
        name: path
        for name, path in imports(folder).items()
        if not any(name == module or name.startswith(f"{module}.") for module in ALLOWED[folder])
    }
    assert outside == {}


def test_no_code_asks_whether_it_is_rehearsed() -> None:
    """AWS_ENDPOINT_URL is read for provenance, messages and names, never compared with an address."""
    local = re.compile(r"127\.0\.0\.1|localhost")
    asking = [
        str(path.relative_to(ROOT))
        for folder in ("planner", "loadtest", "scripts")
        for path in (ROOT / folder).rglob("*.py")
        if local.search(path.read_text(encoding="utf-8"))
    ]
    assert asking == []


def test_the_architecture_page_maps_every_folder() -> None:
    rows = re.findall(r"^\| `(\w+)/` \|", Path(ROOT / "docs/architecture.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(rows) == (OURS | {"terraform"})
