"""From text features, pitch and energy to samples."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from container.engine.network.layers import AdaptiveNorm, Conv, PlainConv, ResidualBlock, TransposedConv
from container.engine.network.source import HarmonicSource, Spectrum
from container.engine.network.text import HIDDEN
from container.engine.network.valid import Valid

UPSAMPLING = ((512, 256, 20, 10), (256, 128, 12, 6))
"""Channels in, channels out, kernel, stride of the generator's two stages."""
KERNELS, DILATIONS = (3, 7, 11), (1, 3, 5)


class SnakeBlock(nn.Module):
    """Residual pairs of convolutions behind adaptive norms and the snake activation x + sin²(ax)/a."""

    def __init__(self, channels: int, kernel: int) -> None:
        super().__init__()
        self.convs1 = nn.ModuleList(Conv(channels, channels, kernel, dilation=dilation) for dilation in DILATIONS)
        self.convs2 = nn.ModuleList(Conv(channels, channels, kernel) for _ in DILATIONS)
        self.adain1 = nn.ModuleList(AdaptiveNorm(channels) for _ in DILATIONS)
        self.adain2 = nn.ModuleList(AdaptiveNorm(channels) for _ in DILATIONS)
        self.alpha1 = nn.ParameterList(torch.empty(1, channels, 1) for _ in DILATIONS)
        self.alpha2 = nn.ParameterList(torch.empty(1, channels, 1) for _ in DILATIONS)

    def forward(self, x: Tensor, style: Tensor, valid: Valid) -> Tensor:
        first = zip(self.convs1, self.adain1, self.alpha1, strict=True)
        second = zip(self.convs2, self.adain2, self.alpha2, strict=True)
        for (conv1, norm1, alpha1), (conv2, norm2, alpha2) in zip(first, second, strict=True):
            y = conv1(self._snake(x, norm1(x, style, valid), alpha1, valid)).to(x.dtype)
            y = conv2(self._snake(y, norm2(y, style, valid), alpha2, valid)).to(x.dtype)
            x = y.add_(x)
        return x

    @staticmethod
    def _snake(x: Tensor, affine: tuple[Tensor, Tensor], alpha: Tensor, valid: Valid) -> Tensor:
        scale, shift = affine
        alpha = alpha.transpose(1, 2)
        wave = torch.addcmul(shift * alpha, x, scale * alpha).sin_().square_()
        return valid.zero_padding(torch.addcmul(shift, x, scale).addcmul_(wave, 1 / alpha))


class Generator(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.m_source = HarmonicSource()
        self.spectrum = Spectrum(dtype)
        (_, coarse, *_), (_, fine, _, finer) = UPSAMPLING
        bins = 2 * Spectrum.BINS
        self.ups = nn.ModuleList(TransposedConv(*stage) for stage in UPSAMPLING)
        downsampling = PlainConv(bins, coarse, 2 * finer, stride=finer, padding=(finer + 1) // 2)
        self.noise_convs = nn.ModuleList([downsampling, PlainConv(bins, fine, 1)])
        self.noise_res = nn.ModuleList([SnakeBlock(coarse, 7), SnakeBlock(fine, 11)])
        self.resblocks = nn.ModuleList(
            SnakeBlock(channels, kernel) for channels in (coarse, fine) for kernel in KERNELS
        )
        self.conv_post = Conv(fine, bins, 7)

    def forward(self, x: Tensor, style: Tensor, pitch: Tensor, noise: Tensor, valid2: Valid) -> Tensor:
        coarse = valid2.rescaled(10)
        fine = coarse.rescaled(6, extra=1)
        harmonics = self.spectrum.analyse(self.m_source(pitch, noise), fine)
        for stage, valid in enumerate((coarse, fine)):
            x = self.ups[stage](F.leaky_relu(x, 0.1)).to(style.dtype)
            if stage == 1:
                x = torch.cat([x[:, 1:2], x], 1)
            source = self.noise_convs[stage](harmonics).to(style.dtype)
            x = self.noise_res[stage](source, style, valid).add_(x)
            first, *rest = self.resblocks[stage * len(KERNELS) : (stage + 1) * len(KERNELS)]
            total = first(x, style, valid)
            for block in rest:
                total.add_(block(x, style, valid))
            x = valid.zero_padding(total.div_(len(KERNELS)))
        spectrum = self.conv_post(F.leaky_relu(x, 0.01)).to(style.dtype)
        magnitude, phase = spectrum.chunk(2, -1)
        return self.spectrum.synthesise(torch.exp(magnitude), torch.sin(phase), fine)


class Decoder(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        wide, shortcut = 1024, 64
        self.encode = ResidualBlock(HIDDEN + 2, wide)
        joined = wide + 2 + shortcut
        blocks = [ResidualBlock(joined, wide) for _ in range(3)]
        self.decode = nn.ModuleList([*blocks, ResidualBlock(joined, HIDDEN, upsample=True)])
        self.F0_conv = Conv(1, 1, 3, stride=2)
        self.N_conv = Conv(1, 1, 3, stride=2)
        self.asr_res = nn.ModuleList([Conv(HIDDEN, shortcut, 1)])
        self.generator = Generator(dtype)

    def forward(
        self, text: Tensor, pitch: Tensor, energy: Tensor, style: Tensor, noise: Tensor, valid: Valid, valid2: Valid
    ) -> Tensor:
        """[B, 600 F] samples from features at the frame rate, pitch and energy at twice the frame rate."""
        curves = [valid.zero_padding(self.F0_conv(pitch)), valid.zero_padding(self.N_conv(energy))]
        joined = [self.asr_res[0](text).to(style.dtype), *(curve.to(style.dtype) for curve in curves)]
        x = self.encode(torch.cat([text, *joined[1:]], -1), style, valid, valid)
        for block in self.decode:
            out = valid if block.pool is None else valid2
            x = block(torch.cat([x, *joined], -1), style, valid, out)
        return self.generator(valid2.zero_padding(x), style, pitch, noise, valid2)
