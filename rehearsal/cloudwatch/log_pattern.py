"""Filter patterns of CloudWatch Logs: terms in a line, or conditions on the fields of a JSON line."""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable
from typing import Any

_TOKEN = re.compile(r'\s*(\(|\)|&&|\|\||!=|>=|<=|=|>|<|"(?:[^"\\]|\\.)*"|[^\s()=!<>&|]+)')
_ORDER: dict[str, Callable[[float, float], bool]] = {
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
}


class PatternError(Exception):
    """A pattern the rehearsal does not read."""


def matches(pattern: str, line: str) -> bool:
    """Whether a metric filter with this pattern counts the line."""
    text = pattern.strip()
    if not text.startswith("{"):
        return all(term.strip('"') in line for term in re.findall(r'"[^"]*"|\S+', text))
    try:
        event = json.loads(line)
    except ValueError:
        return False
    if not isinstance(event, dict):
        return False
    conditions = _Conditions(_TOKEN.findall(text.strip("{}")), event)
    return conditions.any() and conditions.done()


def value_at(event: Any, selector: str) -> Any:
    """``$.a.b`` in a JSON line; None when it is not there."""
    for name in selector.removeprefix("$.").split("."):
        event = event.get(name) if isinstance(event, dict) else None
    return event


class _Conditions:
    """Reads ``a || b && (c)`` and judges it in one go."""

    def __init__(self, tokens: list[str], event: dict[str, Any]) -> None:
        self._tokens = tokens
        self._event = event

    def done(self) -> bool:
        """Everything was read."""
        if self._tokens:
            raise PatternError(f"not understood: {' '.join(self._tokens)}")
        return True

    def any(self) -> bool:
        """One of several."""
        found = [self.all()]
        while self._accept("||"):
            found.append(self.all())
        return any(found)

    def all(self) -> bool:
        """All of several."""
        found = [self._one()]
        while self._accept("&&"):
            found.append(self._one())
        return all(found)

    def _one(self) -> bool:
        if self._accept("("):
            found = self.any()
            if not self._accept(")"):
                raise PatternError("a parenthesis is not closed")
            return found
        if len(self._tokens) < 3:
            raise PatternError("a condition needs a field, an operator and a value")
        selector, sign, wanted = (self._tokens.pop(0) for _ in range(3))
        return _judge(value_at(self._event, selector), sign, wanted)

    def _accept(self, token: str) -> bool:
        if self._tokens[:1] == [token]:
            self._tokens.pop(0)
            return True
        return False


def _judge(found: Any, sign: str, wanted: str) -> bool:
    if sign in _ORDER:
        return isinstance(found, (int, float)) and _ORDER[sign](found, float(wanted))
    if wanted.startswith('"') or not _is_number(wanted):
        same = found is not None and fnmatch.fnmatchcase(str(found), wanted.strip('"'))
    else:
        same = isinstance(found, (int, float)) and found == float(wanted)
    return same if sign == "=" else not same


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d+(\.\d+)?", text) is not None
