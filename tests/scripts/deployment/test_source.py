"""The source archive."""

from __future__ import annotations

import io
import zipfile

import pytest

from planner.errors import UsageError
from scripts.deployment import source


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "container"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "Dockerfile").write_text("FROM scratch\n")
    (folder / "server.py").write_text("pass\n")
    (folder / "__pycache__" / "server.pyc").write_bytes(b"x")
    return tmp_path


def test_only_sources_are_in_it(root):
    names = zipfile.ZipFile(io.BytesIO(source.archive(root))).namelist()
    assert names == ["container/Dockerfile", "container/server.py"]


def test_the_same_files_give_the_same_tag(root):
    before = source.tag(source.archive(root))
    (root / "container/server.py").touch()
    assert source.tag(source.archive(root)) == before
    (root / "container/server.py").write_text("other\n")
    assert source.tag(source.archive(root)) != before


def test_without_a_dockerfile_it_says_so(tmp_path):
    with pytest.raises(UsageError, match="Dockerfile"):
        source.archive(tmp_path)
