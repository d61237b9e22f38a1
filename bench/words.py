"""Word error rates of transcripts."""

from __future__ import annotations

import re
from collections.abc import Sequence

WORD = re.compile(r"[a-z0-9]+(?:'[a-z]+)*")


def words(text: str) -> list[str]:
    """Lower case, without punctuation."""
    return WORD.findall(text.lower().replace("’", "'"))


def errors(reference: Sequence[str], heard: Sequence[str]) -> int:
    """Fewest substitutions, insertions and deletions that turn one into the other (Levenshtein)."""
    row = list(range(len(heard) + 1))
    for i, expected in enumerate(reference, 1):
        above, row[0] = row[0], i
        for j, word in enumerate(heard, 1):
            above, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, above + (expected != word))
    return row[-1]


def word_error_rate(references: Sequence[str], heard: Sequence[str]) -> float:
    """Errors of all sentences over the words of all references."""
    pairs = [(words(reference), words(transcript)) for reference, transcript in zip(references, heard, strict=True)]
    return sum(errors(*pair) for pair in pairs) / sum(len(reference) for reference, _ in pairs)


def right(references: Sequence[str], heard: Sequence[str]) -> list[bool]:
    """Which sentences have the same words."""
    return [words(reference) == words(transcript) for reference, transcript in zip(references, heard, strict=True)]
