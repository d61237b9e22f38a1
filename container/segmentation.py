"""Cuts text into pieces that sound whole: a short one first, then growing ones, none near the model's limit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

FIRST = 60
"""Size of the first piece: about four seconds of speech, the wait before anything is heard."""
LEAST = 25
"""A shorter piece would be over before the next one is ready."""
GROWTH = 1.5
"""Each piece over the one before. Synthesis at half real time would bear 2; the rest is for a busy machine."""
MOST = 200
"""Largest piece. The model takes 510 phonemes, but rushes through pieces far shorter than that."""
WHOLE = 80
"""A text up to this size is one piece."""
FIFO_MOST = 400
"""Largest piece when nothing is cut for the sake of the first audio."""
OVERSHOOT = 1.25
"""A sentence this much over the target is still taken whole."""
LAST_RESORT = 1.6
"""Up to here a late comma beats a cut between two words."""

SENTENCE, CLAUSE, WORD, ANYWHERE = 3, 2, 1, 0

_ABBREVIATIONS = re.compile(
    r"(?:mr|mrs|ms|dr|prof|sr|jr|st|mt|ft|nos?|vs|etc|eg|ie|cf|al|gen|col|sgt|capt|lt|rev|hon|dept|est|approx|inc|ltd"
    r"|co|corp|ave|blvd|rd|figs?|vol|eds?|pp?|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|(?:[a-z]\.)+[a-z])"
)
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？]+[」』”’）]*|\n\s*\n")
_CLAUSE_END = re.compile(r"[,;:][\"'”’»)\]]*(?=\s)|\s[–—-]{1,2}(?=\s)|[—、，；：]|[)\]](?=\s)|\n")
_WORD_END = re.compile(r"\s+")
_LAST_WORD = re.compile(r"[\w.]+$")


@dataclass(frozen=True, slots=True)
class Break:
    """A place where the text may be cut, after the space that follows the mark."""

    at: int
    strength: int


def segment(text: str, *, first: int = FIRST, most: int = MOST, whole: int = WHOLE) -> list[str]:
    """Pieces whose concatenation is ``text`` up to white space at the seams; each has something to say."""
    text = text.strip()
    sizes = _cumulative_size(text)
    breaks = [*_breaks(text), Break(len(text), SENTENCE)]
    pieces: list[str] = []
    start, target = 0, float(first)
    while start < len(text):
        limit = whole if not pieces else min(most, target * OVERSHOOT)
        end = len(text) if sizes[-1] - sizes[start] <= limit else _cut(text, sizes, breaks, start, target, most)
        pieces.append(text[start:end])
        target = min(float(most), max(first, GROWTH * (sizes[end] - sizes[start])))
        start = end
    return [piece.strip() for piece in _all_spoken(pieces) if piece.strip()]


def in_one(text: str) -> list[str]:
    """The fewest pieces the model can take; for the published one-request-at-a-time behaviour."""
    return segment(text, first=FIFO_MOST, most=FIFO_MOST, whole=FIFO_MOST)


def _cut(text: str, sizes: list[int], breaks: list[Break], start: int, target: float, most: int) -> int:
    """Where the piece that begins at ``start`` ends: the strongest break near the target, or wherever it must."""
    least = min(LEAST, target / 2)

    def fitting(strength: int, stretch: float) -> list[int]:
        high = min(most, target * stretch)
        return [b.at for b in breaks if b.strength >= strength and least <= sizes[b.at] - sizes[start] <= high]

    for strength, stretch in ((SENTENCE, 1.0), (SENTENCE, OVERSHOOT), (CLAUSE, OVERSHOOT)):
        if places := fitting(strength, stretch):
            return places[-1]
    if places := fitting(CLAUSE, LAST_RESORT):
        return places[0]
    places = fitting(WORD, 1.0)
    return places[-1] if places else _hard_cut(text, sizes, start, target)


def _hard_cut(text: str, sizes: list[int], start: int, target: float) -> int:
    """As far as ``target`` allows, at least one character, never between a character and its marks."""
    end = start + 1
    while end < len(text) and sizes[end + 1] - sizes[start] <= target:
        end += 1
    back = end
    while back > start + 1 and back < len(text) and _clings(text, back):
        back -= 1
    return back if back > start + 1 else end


def _clings(text: str, at: int) -> bool:
    return unicodedata.category(text[at]) in ("Mn", "Mc", "Me", "Cf", "Sk") or text[at - 1] == "\u200d"


def _breaks(text: str) -> Iterator[Break]:
    """Every place to cut, in order; where several coincide the strongest is last."""
    strengths: dict[int, int] = {}
    for strength, pattern in ((WORD, _WORD_END), (CLAUSE, _CLAUSE_END), (SENTENCE, _SENTENCE_END)):
        for match in pattern.finditer(text):
            if strength == SENTENCE and not _ends_sentence(text, match):
                continue
            strengths[_past_space(text, match.end())] = strength
    for at in sorted(strengths):
        if 0 < at < len(text):
            yield Break(at, strengths[at])


def _past_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    """False for the stop of an abbreviation, an initial, or an ellipsis that the sentence runs through."""
    following = text[_past_space(text, match.end()) :][:1]
    if following.islower():
        return False
    if not match.group().startswith(".") or match.group().startswith(".."):
        return True
    word = _LAST_WORD.search(text[max(0, match.start() - 20) : match.start()])
    if word is None:
        return True
    name = word.group().lower()
    return not _ABBREVIATIONS.fullmatch(name) and not (len(name) == 1 and name.isalpha() and name != "i")


def _all_spoken(pieces: list[str]) -> list[str]:
    """Give a piece without a letter or digit to its neighbour."""
    merged: list[str] = []
    for piece in pieces:
        if merged and not (_speaks(piece) and _speaks(merged[-1])):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged


def _speaks(piece: str) -> bool:
    return any(char.isalnum() for char in piece)


def _cumulative_size(text: str) -> list[int]:
    total, sizes = 0, [0]
    for char in text:
        total += _size(char)
        sizes.append(total)
    return sizes


def _size(char: str) -> int:
    """Phonemes one character may become: digits, symbols and foreign scripts are read out as words."""
    if char.isascii() and (char.isalpha() or char.isspace() or char in ".,;:!?'\"()-"):
        return 1
    if char.isdigit():
        return 4
    category = unicodedata.category(char)
    if category in ("Ll", "Lu") and unicodedata.name(char, "").startswith("LATIN"):
        return 1
    return 1 if category[0] in "PZMC" else 6
