"""The request a caller sends, validated once; everything behind it trusts the values."""

from __future__ import annotations

import json
import re
import unicodedata
import uuid
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from container.audio import CONTENT_TYPES
from container.errors import RequestError, invalid
from container.voices import canonical_voice

SLOWEST, FASTEST = 0.5, 2.0
"""Outside this range the model's durations stop being speech."""
TRANSPORTS = ("binary", "sse")
_MOST_NESTED = 50
"""Brackets outside strings. Deep nesting ends in a RecursionError, which CPython 3.11 does not fully recover from."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"')
_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")


@dataclass(frozen=True, slots=True)
class SpeechRequest:
    """What to say and how to send it; ``format`` and ``transport`` None leave it to Accept."""

    text: str
    voice: str
    speed: float
    format: str | None
    transport: str | None
    request_id: str
    timestamps: bool


def parse_json(body: bytes | str) -> dict[str, Any]:
    """A JSON object, or the 400 that says why it is not one."""
    try:
        text = body if isinstance(body, str) else body.decode("utf-8")
        if sum(map(_STRING.sub("", text).count, "[{")) > _MOST_NESTED:
            raise invalid("invalid_json", "a request is one flat object")
        value = json.loads(text)
    except UnicodeDecodeError:
        raise invalid("invalid_json", "the body is not UTF-8") from None
    except ValueError as error:
        raise invalid("invalid_json", f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise invalid("invalid_json", f"the body must be a JSON object, not {_kind(value)}")
    return value


def parse_request(
    fields: Mapping[str, Any], *, voices: Collection[str], default_voice: str, max_text_chars: int
) -> SpeechRequest:
    """The request, or one 400 that names every field that is wrong."""
    problems: list[str] = []
    unknown = sorted(str(name)[:40] for name in fields if name not in _FIELDS)
    if unknown:
        problems.append(f"unknown field {', '.join(unknown[:5])}; known are {', '.join(_FIELDS)}")
    values = {}
    for name, check in _FIELDS.items():
        try:
            values[name] = check(fields.get(name))
        except ValueError as error:
            problems.append(f"{name} {error}")
    text = values.get("text", "")
    if len(text) > max_text_chars:
        raise RequestError(413, "text_too_long", f"text has {len(text)} characters, the limit is {max_text_chars}")
    if values.get("timestamps") and values.get("transport") == "binary":
        problems.append("timestamps need transport sse or the bidirectional stream")
    if problems:
        hint = {"voices": sorted(voices)} if "voice" not in values else {}
        raise invalid("invalid_request", "; ".join(problems), problems=problems, **hint)
    voice = canonical_voice(values.pop("voice") or default_voice, voices)
    return SpeechRequest(voice=voice, **values)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {_kind(value)}")
    if any(unicodedata.category(char) == "Cs" for char in value):
        raise ValueError("holds half of a surrogate pair")
    cleaned = "".join(" " if unicodedata.category(char) == "Cc" and char not in "\n\t" else char for char in value)
    if not any(char.isalnum() for char in cleaned):
        raise ValueError("has nothing that can be spoken")
    return cleaned.strip()


def _voice(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise ValueError(f"must be a string, not {_kind(value)}")
    if not value.strip():
        raise ValueError("must not be empty")
    if len(value) > 512:
        raise ValueError("is longer than 512 characters")
    return value


def _speed(value: Any) -> float:
    if value is None:
        return 1.0
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number from {SLOWEST} to {FASTEST}, not {_kind(value)}")
    if not SLOWEST <= value <= FASTEST:
        raise ValueError(f"must be from {SLOWEST} to {FASTEST}")
    return float(value)


def _one_of(*allowed: str) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        if value is not None and value not in allowed:
            raise ValueError(f"must be one of {', '.join(allowed)}")
        return None if value is None else str(value)

    return check


def _request_id(value: Any) -> str:
    if value is None:
        return uuid.uuid4().hex
    if not isinstance(value, str) or not _REQUEST_ID.fullmatch(value):
        raise ValueError("must be 1 to 128 letters, digits, or . _ : -")
    return value


def _timestamps(value: Any) -> bool:
    if value is not None and not isinstance(value, bool):
        raise ValueError(f"must be true or false, not {_kind(value)}")
    return bool(value)


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    return {bool: "a boolean", str: "a string", list: "a list", dict: "an object"}.get(type(value), "a number")


_FIELDS: Mapping[str, Callable[[Any], Any]] = {
    "text": _text,
    "voice": _voice,
    "speed": _speed,
    "format": _one_of(*CONTENT_TYPES),
    "transport": _one_of(*TRANSPORTS),
    "request_id": _request_id,
    "timestamps": _timestamps,
}
