"""Samples to bytes: one header, clipped, whole samples, true durations."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np
import pytest

from container.audio import Mp3Encoder, make_encoder, to_pcm16, wav_header

KBPS = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)


def speech(seconds: float, lead_in_s: float = 0.1) -> np.ndarray:
    """A hum with a breath before it."""
    samples = 0.3 * np.sin(np.arange(round(seconds * 24_000)) * 0.05)
    samples[: round(lead_in_s * 24_000)] = 0
    return samples.astype(np.float32)


def mp3_frames(data: bytes) -> int:
    """Walk the frames as a player does; every byte must belong to one. MPEG-2 layer III, 576 samples each."""
    at = count = 0
    while at < len(data):
        assert data[at] == 0xFF
        assert data[at + 1] & 0xFE == 0xF2, "MPEG-2 layer III"
        at += 72 * KBPS[data[at + 2] >> 4] * 1000 // 24_000 + (data[at + 2] >> 1 & 1)
        count += 1
    assert at == len(data)
    return count


@pytest.mark.parametrize(
    ("value", "expected"),
    [(0.0, 0), (1.0, 32_767), (-1.0, -32_767), (1.7, 32_767), (-9.0, -32_767), (0.5, 16_383)],
)
def test_pcm_clips_and_never_wraps(value, expected):
    assert struct.unpack("<h", to_pcm16(np.array([value], np.float32))) == (expected,)


@pytest.mark.parametrize("pieces", [[1], [24_000, 1, 333], [7, 7, 7, 7]])
def test_wav_has_one_header_however_many_pieces(pieces):
    encoder = make_encoder("wav")
    data = (
        b"".join(encoder.encode(np.full(count, 0.1, np.float32), whole=len(pieces) == 1) for count in pieces)
        + encoder.finish()
    )
    assert data.count(b"RIFF") == data.count(b"data") == 1
    assert len(data) == 44 + 2 * sum(pieces)
    with wave.open(io.BytesIO(data)) as reader:
        assert len(reader.readframes(sum(pieces) + 10)) == 2 * sum(pieces)


def test_a_known_length_is_written():
    header = wav_header(1_000)
    assert len(header) == 44
    assert struct.unpack("<I", header[4:8]) == (1_036,)
    assert struct.unpack("<I", header[40:44]) == (1_000,)


@pytest.mark.parametrize("seconds", [1.5, 2.0, 3.3, 5.0, 20.0])
@pytest.mark.parametrize("pieces", [1, 3, 10])
def test_mp3_lasts_as_long_as_the_speech(seconds, pieces):
    encoder = Mp3Encoder()
    parts = np.array_split(speech(seconds), pieces)
    data = b"".join(encoder.encode(part, whole=False) for part in parts) + encoder.finish()
    assert mp3_frames(data) * 576 / 24_000 == pytest.approx(seconds, rel=0.02)


def test_mp3_cuts_nothing_that_can_be_heard():
    loud_from_the_start = speech(2.0, lead_in_s=0.0)
    with_breath = speech(2.0, lead_in_s=0.01)
    sizes = []
    for samples in (loud_from_the_start, with_breath):
        encoder = Mp3Encoder()
        sizes.append(mp3_frames(encoder.encode(samples, whole=True) + encoder.finish()))
    assert sizes[0] * 576 >= 48_000 + 1_105
    assert sizes[1] * 576 >= 48_000 - 240 + 1_105


def test_mp3_begins_before_it_ends():
    encoder = Mp3Encoder()
    assert encoder.encode(speech(1.0), whole=False)
