"""Which format and transport to answer with: the body decides, Accept fills in and may veto."""

from __future__ import annotations

from dataclasses import dataclass

from container.audio import CONTENT_TYPES
from container.errors import RequestError

EVENT_STREAM = "text/event-stream"
_ALIASES = {
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/vnd.wave": "audio/wav",
    "audio/l16": "audio/pcm",
    "audio/mp3": "audio/mpeg",
}
_FORMAT_OF = {media: name for name, media in CONTENT_TYPES.items()}


@dataclass(frozen=True, slots=True)
class Answer:
    """How the audio goes out."""

    format: str
    sse: bool

    @property
    def content_type(self) -> str:
        return EVENT_STREAM if self.sse else CONTENT_TYPES[self.format]


def negotiate(accept: str, format_name: str | None, transport: str | None) -> Answer:
    """The answer, or 406 when ``accept`` allows none that the body asks for."""
    quality = _qualities(accept)
    if transport == "sse" or (transport is None and _prefers_events(quality, format_name)):
        if _allows(quality, EVENT_STREAM) == 0:
            raise _not_acceptable(accept)
        return Answer(format_name or "pcm", sse=True)
    formats = [format_name] if format_name else list(CONTENT_TYPES)
    best = max(formats, key=lambda name: _allows(quality, CONTENT_TYPES[name]))
    if _allows(quality, CONTENT_TYPES[best]) == 0:
        raise _not_acceptable(accept)
    return Answer(best, sse=False)


def _prefers_events(quality: dict[str, float], format_name: str | None) -> bool:
    """Only a client that names the event stream gets one; a wildcard means audio."""
    named = quality.get(EVENT_STREAM, 0.0)
    formats = [format_name] if format_name else list(CONTENT_TYPES)
    return named > 0 and named >= max(_allows(quality, CONTENT_TYPES[name]) for name in formats)


def _allows(quality: dict[str, float], media: str) -> float:
    """The q of the most specific range that covers ``media``."""
    binary = () if media == EVENT_STREAM else ("application/octet-stream",)
    ranges = (media, media.split("/")[0] + "/*", *binary, "*/*")
    return next((quality[name] for name in ranges if name in quality), 0.0)


def _qualities(accept: str) -> dict[str, float]:
    qualities: dict[str, float] = {}
    for entry in accept.split(","):
        media, *parameters = (part.strip().lower() for part in entry.split(";"))
        if media:
            qualities[_ALIASES.get(media, media)] = _q(parameters)
    return qualities or {"*/*": 1.0}


def _q(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(1.0, max(0.0, float(value)))
            except ValueError:
                return 0.0
    return 1.0


def _not_acceptable(accept: str) -> RequestError:
    supported = [*CONTENT_TYPES.values(), EVENT_STREAM]
    return RequestError(406, "not_acceptable", f"Accept: {accept[:200]} allows no answer", supported=supported)
