"""application/vnd.amazon.eventstream, encoded. botocore only decodes."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping

CONTENT_TYPE = "application/vnd.amazon.eventstream"
_STRING = b"\x07"


def frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """One message: prelude, its CRC, headers, payload, CRC of everything before."""
    encoded = b"".join(
        bytes([len(name)]) + name.encode() + _STRING + struct.pack(">H", len(value.encode())) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", 16 + len(encoded) + len(payload), len(encoded))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + encoded + payload
    return message + struct.pack(">I", zlib.crc32(message))


_PART = {":event-type": "PayloadPart", ":content-type": "application/octet-stream", ":message-type": "event"}


def payload_part(payload: bytes, **headers: str) -> bytes:
    """A piece of the container's response."""
    return frame({**_PART, **headers} if headers else _PART, payload)


def exception(kind: str, message: str, **fields: str) -> bytes:
    """ModelStreamError or InternalStreamFailure, after the response has begun."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return frame(headers, json.dumps({"Message": message, **fields}).encode())
