"""HCL files as plain blocks, quotes off."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hcl2


def load(file: Path) -> dict[str, Any]:
    with file.open(encoding="utf-8") as stream:
        return clean(hcl2.load(stream))


def clean(value: Any) -> Any:
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in value.items() if not str(key).startswith("__")}
    if isinstance(value, list):
        return [clean(item) for item in value]
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        return value[1:-1]
    return value


def labelled(file: Path, kind: str) -> dict[str, Any]:
    """``variable`` and ``output`` blocks by name."""
    return {name: body for block in load(file).get(kind, []) for name, body in block.items()}


def typed(files: list[Path], kind: str) -> Iterator[tuple[str, str, Any]]:
    """(type, name, body) of every ``resource`` or ``data`` block."""
    for file in files:
        for block in load(file).get(kind, []):
            for type_, named in block.items():
                for name, body in named.items():
                    yield type_, name, body
