"""The archive an image is built from: always the same bytes for the same files, so that its hash names the image."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path

from planner.errors import UsageError

FOLDER = "container"
_SKIPPED = frozenset({"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"})
_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)


def archive(root: Path) -> bytes:
    """A zip of the container's folder."""
    folder = root / FOLDER
    if not (folder / "Dockerfile").is_file():
        raise UsageError(f"{folder}/Dockerfile does not exist", "run from the repository's root")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for path in sorted(folder.rglob("*")):
            relative = path.relative_to(root)
            if path.is_file() and not _SKIPPED.intersection(relative.parts):
                entry = zipfile.ZipInfo(relative.as_posix(), _ZIP_EPOCH)
                entry.external_attr = 0o644 << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                made.writestr(entry, path.read_bytes())
    return buffer.getvalue()


def tag(data: bytes) -> str:
    """``src-`` and 16 hex of the archive's hash."""
    return f"src-{hashlib.sha256(data).hexdigest()[:16]}"
