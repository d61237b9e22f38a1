"""A batch of items through the network: padding in, trimming out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from container.engine.base import Samples
from container.engine.network import Acoustics, Kokoro
from container.engine.network.kokoro import SAMPLES_PER_FRAME

Noise = Callable[[int, int], Tensor]
"""(index in the batch, samples) -> [samples] standard normal; replaces the random noise."""


@dataclass(frozen=True, slots=True)
class Item:
    """One segment as the network takes it."""

    tokens: list[int]
    style: Tensor
    """[256]"""
    speed: float = 1.0


@dataclass(frozen=True, slots=True)
class Spoken:
    """One segment's audio and how it was timed."""

    samples: Samples
    durations: list[int]
    """Frames of 25 ms a token."""


class Synthesiser:
    """Runs batches on one device. Not thread-safe on CUDA; on the CPU it keeps no state."""

    def __init__(self, network: Kokoro, device: torch.device) -> None:
        self.network = network.to(device)
        self.device = device
        self.dtype = network.bert_encoder.weight.dtype

    @torch.inference_mode()
    def __call__(self, items: Sequence[Item], noise: Noise | None = None) -> list[Spoken]:
        lengths = [len(item.tokens) for item in items]
        tokens = torch.zeros(len(items), max(lengths), dtype=torch.long)
        for row, item in zip(tokens, items, strict=True):
            row[: len(item.tokens)] = torch.tensor(item.tokens)
        voices = torch.stack([item.style for item in items]).to(self.device, self.dtype)
        speeds = torch.tensor([item.speed for item in items], dtype=self.dtype, device=self.device)
        acoustics = self._read(tokens.to(self.device), lengths, voices, speeds)
        durations = acoustics.durations.tolist()
        frames = [sum(row) for row in durations]
        audio = self._speak(acoustics, frames, voices, noise).float().cpu().numpy()
        return [
            Spoken(row[: SAMPLES_PER_FRAME * count].copy(), timing[:length])
            for row, count, timing, length in zip(audio, frames, durations, lengths, strict=True)
        ]

    def _read(self, tokens: Tensor, lengths: list[int], voices: Tensor, speeds: Tensor) -> Acoustics:
        ends = torch.tensor(lengths, device=self.device)
        return self.network.read(tokens, ends, voices, speeds, padded=len(set(lengths)) > 1)

    def _speak(self, acoustics: Acoustics, frames: list[int], voices: Tensor, noise: Noise | None) -> Tensor:
        longest = max(frames)
        excitation = self._noise(frames, longest, noise)
        ends = torch.tensor(frames, device=self.device)
        return self.network.speak(acoustics, ends, longest, voices, excitation, padded=len(set(frames)) > 1)

    def _noise(self, frames: list[int], longest: int, noise: Noise | None) -> Tensor:
        shape = (len(frames), SAMPLES_PER_FRAME * longest)
        if noise is None:
            return torch.randn(shape, dtype=self.dtype, device=self.device)
        excitation = torch.zeros(shape, dtype=self.dtype)
        for index, count in enumerate(frames):
            samples = SAMPLES_PER_FRAME * count
            excitation[index, :samples] = noise(index, samples)
        return excitation.to(self.device)


def seeded_noise(seed: int) -> Noise:
    """The same noise for the same place in a batch, whatever else is in it."""

    def noise(index: int, samples: int) -> Tensor:
        return torch.randn(samples, generator=torch.Generator().manual_seed(seed + index))

    return noise
