"""Cut a phoneme string that is too long for one forward pass where a speaker would breathe."""

from __future__ import annotations

LONGEST = 400
"""The model takes 510, but speech near that limit is rushed."""
BOUNDARIES = (".!?…", ":;", ",—", " ")


def phrases(phonemes: str, longest: int = LONGEST) -> list[str]:
    """Pieces of at most ``longest`` symbols; nothing but the spaces around a cut is lost."""
    pieces = []
    rest = phonemes.strip()
    while len(rest) > longest:
        end = _breath(rest[:longest])
        pieces.append(rest[:end].strip())
        rest = rest[end:].strip()
    return [piece for piece in (*pieces, rest) if piece]


def _breath(window: str) -> int:
    """Where to cut: after the strongest boundary in the second half, or hard."""
    for marks in BOUNDARIES:
        end = max(window.rfind(mark) for mark in marks) + 1
        if end > len(window) // 2:
            return end
    return len(window)
