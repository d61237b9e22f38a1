"""Who is synthesised next. Pure: work and clock readings in, one batch out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from container.engine.base import Prepared
from container.utterance import Piece, Utterance

LENGTH_RATIO = 2.0
"""Longest over shortest in a batch; past this, padding costs more than company saves."""
COMPANY_COST = 1.1
"""A batch that holds somebody's first segment may take this much longer for the sake of later ones."""
OPENERS_IN_A_ROW = 3
"""Batches of first segments that may pass a starving listener before it gets one: it keeps a quarter at worst."""

ExpectedTime = Callable[[Sequence[Prepared]], float]
"""Seconds one synthesise call will take for these."""


@dataclass(frozen=True, slots=True)
class Work:
    """One piece that could run now."""

    utterance: Utterance
    piece: Piece
    due_s: float
    """First segment: when the request arrived. Later: when the listener's buffer runs dry."""

    @property
    def opens(self) -> bool:
        return self.piece.index == 0

    @property
    def tokens(self) -> int:
        return self.piece.item.tokens


class Order(Protocol):
    """Chooses the next batch from what is waiting."""

    side_by_side: bool
    """True when lanes that share hardware may all be used."""

    def pick(self, waiting: Sequence[Work], most: int, now_s: float, expected_s: ExpectedTime) -> list[Work]:
        """At most ``most`` pieces, never empty when ``waiting`` is not; pieces of one text stay in order."""


class Fifo:
    """The published behaviour: whole requests, one piece at a time, in order of arrival."""

    side_by_side = False

    def pick(self, waiting: Sequence[Work], most: int, now_s: float, expected_s: ExpectedTime) -> list[Work]:
        del most, now_s, expected_s
        return [min(waiting, key=lambda work: (work.utterance.arrived_s, work.piece.index))]


class Deadline:
    """First segments before everything; later ones by when their listener's buffer runs dry."""

    side_by_side = True

    def __init__(self, starvation_s: float, first_delay_bound_s: float) -> None:
        self._starvation_s = starvation_s
        self._first_delay_bound_s = first_delay_bound_s
        self._openers_in_a_row = 0

    def pick(self, waiting: Sequence[Work], most: int, now_s: float, expected_s: ExpectedTime) -> list[Work]:
        ranked = sorted(waiting, key=lambda work: (not work.opens, work.due_s, work.piece.index))
        head = self._starving(ranked, now_s) or ranked[0]
        self._openers_in_a_row = self._openers_in_a_row + 1 if head.opens else 0
        return self._with_company(head, ranked, most, expected_s)

    def _starving(self, ranked: Sequence[Work], now_s: float) -> Work | None:
        if self._openers_in_a_row < OPENERS_IN_A_ROW:
            return None
        latest = next((work for work in ranked if not work.opens), None)
        return latest if latest and now_s - latest.due_s > self._starvation_s else None

    def _with_company(self, head: Work, ranked: Sequence[Work], most: int, expected_s: ExpectedTime) -> list[Work]:
        batch, left_out = [head], set[int]()
        for work in ranked:
            if len(batch) == most:
                break
            if work is head or id(work.utterance) in left_out:
                continue
            if similar(work, batch) and self._affordable(work, batch, expected_s):
                batch.append(work)
            else:
                left_out.add(id(work.utterance))
        return batch

    def _affordable(self, work: Work, batch: list[Work], expected_s: ExpectedTime) -> bool:
        """Newcomers always get along; later segments must not make anybody's first audio late."""
        if work.opens:
            return True
        with_it = expected_s([member.piece.item for member in (*batch, work)])
        openers = [member.piece.item for member in batch if member.opens]
        if openers:
            return with_it <= COMPANY_COST * expected_s(openers)
        return with_it <= self._first_delay_bound_s


def similar(work: Work, batch: Sequence[Work]) -> bool:
    """True when padding ``batch`` with ``work`` wastes little."""
    sizes = [member.tokens for member in (*batch, work)]
    return max(sizes) <= LENGTH_RATIO * max(1, min(sizes))
