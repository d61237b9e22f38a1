"""The first byte of audio is found at the same offset however a response is cut."""

from __future__ import annotations

import io
import random
import struct
import wave

import pytest

from loadtest.first_audio import FirstAudio


def wav(samples: int, *, extra: bytes = b"") -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(24_000)
        writer.writeframes(b"\x01\x02" * samples)
    whole = buffer.getvalue()
    return whole[:36] + extra + whole[36:]


def chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


ID3 = b"ID3\x04\x00\x00" + bytes([0, 0, 1, 2]) + b"\0" * 130
MP3_FRAME = b"\xff\xfb\x90\x00" + b"\x55" * 400
CASES = [
    ("audio/wav", wav(100), 44),
    ("audio/wav; rate=24000", wav(100), 44),
    ("audio/x-wav", wav(100, extra=chunk(b"LIST", b"odd")), 44 + 12),
    ("audio/wav", wav(100, extra=chunk(b"LIST", b"x" * 26) + chunk(b"fact", b"1234")), 44 + 34 + 12),
    ("audio/wav", b"not a RIFF file at all", 0),
    ("audio/pcm", b"RIFF is allowed in samples", 0),
    ("audio/mpeg", ID3 + MP3_FRAME, 140),
    ("audio/mpeg", MP3_FRAME, 0),
    ("application/json", b'{"embedding":[1]}', 0),
]


def first_audio_at(content_type: str, pieces: list[bytes]) -> tuple[int, int]:
    """Bytes delivered before the piece's end at which audio was first seen, and audio bytes in all."""
    finder = FirstAudio(content_type)
    seen, delivered = -1, 0
    for piece in pieces:
        delivered += len(piece)
        if finder.feed(piece) and seen < 0:
            seen = delivered
    return seen, finder.audio_bytes


@pytest.mark.parametrize(("content_type", "body", "header"), CASES)
def test_one_byte_at_a_time(content_type: str, body: bytes, header: int) -> None:
    pieces = [body[i : i + 1] for i in range(len(body))]
    assert first_audio_at(content_type, pieces) == (header + 1, len(body) - header)


@pytest.mark.parametrize(("content_type", "body", "header"), CASES)
def test_any_cut(content_type: str, body: bytes, header: int) -> None:
    generator = random.Random(header)
    for _ in range(50):
        cuts = sorted(generator.sample(range(1, len(body)), 3))
        pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
        expected = next(end for end in [*cuts, len(body)] if end > header)
        assert first_audio_at(content_type, pieces) == (expected, len(body) - header)


@pytest.mark.parametrize("body", [b"", wav(0), wav(0)[:20], b"RI", ID3, ID3[:7]])
def test_a_header_alone_is_no_audio(body: bytes) -> None:
    kind = "audio/mpeg" if body[:2] == b"ID" else "audio/wav"
    assert first_audio_at(kind, [body]) == (-1, 0)
