"""Float samples to the bytes of a format, piece by piece, as one continuous file."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Protocol

import lameenc
import numpy as np

from container.engine.base import SAMPLE_RATE_HZ, Samples
from container.joints import INAUDIBLE

UNKNOWN_SIZE = 0xFFFF_FFFF
"""What streaming writers put where a WAV header wants a size that is not known yet."""
MP3_KBPS = 64
MP3_DELAY = 1105
"""Samples of silence an MP3 begins with: 576 of the encoder and 529 of every decoder."""

CONTENT_TYPES = {"wav": "audio/wav", "pcm": "audio/pcm", "mp3": "audio/mpeg"}


class Encoder(Protocol):
    """One per response; not thread-safe."""

    def encode(self, samples: Samples, *, whole: bool) -> bytes:
        """Bytes for the next piece; ``whole`` when it is all the audio there will be."""

    def finish(self) -> bytes:
        """Bytes that end the file."""


def make_encoder(format_name: str) -> Encoder:
    encoders: dict[str, Callable[[], Encoder]] = {"wav": WavEncoder, "pcm": PcmEncoder, "mp3": Mp3Encoder}
    return encoders[format_name]()


def to_pcm16(samples: Samples) -> bytes:
    """Signed 16-bit little-endian; clipped, because wrapping turns a loud vowel into a crack."""
    return (np.clip(samples, -1.0, 1.0) * 32_767).astype("<i2").tobytes()


class PcmEncoder:
    """Bare samples."""

    def encode(self, samples: Samples, *, whole: bool) -> bytes:
        del whole
        return to_pcm16(samples)

    def finish(self) -> bytes:
        return b""


class WavEncoder:
    """One header, then samples. Sizes are exact when the first piece is also the last."""

    def __init__(self) -> None:
        self._headed = False

    def encode(self, samples: Samples, *, whole: bool) -> bytes:
        pcm = to_pcm16(samples)
        if self._headed:
            return pcm
        self._headed = True
        return wav_header(len(pcm) if whole else None) + pcm

    def finish(self) -> bytes:
        return b""


class Mp3Encoder:
    """Constant bit rate, so that size tells duration without an index at the front.

    The encoder plays MP3_DELAY samples of silence first; they take the place of as much silence in the speech.
    """

    def __init__(self) -> None:
        self._lame = lameenc.Encoder()
        self._lame.set_bit_rate(MP3_KBPS)
        self._lame.set_in_sample_rate(SAMPLE_RATE_HZ)
        self._lame.set_channels(1)
        self._lame.set_quality(5)
        self._lame.silence()
        self._delay_left = MP3_DELAY

    def encode(self, samples: Samples, *, whole: bool) -> bytes:
        del whole
        quiet = leading_quiet(samples[: self._delay_left])
        self._delay_left = self._delay_left - quiet if quiet == len(samples) else 0
        return bytes(self._lame.encode(to_pcm16(samples[quiet:])))

    def finish(self) -> bytes:
        return bytes(self._lame.flush())


def leading_quiet(samples: Samples) -> int:
    """How many samples pass before anything can be heard."""
    loud = np.flatnonzero(np.abs(samples) > INAUDIBLE)
    return int(loud[0]) if len(loud) else len(samples)


def wav_header(data_bytes: int | None) -> bytes:
    """The 44 bytes of a PCM WAV file; ``None`` for a stream of unknown length."""
    riff = UNKNOWN_SIZE if data_bytes is None else 36 + data_bytes
    data = UNKNOWN_SIZE if data_bytes is None else data_bytes
    return struct.pack(
        "<4sI4s4sIHHIIHH4sI",
        b"RIFF", riff, b"WAVE", b"fmt ", 16, 1, 1, SAMPLE_RATE_HZ, SAMPLE_RATE_HZ * 2, 2, 16, b"data", data,
    )  # fmt: skip
