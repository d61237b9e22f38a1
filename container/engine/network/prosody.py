"""Durations, pitch and energy."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from container.engine.network.layers import STYLE, BiLstm, PlainConv, ResidualBlock
from container.engine.network.text import HIDDEN, LONGEST_DURATION, DurationEncoder
from container.engine.network.valid import Valid


class DurationProjection(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear_layer = nn.Linear(HIDDEN, LONGEST_DURATION)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.linear_layer(x)).sum(-1)


class ProsodyPredictor(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.text_encoder = DurationEncoder()
        self.lstm = BiLstm(HIDDEN + STYLE, HIDDEN)
        self.duration_proj = DurationProjection()
        self.shared = BiLstm(HIDDEN + STYLE, HIDDEN)
        self.F0 = self._curve()
        self.N = self._curve()
        self.F0_proj = PlainConv(HIDDEN // 2, 1, 1)
        self.N_proj = PlainConv(HIDDEN // 2, 1, 1)

    @staticmethod
    def _curve() -> nn.ModuleList:
        half = HIDDEN // 2
        blocks = (ResidualBlock(HIDDEN, HIDDEN), ResidualBlock(HIDDEN, half, upsample=True), ResidualBlock(half, half))
        return nn.ModuleList(blocks)

    def durations(self, features: Tensor, speeds: Tensor, valid: Valid) -> Tensor:
        """[B, T] whole frames a token; 0 on padding."""
        frames = self.duration_proj(self.lstm(features, valid)) / speeds[:, None]
        frames = torch.round(frames).clamp(min=1)
        return (frames if valid.mask is None else frames * valid.mask.squeeze(-1)).long()

    def curves(self, features: Tensor, style: Tensor, valid: Valid, valid2: Valid) -> tuple[Tensor, Tensor]:
        """Pitch (Hz) and energy at twice the frame rate, each [B, 2F, 1], 0 on padding."""
        shared = self.shared(features, valid)
        return (
            self._run(self.F0, self.F0_proj, shared, style, valid, valid2),
            self._run(self.N, self.N_proj, shared, style, valid, valid2),
        )

    @staticmethod
    def _run(
        blocks: nn.ModuleList, projection: nn.Module, x: Tensor, style: Tensor, valid: Valid, valid2: Valid
    ) -> Tensor:
        level, doubling, fine = blocks
        x = fine(doubling(level(x, style, valid, valid), style, valid, valid2), style, valid2, valid2)
        return valid2.zero_padding(projection(x))
