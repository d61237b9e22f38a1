"""Which frames of a padded batch are real."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Valid:
    """The valid frames of a batch at one time resolution."""

    lengths: Tensor
    """[B] valid frames."""
    frames: int
    """T, padding included."""
    weights: Tensor
    """[B, 1, T]: 1/length on valid frames, 0 on padding; a product with it is a mean over time."""
    mask: Tensor | None
    """[B, T, 1]: 1 on valid frames, 0 on padding; None when nothing is padded."""

    @staticmethod
    def of(lengths: Tensor, frames: int, dtype: torch.dtype, padded: bool) -> Valid:
        if not padded:
            weights = torch.full((len(lengths), 1, frames), 1.0 / frames, dtype=dtype, device=lengths.device)
            return Valid(lengths, frames, weights, None)
        mask = (torch.arange(frames, device=lengths.device) < lengths[:, None]).to(dtype)
        return Valid(lengths, frames, (mask / lengths[:, None]).unsqueeze(1), mask.unsqueeze(-1))

    def zero_padding(self, x: Tensor) -> Tensor:
        """``x`` with zeros past each item's end; ``x`` itself when nothing is padded."""
        return x if self.mask is None else x * self.mask.to(x.dtype)

    def rescaled(self, factor: int, extra: int = 0) -> Valid:
        """The same frames at ``factor`` times the resolution, plus ``extra`` frames an item."""
        lengths, frames = self.lengths * factor + extra, self.frames * factor + extra
        return Valid.of(lengths, frames, self.weights.dtype, self.mask is not None)
