"""What is said about recordings and transcripts, from ones made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bench import quality

NOISE = np.random.default_rng(3).standard_normal(4_096).astype(np.float32)


def test_distances_of_sentences() -> None:
    """One sentence the same, one at half the level and one hop longer."""
    longer = np.concatenate([0.5 * NOISE, np.zeros(256, np.float32)])
    found = quality.distance("ours", [NOISE, NOISE], [NOISE, longer])
    assert (found.same_length, found.sentences) == (1, 2)
    assert found.max_db == pytest.approx(6.02, abs=0.05)
    assert found.mean_db == pytest.approx(3.01, abs=0.03)


def test_distances_as_a_table() -> None:
    shown = quality.distance_table([quality.Distance("ours", 0.426, 1.0, 49, 50)])
    assert shown.splitlines()[2] == "| ours | 0.43 | 1.00 | 49 of 50 |"


def test_transcripts_against_the_text_and_upstream() -> None:
    """Six words; ours has one of them wrong and differs from upstream in two of upstream's six."""
    texts = ["Hold the line.", "Yes!", "Go on."]
    transcripts = {quality.STOCK: ["hold the wine", "yes", "go on"], quality.OURS: ["hold the line", "guess", "go on"]}
    found = quality.heard(quality.OURS, texts, transcripts)
    assert found == quality.Heard("ours", wer_text=1 / 6, wer_upstream=1 / 3, same_words=1, right=2, kept=1)
    assert quality.heard_table([found]).splitlines()[2] == "| ours | 16.7% | 2 | 1 | 33.3% | 1 |"
