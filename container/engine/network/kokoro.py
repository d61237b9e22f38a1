"""The whole network in two halves: tokens to durations, then frames to samples."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from container.engine.network.layers import STYLE
from container.engine.network.prosody import ProsodyPredictor
from container.engine.network.text import ALBERT_HIDDEN, HIDDEN, Albert, TextEncoder
from container.engine.network.valid import Valid
from container.engine.network.vocoder import Decoder
from container.weights.vocabulary import TOKENS

SAMPLES_PER_FRAME = 600


@dataclass(frozen=True, slots=True)
class Acoustics:
    """What the text half hands to the sound half. Everything is on the device."""

    prosody: Tensor
    """[B, T, 640] features for pitch and energy."""
    text: Tensor
    """[B, T, 512] features for the decoder."""
    durations: Tensor
    """[B, T] frames a token, 0 on padding."""


class Kokoro(nn.Module):
    """Neither half synchronises with the host: the caller reads the durations in between to know how many frames."""

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.bert = Albert(TOKENS)
        self.bert_encoder = nn.Linear(ALBERT_HIDDEN, HIDDEN)
        self.predictor = ProsodyPredictor()
        self.text_encoder = TextEncoder(TOKENS)
        self.decoder = Decoder(dtype)

    def read(self, tokens: Tensor, lengths: Tensor, voices: Tensor, speeds: Tensor, padded: bool) -> Acoustics:
        """Tokens [B, T], their lengths [B], voices [B, 256], speeds [B]."""
        valid = Valid.of(lengths, tokens.shape[1], voices.dtype, padded)
        style = voices[:, STYLE:]
        encoded = self.bert_encoder(self.bert(tokens, valid))
        prosody = self.predictor.text_encoder(encoded, style, valid)
        durations = self.predictor.durations(prosody, speeds, valid)
        return Acoustics(prosody, valid.zero_padding(self.text_encoder(tokens, valid)), durations)

    def speak(
        self, acoustics: Acoustics, lengths: Tensor, frames: int, voices: Tensor, noise: Tensor, padded: bool
    ) -> Tensor:
        """[B, 600 * frames] samples; ``lengths`` [B] are the frames of each item, ``noise`` [B, 600 * frames]."""
        valid = Valid.of(lengths, frames, voices.dtype, padded)
        valid2 = valid.rescaled(2)
        tokens = self._token_of_frame(acoustics.durations, frames).unsqueeze(-1)
        prosody, text = (x.gather(1, tokens.expand(-1, -1, x.shape[-1])) for x in (acoustics.prosody, acoustics.text))
        pitch, energy = self.predictor.curves(valid.zero_padding(prosody), voices[:, STYLE:], valid, valid2)
        text = valid.zero_padding(text)
        return self.decoder(text, pitch, energy, voices[:, :STYLE], noise, valid, valid2)

    @staticmethod
    def _token_of_frame(durations: Tensor, frames: int) -> Tensor:
        """[B, frames] index of the token that each frame belongs to."""
        ends = durations.cumsum(1)
        time = torch.arange(frames, device=ends.device).expand(len(ends), -1).contiguous()
        return torch.searchsorted(ends, time, right=True).clamp(max=durations.shape[1] - 1)
