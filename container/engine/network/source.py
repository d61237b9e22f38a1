"""The harmonic source: sines at the pitch and its overtones, plus noise where speech is unvoiced."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from container.engine.network.valid import Valid

SAMPLES_PER_HALF_FRAME = 300
RATE_HZ = 24_000
HARMONICS = 9
SINE_AMPLITUDE, NOISE_STD, VOICED_ABOVE_HZ = 0.1, 0.003, 10.0


class HarmonicSource(nn.Module):
    """Excitation at the sample rate from pitch at twice the frame rate.

    Upstream draws a Gaussian for each harmonic and mixes them linearly. The mix is a Gaussian too, so one draw a
    sample with the mix's norm has the same distribution for a ninth of the work.
    """

    def __init__(self) -> None:
        super().__init__()
        self.l_linear = nn.Linear(HARMONICS, 1)

    def forward(self, pitch: Tensor, noise: Tensor) -> Tensor:
        """[B, N] from ``pitch`` [B, 2F, 1] in Hz and standard normal ``noise`` [B, N], N = 600 F."""
        phase = self._phase(pitch.squeeze(-1))
        voiced = (pitch > VOICED_ABOVE_HZ).to(noise.dtype)
        mix = self.l_linear.weight.squeeze(0)
        sines = torch.einsum("bfsh,h->bfs", torch.sin(phase), mix) * (SINE_AMPLITUDE * voiced)
        amplitude = voiced * NOISE_STD + (1 - voiced) * (SINE_AMPLITUDE / 3)
        noise = noise.unflatten(1, (-1, SAMPLES_PER_HALF_FRAME)) * (amplitude * mix.norm())
        return torch.tanh(sines + noise + self.l_linear.bias).flatten(1)

    def _phase(self, pitch: Tensor) -> Tensor:
        """Radians [B, 2F, 300, 9].

        The cycles run up over the whole segment, so they are summed in double precision; what remains within a
        half frame is small. Between the centres of two half frames the phase is linear, as upstream interpolates it.
        """
        harmonics = torch.arange(1, HARMONICS + 1, device=pitch.device, dtype=pitch.dtype)
        cycles_per_sample = (pitch.unsqueeze(-1) * harmonics / RATE_HZ) % 1
        cycles = torch.cumsum(cycles_per_sample.double() * SAMPLES_PER_HALF_FRAME, 1)
        ahead = torch.diff(cycles, dim=1, append=cycles[:, -1:])
        behind = torch.diff(cycles, dim=1, prepend=cycles[:, :1])
        offset = torch.arange(SAMPLES_PER_HALF_FRAME, device=pitch.device, dtype=pitch.dtype) + 0.5
        offset = (offset / SAMPLES_PER_HALF_FRAME - 0.5).view(1, 1, -1, 1)
        slope = torch.where(offset < 0, behind.to(pitch.dtype).unsqueeze(2), ahead.to(pitch.dtype).unsqueeze(2))
        return torch.addcmul((cycles % 1).to(pitch.dtype).unsqueeze(2), offset, slope) * (2 * math.pi)


def reflect_ends(signal: Tensor, samples: Tensor, pad: int) -> Tensor:
    """``signal`` [B, N] with ``pad`` samples reflected at its start and at each item's own end."""
    time = torch.arange(-pad, signal.shape[1] + pad, device=signal.device).abs()
    ends = samples[:, None]
    time = torch.where(time >= ends, 2 * (ends - 1) - time, time).clamp(min=0)
    return signal.gather(1, time.expand(len(signal), -1))


class Spectrum(nn.Module):
    """The 20-point transform between samples and [B, T, 11] magnitude and phase, hop 5, periodic Hann window."""

    SIZE, HOP = 20, 5
    BINS = SIZE // 2 + 1

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        # Rounded to single precision as upstream has it: where a bin is nearly silent its phase shows the difference.
        window = torch.hann_window(self.SIZE, periodic=True, dtype=torch.float32).double()
        time = torch.arange(self.SIZE, dtype=torch.float64)
        angle = 2 * math.pi * torch.outer(torch.arange(self.BINS, dtype=torch.float64), time) / self.SIZE
        weight = torch.full((self.BINS, 1), 2.0, dtype=torch.float64)
        weight[[0, -1]] = 1
        synthesis = torch.cat([weight * torch.cos(angle), -weight * torch.sin(angle)]) / self.SIZE
        self.register_buffer("window", window.to(dtype), persistent=False)
        self.register_buffer("synthesis", (synthesis * window).to(dtype), persistent=False)
        self.window: Tensor
        self.synthesis: Tensor

    def analyse(self, signal: Tensor, valid: Valid) -> Tensor:
        """[B, T, 22] magnitudes and phases of ``signal`` [B, N], 0 on padding."""
        padded = reflect_ends(signal, (valid.lengths - 1) * self.HOP, self.SIZE // 2)
        bins = torch.fft.rfft(padded.unfold(-1, self.SIZE, self.HOP) * self.window)
        return valid.zero_padding(torch.cat([bins.abs(), bins.angle()], -1))

    def synthesise(self, magnitude: Tensor, phase: Tensor, valid: Valid) -> Tensor:
        """[B, N] samples; beyond an item's end undefined."""
        magnitude = valid.zero_padding(magnitude)
        bins = torch.cat([magnitude * torch.cos(phase), magnitude * torch.sin(phase)], -1)
        frames = torch.ones_like(magnitude[..., :1]) if valid.mask is None else valid.mask
        overlap = self._overlap_add(bins @ self.synthesis)
        envelope = self._overlap_add(frames * self.window**2)
        trim = self.SIZE // 2
        return (overlap / envelope.clamp(min=1e-11))[:, trim:-trim]

    def _overlap_add(self, frames: Tensor) -> Tensor:
        count, parts = frames.shape[1], self.SIZE // self.HOP
        out = frames.new_zeros(len(frames), count + parts - 1, self.HOP)
        for part, piece in enumerate(frames.split(self.HOP, -1)):
            out[:, part : part + count] += piece
        return out.flatten(1)
