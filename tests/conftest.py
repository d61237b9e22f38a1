"""The order of the suite: files that take minutes first, so that no worker is left alone with one at the end."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

LONGEST_FIRST = ("terraform", "kokoro", "e2e")
"""Markers; every other file is quick."""


def pytest_configure() -> None:
    """Ctrl-C stops what is tested even where the suite itself runs in the background, which ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A file goes where its longest test goes; inside a file and between equals the order stays."""
    ranks: dict[Path, int] = {}
    for item in items:
        marks = [rank for rank, name in enumerate(LONGEST_FIRST) if item.get_closest_marker(name)]
        ranks[item.path] = min([ranks.get(item.path, len(LONGEST_FIRST)), *marks])
    items.sort(key=lambda item: ranks[item.path])
