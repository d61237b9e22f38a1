"""Voice names and mixes: ``name`` or ``name*0.6+other*0.4``."""

from __future__ import annotations

import math
import re
from collections.abc import Collection

from container.errors import RequestError, invalid

_MOST_IN_A_MIX = 8
_AUDIBLE = 1e-4
"""A smaller share of a mix is dropped."""
_PART = re.compile(r"(?P<name>[A-Za-z0-9_-]{1,64})(?:\*(?P<weight>[0-9.eE+-]{1,24}))?")


def canonical_voice(spec: str, known: Collection[str]) -> str:
    """``spec`` with weights that sum to 1, repeated names merged and inaudible ones gone; refuses anything else."""
    spec = "".join(spec.split())
    if spec in known:
        return spec
    weights: dict[str, float] = {}
    parts = re.split(r"\+(?=[A-Za-z_])", spec)
    if len(parts) > _MOST_IN_A_MIX:
        raise _refused(known, f"a mix takes at most {_MOST_IN_A_MIX} voices, this one has {len(parts)}")
    for part in parts:
        name, weight = _named_weight(part, known)
        weights[name] = weights.get(name, 0.0) + weight
    total = sum(weights.values())
    if not (math.isfinite(total) and total > 0):
        raise _refused(known, "the weights of a voice mix must be numbers with a sum above 0")
    kept = {name: weight / total for name, weight in weights.items() if weight >= _AUDIBLE * total}
    if len(kept) == 1:
        return next(iter(kept))
    return "+".join(f"{name}*{weight:.4f}" for name, weight in kept.items())


def _named_weight(part: str, known: Collection[str]) -> tuple[str, float]:
    match = _PART.fullmatch(part)
    if match is None or match["name"] not in known:
        shown = part if len(part) <= 80 else part[:80] + "…"
        raise _refused(known, f"voice {shown!r} is not known", code="unknown_voice")
    try:
        weight = float(match["weight"] or 1.0)
    except ValueError:
        weight = math.nan
    if not (math.isfinite(weight) and weight >= 0):
        raise _refused(known, f"weight {match['weight']!r} of voice {match['name']!r} must be a number >= 0")
    return match["name"], weight


def _refused(known: Collection[str], message: str, code: str = "invalid_voice") -> RequestError:
    return invalid(code, message, voices=sorted(known))
