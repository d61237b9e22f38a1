"""Distances that follow from the signals."""

from __future__ import annotations

import numpy as np
import pytest

from bench.spectra import at_16_khz, log_spectral_distance_db

RATE_HZ = 24_000


def noise(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(RATE_HZ).astype(np.float32)


def test_a_recording_is_at_no_distance_from_itself() -> None:
    assert log_spectral_distance_db(noise(), noise()) == 0.0


def test_half_the_level_is_six_decibels() -> None:
    """20 log10(2) = 6.02 in every bin; the few near the floor count for less."""
    assert log_spectral_distance_db(noise(), 0.5 * noise()) == pytest.approx(6.02, abs=0.05)


def test_what_lies_under_the_floor_does_not_count() -> None:
    tone = np.sin(2 * np.pi * 1_000 * np.arange(RATE_HZ) / RATE_HZ)
    assert log_spectral_distance_db(tone, tone + 1e-4 * noise()) < 0.1


def test_a_tone_keeps_its_pitch_at_the_recognisers_rate() -> None:
    tone = 0.5 * np.sin(2 * np.pi * 1_000 * np.arange(RATE_HZ) / RATE_HZ)
    slower = at_16_khz(tone)
    assert slower.dtype == np.float32
    assert len(slower) == 16_000
    assert np.argmax(np.abs(np.fft.rfft(slower))) == 1_000
    assert np.abs(slower).max() == pytest.approx(0.5, rel=0.1)
