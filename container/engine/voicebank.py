"""Voices and their mixes as style vectors."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from container.engine.base import EngineError

PREFERRED = ("af_heart", "jf_alpha")
ROWS, STYLES = 510, 256


class VoiceBank:
    """Voices in memory; mixes are computed for the row that is needed. Thread-safe."""

    def __init__(self, files: dict[str, Path], default: str | None) -> None:
        self._voices = {name: _read(path) for name, path in files.items()}
        first = next((name for name in (default, *PREFERRED) if name in self._voices), None)
        others = [name for name in self._voices if name != first]
        self.names: tuple[str, ...] = tuple([first, *others] if first else others)
        """The default voice comes first."""

    def style(self, voice: str, phonemes: int) -> Tensor:
        """[256] style of ``voice`` (a name or a mix) for an utterance of ``phonemes``."""
        row = min(max(phonemes, 1), ROWS) - 1
        parts = [_part(part) for part in voice.split("+")]
        unknown = [name for name, _ in parts if name not in self._voices]
        if unknown:
            raise EngineError(f"unknown voice {', '.join(unknown)}; there are {', '.join(self.names)}")
        return torch.stack([self._voices[name][row] * weight for name, weight in parts]).sum(0)


def _part(part: str) -> tuple[str, float]:
    name, _, weight = part.partition("*")
    return name, float(weight or 1.0)


def _read(path: Path) -> Tensor:
    table: Tensor = torch.load(path, map_location="cpu", weights_only=True)
    return table.float().reshape(-1, STYLES)[:ROWS]
