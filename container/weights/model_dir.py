"""The model directory: one layout for every source of weights.

kokoro-v1_0.pth      the checkpoint in the published layout: module name -> state dict
voices/<name>.pt     a voice each, tensor 510 x 1 x 256
SHA256SUMS           optional, in the format of sha256sum; every file it names is verified
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

CHECKPOINT = "kokoro-v1_0.pth"
CHECKSUMS = "SHA256SUMS"
INT8_MODEL = "kokoro-v1_0.int8.onnx"
READ_SIZE = 1 << 20


class WeightsError(Exception):
    """No usable weights; the message says what was tried and what to do."""


@dataclass(frozen=True, slots=True)
class ModelDir:
    """A complete model on disk."""

    path: Path
    source: str
    """Which source it came from: directory, hub or packages."""

    @property
    def checkpoint(self) -> Path:
        return self.path / CHECKPOINT

    @property
    def int8_model(self) -> Path | None:
        """The int8 ONNX export beside the checkpoint, where there is one."""
        path = self.path / INT8_MODEL
        return path if path.is_file() else None

    @property
    def voice_files(self) -> dict[str, Path]:
        return {path.stem: path for path in sorted((self.path / "voices").glob("*.pt"))}


def is_complete(path: Path) -> bool:
    return (path / CHECKPOINT).is_file() and any((path / "voices").glob("*.pt"))


def sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(READ_SIZE):
            digest.update(block)
    return digest.hexdigest()


def verify(path: Path) -> int:
    """Check every file that SHA256SUMS names; the number of files checked."""
    sums = path / CHECKSUMS
    if not sums.is_file():
        return 0
    entries = [line.split(maxsplit=1) for line in sums.read_text().splitlines() if line.strip()]
    wrong = [name for expected, name in entries if not _matches(path / name.lstrip("*"), expected)]
    if wrong:
        raise WeightsError(f"{path}: checksum mismatch or missing file: {', '.join(wrong)}; copy the model again")
    return len(entries)


def _matches(path: Path, expected: str) -> bool:
    return path.is_file() and sha256(path) == expected.lower()


def write_checksums(path: Path) -> None:
    files = sorted(file for file in path.rglob("*") if file.is_file() and file.name != CHECKSUMS)
    lines = [f"{sha256(file)}  {file.relative_to(path)}\n" for file in files]
    (path / CHECKSUMS).write_text("".join(lines))
