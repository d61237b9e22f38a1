"""The few padded shapes a GPU is warmed for; anything larger runs as it is."""

from __future__ import annotations

from dataclasses import dataclass

MOST_FRAMES_IN_A_GRAPH = 8_192
"""Batch times frames of the largest warmed shape: about 4 GiB of activations in fp32."""


@dataclass(frozen=True, slots=True)
class Shapes:
    """Sizes to round up to, ascending."""

    batches: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    tokens: tuple[int, ...] = (32, 64, 128, 256, 512)
    frames: tuple[int, ...] = (64, 128, 192, 256, 512, 1_024)

    def spoken(self) -> list[tuple[int, int]]:
        """(batch, frames) to capture before serving, small first."""
        return [
            (batch, frames)
            for batch in self.batches
            for frames in self.frames
            if batch * frames <= MOST_FRAMES_IN_A_GRAPH
        ]

    def tokens_for(self, frames: int) -> int:
        """A token takes a frame at least, so this many hold any text of ``frames``."""
        return round_up(frames, self.tokens)


def round_up(size: int, allowed: tuple[int, ...]) -> int:
    """The smallest allowed size that holds ``size``; ``size`` itself where none does."""
    return next((limit for limit in allowed if limit >= size), size)


def padding_waste(lengths: list[int], batch: int, frames: int) -> float:
    """Share of the padded area that no item uses."""
    return 1 - sum(lengths) / (batch * frames)
