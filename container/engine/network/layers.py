"""Convolutions, LSTMs and normalisations over [batch, time, channel]."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from container.engine.network.valid import Valid

STYLE = 128


class Conv(nn.Module):
    """1-D convolution. Computes in the type of its weights, whatever the type of its input."""

    weight_normed = True

    def __init__(
        self,
        channels_in: int,
        channels_out: int,
        kernel: int,
        *,
        dilation: int = 1,
        stride: int = 1,
        padding: int | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels_out, channels_in, kernel))
        self.bias = nn.Parameter(torch.empty(channels_out)) if bias else None
        self.stride, self.dilation = (1, stride), (1, dilation)
        self.padding = (0, (kernel - 1) * dilation // 2 if padding is None else padding)

    def forward(self, x: Tensor) -> Tensor:
        x = x.to(self.weight.dtype).transpose(1, 2).unsqueeze(2)
        y = F.conv2d(x, as_image(self.weight), self.bias, self.stride, self.padding, self.dilation)
        return y.squeeze(2).transpose(1, 2)


class PlainConv(Conv):
    """A convolution that the checkpoint keeps without weight norm."""

    weight_normed = False


class TransposedConv(nn.Module):
    """1-D transposed convolution that multiplies the number of frames by ``stride``."""

    weight_normed = True

    def __init__(self, channels_in: int, channels_out: int, kernel: int, stride: int, *, groups: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels_in, channels_out // groups, kernel))
        self.bias = nn.Parameter(torch.empty(channels_out))
        self.stride, self.groups = (1, stride), groups
        self.padding, self.output_padding = (0, (kernel - stride + 1) // 2), (0, (kernel - stride) % 2)

    def forward(self, x: Tensor) -> Tensor:
        x = x.to(self.weight.dtype).transpose(1, 2).unsqueeze(2)
        y = F.conv_transpose2d(
            x, as_image(self.weight), self.bias, self.stride, self.padding, self.output_padding, self.groups
        )
        return y.squeeze(2).transpose(1, 2)


def as_image(weight: Tensor) -> Tensor:
    """A 1-D kernel as a 2-D kernel of height 1."""
    return weight.unsqueeze(2) if weight.dim() == 3 else weight


class BiLstm(nn.Module):
    """Bidirectional LSTM over items of different length, without packing.

    Right padding cannot reach the forward direction. The backward direction is a forward LSTM over each item
    reversed in place, so padding stays on the right there too.
    """

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.forwards = nn.LSTM(channels_in, channels_out // 2, batch_first=True)
        self.backwards = nn.LSTM(channels_in, channels_out // 2, batch_first=True)

    def forward(self, x: Tensor, valid: Valid) -> Tensor:
        ahead, _ = self.forwards(x)
        if valid.mask is None:
            back, _ = self.backwards(x.flip(1))
            return torch.cat([ahead, back.flip(1)], -1)
        time = torch.arange(valid.frames, device=x.device)
        ends = valid.lengths[:, None]
        reversal = torch.where(time < ends, ends - 1 - time, time).unsqueeze(-1)
        back, _ = self.backwards(x.gather(1, reversal.expand_as(x)))
        return torch.cat([ahead, back.gather(1, reversal.expand_as(back))], -1)


class AdaptiveNorm(nn.Module):
    """Instance norm over valid frames whose gain and bias come from the voice's style, as one affine map."""

    eps = 1e-5

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.fc = nn.Linear(STYLE, channels * 2)

    def forward(self, x: Tensor, style: Tensor, valid: Valid) -> tuple[Tensor, Tensor]:
        """(scale, shift), each [B, 1, C], such that ``shift + x * scale`` is the normalised ``x``."""
        gain, bias = self.fc(style).unsqueeze(1).chunk(2, -1)
        mean = torch.bmm(valid.weights, x)
        variance = torch.bmm(valid.weights, (x - mean).square_())
        scale = (1 + gain) * torch.rsqrt(variance + self.eps)
        return scale, bias - mean * scale


class ResidualBlock(nn.Module):
    """Two convolutions behind adaptive norms; optionally doubles the frames."""

    def __init__(self, channels_in: int, channels_out: int, *, upsample: bool = False) -> None:
        super().__init__()
        self.conv1 = Conv(channels_in, channels_out, 3)
        self.conv2 = Conv(channels_out, channels_out, 3)
        self.norm1 = AdaptiveNorm(channels_in)
        self.norm2 = AdaptiveNorm(channels_out)
        self.conv1x1 = Conv(channels_in, channels_out, 1, bias=False) if channels_in != channels_out else None
        self.pool = TransposedConv(channels_in, channels_in, 3, 2, groups=channels_in) if upsample else None

    def forward(self, x: Tensor, style: Tensor, valid: Valid, valid_out: Valid) -> Tensor:
        y = self._activate(x, self.norm1, style, valid)
        if self.pool is not None:
            y = valid_out.zero_padding(self.pool(y))
            x = x.repeat_interleave(2, dim=1)
        y = self.conv1(y).to(x.dtype)
        y = self.conv2(self._activate(y, self.norm2, style, valid_out))
        if self.conv1x1 is not None:
            x = self.conv1x1(x)
        return (x + y).to(style.dtype) * 0.5**0.5

    @staticmethod
    def _activate(x: Tensor, norm: AdaptiveNorm, style: Tensor, valid: Valid) -> Tensor:
        scale, shift = norm(x, style, valid)
        return valid.zero_padding(F.leaky_relu(torch.addcmul(shift, x, scale), 0.2))
