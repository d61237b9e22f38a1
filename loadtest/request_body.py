"""What a request says: the built-in speech body, or a template of the user's."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from planner.errors import UsageError

TEXT, VOICE = "{{text}}", "{{voice}}"
_SAMPLE = 'She said "héllo".\n'


@dataclass(frozen=True)
class RequestBody:
    """Turns a text into the bytes of a request."""

    voice: str | None
    response_format: str
    template: str | None = None
    """``{{text}}`` and ``{{voice}}`` stand for JSON strings, quotes included."""

    def render(self, text: str) -> bytes:
        """The body for one text."""
        if self.template is not None:
            filled = self.template.replace(VOICE, json.dumps(self.voice)).replace(TEXT, json.dumps(text))
            return filled.encode()
        body = {"text": text, "format": self.response_format}
        if self.voice is not None:
            body["voice"] = self.voice
        return json.dumps(body).encode()


def template(given: str | None, content_type: str) -> str | None:
    """``--body-template``: the text itself, or ``@file``. Refuses what would not be a valid body."""
    if given is None:
        return None
    text = _from_file(given[1:]) if given.startswith("@") else given
    if TEXT not in text:
        raise UsageError(f"--body-template has no {TEXT}", f"for example --body-template '{{\"inputs\": {TEXT}}}'")
    if "json" in content_type:
        try:
            json.loads(RequestBody(None, "", text).render(_SAMPLE))
        except ValueError as error:
            raise UsageError(
                f"--body-template is no JSON once {TEXT} is filled in: {error}",
                f'{TEXT} brings its own quotes: write {TEXT}, not "{TEXT}"',
            ) from None
    return text


def _from_file(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--body-template @{name}: cannot be read: {error}", "check the path") from None
