"""Cuts text into pieces that sound whole: a short one first, then growing ones, none near the model's limit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

FIRST = 40
"""Size of the first piece: under three seconds of speech, the wait before anything is heard."""
STRETCH = 1.2
"""How far past its size the first piece may go for a better place to cut."""
LEAST = 20
"""A shorter piece would be over before the next one is ready."""
SYNTHESIS = 0.55
"""Seconds of work for a second of speech that a piece may count on; a slow CPU needs 0.45 on an idle machine."""
GROWTH = 1.5
"""Target for the next piece over what the listener has buffered; 1 / SYNTHESIS is where playback would stall."""
MOST = 200
"""Largest piece. The model takes 510 phonemes, but rushes through pieces far shorter than that."""
WHOLE = 80
"""A text up to this size is one piece."""
FIFO_MOST = 400
"""Largest piece when nothing is cut for the sake of the first audio."""

SENTENCE, CLAUSE, PHRASE, WORD, SPACE = 5, 4, 3, 2, 1

_ABBREVIATIONS = re.compile(
    r"(?:mr|mrs|ms|dr|prof|sr|jr|st|mt|ft|nos?|vs|etc|eg|ie|cf|al|gen|col|sgt|capt|lt|rev|hon|dept|est|approx|inc|ltd"
    r"|co|corp|ave|blvd|rd|figs?|vol|eds?|pp?|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec|(?:[a-z]\.)+[a-z])"
)
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’»)\]]*(?=\s)|[。！？]+[」』”’）]*|\n\s*\n")
_CLAUSE_END = re.compile(r"[,;:][\"'”’»)\]]*(?=\s)|\s[–—-]{1,2}(?=\s)|[—、，；：]|[)\]](?=\s)|\n")
_WORD_END = re.compile(r"(?<!\bthe)(?<!\ba)(?<!\ban)(?<!\bof)(?<!\bto)(?<!\bin)(?<!\band)(?<!\.)\s+", re.IGNORECASE)
_SPACE = re.compile(r"\s+")
_PHRASE_END = re.compile(
    r"\s+(?=(?:and|but|or|nor|so|because|although|when|while|until|if|unless|that|which|who|where|before|after|since"
    r"|with|without|from|into|over|under|through|between|for|to|in|on|at|by|as|than|every)\s)",
    re.IGNORECASE,
)
_LAST_WORD = re.compile(r"[\w.]+$")
_PATTERNS = (
    (SPACE, _SPACE),
    (WORD, _WORD_END),
    (PHRASE, _PHRASE_END),
    (CLAUSE, _CLAUSE_END),
    (SENTENCE, _SENTENCE_END),
)


@dataclass(frozen=True, slots=True)
class Break:
    """A place where the text may be cut, after the space that follows the mark."""

    at: int
    strength: int


def segment(text: str, first: int = FIRST) -> list[str]:
    """Pieces whose concatenation is ``text`` up to white space at the seams; each has something to say.

    Sizes follow the listener: a piece takes SYNTHESIS times its length to make, while what was sent before it plays.
    """
    draft = _Draft(text.strip())
    if draft.left <= WHOLE:
        return [draft.text] if draft.text else []
    buffered: float = draft.take(first, STRETCH * first)
    while draft.left:
        most = min(float(MOST), 0.95 * buffered / SYNTHESIS)
        taken = draft.take(min(MOST, GROWTH * buffered), max(most, LEAST))
        buffered = max(0.0, buffered - SYNTHESIS * taken) + taken
    return _all_spoken(draft.pieces)


def in_one(text: str) -> list[str]:
    """The fewest pieces the model can take; for the published one-request-at-a-time behaviour."""
    draft = _Draft(text.strip())
    while draft.left:
        draft.take(FIFO_MOST, FIFO_MOST)
    return _all_spoken(draft.pieces)


class _Draft:
    """A text being cut from the front."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pieces: list[str] = []
        self._start = 0
        self._sizes = _cumulative_size(text)
        self._breaks = [*_breaks(text), Break(len(text), SENTENCE)]

    @property
    def left(self) -> int:
        return self._sizes[-1] - self._sizes[self._start]

    def take(self, target: float, most: float) -> int:
        """Cut the next piece, about ``target`` and never over ``most`` in size where words allow; its size."""
        end = len(self.text) if self.left <= most else self._cut(target, most)
        self.pieces.append(self.text[self._start : end])
        size = self._sizes[end] - self._sizes[self._start]
        self._start = end
        return size

    def _cut(self, target: float, most: float) -> int:
        """The strongest break near the target, or wherever it must be."""
        least = min(LEAST, target / 2)
        choices = (
            (SENTENCE, least, target), (SENTENCE, least, most), (CLAUSE, least, most), (PHRASE, least, most),
            (WORD, least, target), (SPACE, 1, most),
        )  # fmt: skip
        for strength, low, high in choices:
            sizes = ((b, self._sizes[b.at] - self._sizes[self._start]) for b in self._breaks)
            places = [b.at for b, size in sizes if b.strength >= strength and low <= size <= high]
            if places:
                return places[-1]
        return _hard_cut(self.text, self._sizes, self._start, target)


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
    for strength, pattern in _PATTERNS:
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
    """Give a piece without a letter or digit to its neighbour; spaces at the seams go."""
    merged: list[str] = []
    for piece in pieces:
        if merged and not (_speaks(piece) and _speaks(merged[-1])):
            merged[-1] += piece
        else:
            merged.append(piece)
    return [piece.strip() for piece in merged]


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
