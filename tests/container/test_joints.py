"""Silence where pieces meet."""

from __future__ import annotations

import numpy as np
import pytest

from container.joints import joined, pause_s


def spoken(lead_s: float, speech_s: float, trail_s: float) -> np.ndarray:
    parts = [(lead_s, 0.001), (speech_s, 0.3), (trail_s, 0.001)]
    return np.concatenate([np.full(round(seconds * 24_000), level, np.float32) for seconds, level in parts])


@pytest.mark.parametrize(
    ("text", "first", "last", "seconds"),
    [
        ("One whole text.", True, True, 0.27 + 2.0 + 0.70),
        ("A sentence.", True, False, 0.27 + 2.0 + 0.30),
        ("A clause,", True, False, 0.27 + 2.0 + 0.15),
        ("The old lighthouse keeper", True, False, 0.27 + 2.0 + 0.05),
        ("in the middle,", False, False, 0.05 + 2.0 + 0.15),
        ("and the end.", False, True, 0.05 + 2.0 + 0.70),
    ],
)
def test_what_is_kept(text, first, last, seconds):
    samples = joined(spoken(0.27, 2.0, 0.70), text, first=first, last=last)
    assert len(samples) / 24_000 == pytest.approx(seconds, abs=0.001)
    assert (np.abs(samples) > 0.1).sum() == 48_000, "nothing that can be heard is cut"


@pytest.mark.parametrize(
    ("text", "pause"), [("“Go!”", 0.30), ("(see below)", 0.05), ("well —", 0.15), ("等一下。", 0.30)]
)
def test_closing_quotes_do_not_hide_the_mark(text, pause):
    assert pause_s(text) == pause


def test_silence_is_left_alone():
    samples = np.zeros(100, np.float32)
    assert joined(samples, "…", first=False, last=False) is samples
