"""How far two recordings of the same speech are apart, and the rate a recogniser listens at."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FRAME, HOP = 1024, 256
QUIET_DB = 40.0
"""Bins further than this below the loudest are taken as equally silent."""


def log_spectral_distance_db(a: NDArray[np.floating], b: NDArray[np.floating]) -> float:
    """Mean over frames of the RMS difference of log spectra."""
    powers = []
    for signal in (a, b):
        frames = np.lib.stride_tricks.sliding_window_view(signal.astype(np.float64), FRAME)[::HOP] * np.hanning(FRAME)
        powers.append(np.abs(np.fft.rfft(frames)) ** 2)
    floor = powers[0].max() * 10 ** (-QUIET_DB / 10)
    logs = [10 * np.log10(np.maximum(power, floor)) for power in powers]
    return float(np.sqrt(((logs[0] - logs[1]) ** 2).mean(1)).mean())


def at_16_khz(samples: NDArray[np.floating]) -> NDArray[np.float32]:
    """24 kHz to what a recogniser takes."""
    from scipy.signal import resample_poly

    slower: NDArray[np.float64] = resample_poly(samples.astype(np.float64), 2, 3)
    return slower.astype(np.float32)
