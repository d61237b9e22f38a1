"""Where the audio begins in a response, however its bytes are cut.

A container header is no audio: a WAV file's RIFF header and every chunk before ``data``, an MP3's ID3 tag.
"""

from __future__ import annotations

import struct

_WAV = frozenset({"audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"})
_MP3 = frozenset({"audio/mpeg", "audio/mp3"})


class FirstAudio:
    """Counts payload bytes after the header; feed it every piece in order."""

    def __init__(self, content_type: str) -> None:
        kind = content_type.partition(";")[0].strip().lower()
        self.audio_bytes = 0
        self._skip = _wav_header_length if kind in _WAV else _id3_length if kind in _MP3 else None
        self._head = b""

    def feed(self, piece: bytes) -> bool:
        """True once at least one byte of audio has arrived."""
        if self._skip is None:
            self.audio_bytes += len(piece)
            return self.audio_bytes > 0
        self._head += piece
        header = self._skip(self._head)
        if header is not None:
            self.audio_bytes = max(0, len(self._head) - header)
            if self.audio_bytes:
                self._skip, self._head = None, b""
        return self.audio_bytes > 0


def _wav_header_length(head: bytes) -> int | None:
    """Offset of the first sample; None until the ``data`` chunk's own header is complete. 0 if this is no WAV."""
    if head[:4] != b"RIFF"[: len(head)]:
        return 0
    at = 12
    while len(head) >= at + 8:
        name, size = struct.unpack_from("<4sI", head, at)
        at += 8
        if name == b"data":
            return at
        at += size + size % 2
    return None


def _id3_length(head: bytes) -> int | None:
    """Length of a leading ID3v2 tag, 0 without one; None until that is known. Its size has 7 bits a byte."""
    if head[:3] != b"ID3"[: len(head)]:
        return 0
    if len(head) < 10:
        return None
    size = 0
    for byte in head[6:10]:
        size = size << 7 | byte & 0x7F
    return 10 + size
