"""Incremental decoder of application/vnd.amazon.eventstream.

A message is: total length, headers length, CRC of those 8 bytes, headers, payload, CRC of all before it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from zlib import crc32

_STRING = 7
_FIXED_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
MAX_MESSAGE_BYTES = 16 * 1024 * 1024 + 128 * 1024


class DamagedStream(Exception):
    """A checksum or a length does not hold."""


@dataclass(frozen=True, slots=True)
class Message:
    """One frame; only string headers are kept, the protocol uses no others."""

    headers: dict[str, str]
    payload: bytes


class Decoder:
    """Feed it bytes as they come; it yields whole messages."""

    def __init__(self) -> None:
        self._buffer = b""

    @property
    def pending(self) -> int:
        """Bytes of a message that is not complete yet."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[Message]:
        """Every message that ``data`` completes."""
        buffer = self._buffer + data if self._buffer else data
        at = 0
        try:
            while len(buffer) - at >= 12:
                total, headers_length, checksum = struct.unpack_from(">III", buffer, at)
                if crc32(buffer[at : at + 8]) != checksum or not 16 + headers_length <= total <= MAX_MESSAGE_BYTES:
                    raise DamagedStream("event stream prelude is damaged")
                if len(buffer) - at < total:
                    return
                whole = buffer[at : at + total]
                at += total
                yield _message(whole, headers_length)
        finally:
            self._buffer = buffer[at:]


def _message(whole: bytes, headers_length: int) -> Message:
    if crc32(whole[:-4]) != struct.unpack(">I", whole[-4:])[0]:
        raise DamagedStream("event stream message is damaged")
    return Message(_headers(whole[12 : 12 + headers_length]), whole[12 + headers_length : -4])


def _headers(raw: bytes) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(raw):
        name_end = at + 1 + raw[at]
        name, kind = raw[at + 1 : name_end].decode(), raw[name_end]
        at = name_end + 1
        if kind in _FIXED_SIZES:
            at += _FIXED_SIZES[kind]
            continue
        (length,) = struct.unpack_from(">H", raw, at)
        if kind == _STRING:
            found[name] = raw[at + 2 : at + 2 + length].decode()
        at += 2 + length
    return found
