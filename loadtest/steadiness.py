"""Did the measured window see one steady process? Trend and level shift, without accusing a stationary series.

A closed loop's latencies are strongly correlated (one slow request delays the N behind it), so tests that
assume independent values see trends everywhere. The window is cut into blocks of at least two turns of the
loop (2 N completions); the tests use the ranks of the blocks' medians and only speak when the change is also large
enough to matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import median

MATERIAL = 0.10
"""Share of the window's median. Below it a change moves a p95 by less than the ladder's rungs resolve."""
MATERIAL_FLOOR_MS = 10.0
"""What the client itself may add before it is called the limit."""
TREND_ALPHA = 0.01
SHIFT_ALPHA = 0.02
"""Chance to accuse independent blocks, before MATERIAL is asked for as well."""
TURNS = 2
"""Of the loop in a block: neighbouring blocks of one turn still share half of their queue."""
MAX_BLOCKS = 20
MIN_BLOCKS = 6
"""Five blocks cannot reach TREND_ALPHA: 2/5! = 0.017."""
MIN_PER_BLOCK = 6
"""Completions a block's median needs before a single slow request stops moving it."""


@dataclass(frozen=True)
class Steadiness:
    """``steady`` is None when the window holds too few turns of the loop to tell."""

    steady: bool | None
    drift: float | None
    """Second half's median minus the first half's, ms: the published figure."""
    reason: str = ""


NOT_TESTED = Steadiness(None, None)


def examine(values: Sequence[float], concurrency: int) -> Steadiness:
    """Judge latencies in ms, in completion order, from a loop of ``concurrency`` users."""
    if len(values) < 2:
        return Steadiness(None, None)
    half = len(values) // 2
    drift = median(values[half:]) - median(values[:half])
    medians = block_medians(values, concurrency)
    if len(medians) < MIN_BLOCKS:
        return Steadiness(None, drift)
    material = max(MATERIAL * median(values), MATERIAL_FLOOR_MS)
    return Steadiness(*_verdict(medians, material, drift))


def block_medians(values: Sequence[float], concurrency: int) -> list[float]:
    """Medians of equal blocks in order; the remainder goes to the front, where the window is oldest."""
    size = max(TURNS * concurrency, MIN_PER_BLOCK, math.ceil(len(values) / MAX_BLOCKS))
    count = len(values) // size
    skip = len(values) - count * size
    return [median(values[skip + i * size : skip + (i + 1) * size]) for i in range(count)]


def _verdict(medians: list[float], material: float, drift: float) -> tuple[bool, float, str]:
    shift = _level_shift(medians)
    if abs(shift) > material:
        return False, drift, f"level shift inside the window ({shift:+.0f} ms)"
    change = theil_sen(medians) * (len(medians) - 1)
    if abs(change) > material and trend_p(medians) < TREND_ALPHA:
        return False, drift, f"drift inside the window ({change:+.0f} ms from start to end)"
    return True, drift, ""


def theil_sen(values: Sequence[float]) -> float:
    """Median slope over all pairs, per step."""
    slopes = [(values[j] - values[i]) / (j - i) for i in range(len(values)) for j in range(i + 1, len(values))]
    return median(slopes)


def trend_p(values: Sequence[float]) -> float:
    """Two-sided exact p-value of Mann and Kendall's trend test; ties count as no evidence."""
    n = len(values)
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    score = sum((values[j] > values[i]) - (values[j] < values[i]) for i, j in pairs)
    # With S = pairs - 2 * inversions, |S| at least this large means at most so many inversions.
    inversions = (len(pairs) - abs(score)) // 2
    counts = _inversion_counts(n)
    return min(1.0, 2 * sum(counts[: inversions + 1]) / math.factorial(n))


@lru_cache(maxsize=32)
def _inversion_counts(n: int) -> tuple[int, ...]:
    """How many permutations of n have 0, 1, 2 … inversions (Mahonian numbers)."""
    counts = [1]
    for size in range(2, n + 1):
        longer = [0] * (len(counts) + size - 1)
        for inversions, ways in enumerate(counts):
            for added in range(size):
                longer[inversions + added] += ways
        counts = longer
    return tuple(counts)


def _level_shift(medians: Sequence[float]) -> float:
    """Difference of means where every block before lies on one side of every block after; else 0."""
    for k in separable_splits(len(medians)):
        before, after = medians[:k], medians[k:]
        if max(before) < min(after) or min(before) > max(after):
            return math.fsum(after) / len(after) - math.fsum(before) / len(before)
    return 0.0


@lru_cache(maxsize=32)
def separable_splits(blocks: int) -> tuple[int, ...]:
    """Split points, central first, whose complete separations by chance add up to at most SHIFT_ALPHA.

    Among independent blocks a given split of n at k separates completely with probability 2 / C(n, k).
    """
    central = sorted(range(1, blocks), key=lambda k: (abs(2 * k - blocks), k))
    allowed: list[int] = []
    spent = 0.0
    for k in central:
        spent += 2 / math.comb(blocks, k)
        if spent > SHIFT_ALPHA:
            break
        allowed.append(k)
    return tuple(allowed)
