"""The silence between pieces: a model ends every piece as if it were the last thing said."""

from __future__ import annotations

import numpy as np

from container.engine.base import SAMPLE_RATE_HZ, Samples

INAUDIBLE = 0.01
"""-40 dB of full scale."""
LEAD_S = 0.05
"""Kept before a piece that follows another."""
PAUSES_S = ((".!?…。！？", 0.30), (",;:—–、，；：", 0.15))
"""Kept after a piece, by the mark it ends with."""
NO_PAUSE_S = 0.05
"""Kept after a piece that was cut inside a phrase."""
_CLOSING = "\"'”’»)]」』）"


def joined(samples: Samples, text: str, *, first: bool, last: bool) -> Samples:
    """``samples`` without the silence that does not belong where its neighbours are."""
    loud = np.flatnonzero(np.abs(samples) > INAUDIBLE)
    if not len(loud):
        return samples
    start = 0 if first else max(0, int(loud[0]) - round(LEAD_S * SAMPLE_RATE_HZ))
    end = len(samples) if last else min(len(samples), int(loud[-1]) + 1 + round(pause_s(text) * SAMPLE_RATE_HZ))
    return samples[start:end]


def pause_s(text: str) -> float:
    """How long a speaker would rest after ``text``."""
    mark = text.rstrip().rstrip(_CLOSING)[-1:]
    return next((pause for marks, pause in PAUSES_S if mark and mark in marks), NO_PAUSE_S)
