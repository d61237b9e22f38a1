"""Quantiles by nearest rank and distribution-free bounds on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from planner.artifacts.qmax import Quantiles

CONFIDENCE = 0.95
"""One-sided, of every bound we state."""


def nearest_rank(ordered: Sequence[float], q: float) -> float:
    """The smallest value with at least ``q`` of the sample at or below it; ``ordered`` is ascending."""
    if not ordered:
        raise ValueError("no values")
    # The subtraction keeps 0.95 * 20 = 19.000000000000004 from asking for the 20th value.
    rank = max(1, math.ceil(q * len(ordered) - 1e-9))
    return ordered[rank - 1]


@lru_cache(maxsize=4096)
def upper_rank(n: int, q: float, confidence: float = CONFIDENCE) -> int | None:
    """Smallest k for which the k-th smallest of n bounds the q-quantile from above with ``confidence``.

    P(X_(k) >= x_q) >= P(Bin(n, q) <= k - 1) (David and Nagaraja, Order Statistics, 7.1). None when even the
    largest value is too small a sample's: for q = 0.95 that is n < 59, since 0.95^59 < 0.05 < 0.95^58.
    """
    below = _binomial_cdf(n, q)
    k = int(np.searchsorted(below, confidence)) + 1
    return k if k <= n else None


@lru_cache(maxsize=4096)
def lower_rank(n: int, q: float, confidence: float = CONFIDENCE) -> int | None:
    """Largest k for which the k-th smallest of n bounds the q-quantile from below with ``confidence``.

    P(X_(k) <= x_q) >= P(Bin(n, q) >= k).
    """
    below = _binomial_cdf(n, q)
    k = int(np.searchsorted(below, 1 - confidence, side="right"))
    return k if k >= 1 else None


def summarise(values: Sequence[float]) -> Quantiles | None:
    """Quantiles and the bounds of the p95 of an unordered sample in ms; None without data.

    Values may be infinite (a request that never came); a bound that falls on one is None.
    """
    if not values:
        return None
    ordered = sorted(values)
    n = len(ordered)
    finite = [value for value in ordered if math.isfinite(value)]
    if not finite:
        return None

    def at(rank: int | None) -> float | None:
        return None if rank is None or not math.isfinite(ordered[rank - 1]) else ordered[rank - 1]

    return Quantiles(
        n=n,
        mean=math.fsum(finite) / len(finite),
        **{f"p{round(q * 100)}": nearest_rank(finite, q) for q in (0.5, 0.9, 0.95, 0.99)},
        p95_upper=at(upper_rank(n, 0.95)),
        p95_lower=at(lower_rank(n, 0.95)),
    )


def _binomial_cdf(n: int, q: float) -> NDArray[np.float64]:
    """P(Bin(n, q) <= k) for k = 0 … n, from log factorials so that a large n does not underflow."""
    if n < 1:
        raise ValueError("n must be at least 1")
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1)))))
    k = np.arange(n + 1)
    log_pmf = log_factorial[n] - log_factorial - log_factorial[::-1] + k * math.log(q) + (n - k) * math.log1p(-q)
    cdf: NDArray[np.float64] = np.minimum(np.cumsum(np.exp(log_pmf)), 1.0)
    return cdf
