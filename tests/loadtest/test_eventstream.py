"""The decoder against frames written from the specification, cut anywhere, and against damage."""

from __future__ import annotations

import struct
from collections.abc import Callable
from zlib import crc32

import pytest

from loadtest.eventstream import DamagedStream, Decoder

Frame = Callable[[bytes, dict[str, str]], bytes]


@pytest.mark.parametrize("size", [1, 2, 7, 11, 64, 10_000])
def test_messages_survive_any_cut(event_frame: Frame, size: int) -> None:
    wire = (
        event_frame(b"one", {":event-type": "PayloadPart"}) + event_frame(b"", {}) + event_frame(b"x" * 500, {"a": "b"})
    )
    decoder = Decoder()
    found = [m for i in range(0, len(wire), size) for m in decoder.feed(wire[i : i + size])]
    assert [(m.payload, m.headers) for m in found] == [
        (b"one", {":event-type": "PayloadPart"}),
        (b"", {}),
        (b"x" * 500, {"a": "b"}),
    ]
    assert decoder.pending == 0


def test_an_incomplete_message_is_pending(event_frame: Frame) -> None:
    decoder = Decoder()
    assert list(decoder.feed(event_frame(b"one", {})[:-1])) == []
    assert decoder.pending == 18


def test_headers_of_other_types_are_skipped() -> None:
    headers = b"\x01t\x00" + b"\x01i\x04\x00\x00\x00\x05" + b"\x01b\x06\x00\x02xy" + b"\x01s\x07\x00\x01v"
    prelude = struct.pack(">II", 16 + len(headers), len(headers))
    message = prelude + struct.pack(">I", crc32(prelude)) + headers
    assert [m.headers for m in Decoder().feed(message + struct.pack(">I", crc32(message)))] == [{"s": "v"}]


@pytest.mark.parametrize("position", [0, 5, 9, 14, -1])
def test_a_flipped_bit_is_noticed(event_frame: Frame, position: int) -> None:
    wire = bytearray(event_frame(b"payload", {"a": "b"}))
    wire[position] ^= 1
    with pytest.raises(DamagedStream):
        list(Decoder().feed(bytes(wire)))
