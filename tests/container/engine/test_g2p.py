"""Phonemes: serial results from parallel calls, and odd text is spoken or refused."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from container.engine.base import EngineError
from container.engine.g2p import Phonemiser
from container.engine.phrasing import LONGEST, phrases
from container.weights.vocabulary import MAX_PHONEMES, VOCABULARY, spoken, tokenise

UNKNOWN_WORDS = [f"The {word} met a {word}ish crowd near {word} street." for word in (
    "zorgblat", "quenvible", "miffleton", "brastic", "ploovian", "snarkwell", "drindle", "yibbering")]  # fmt: skip


@pytest.fixture(scope="module")
def phonemise() -> Phonemiser:
    return Phonemiser()


def test_eight_parallel_texts_equal_their_serial_results_fifty_times(phonemise: Phonemiser) -> None:
    serial = [phonemise(text) for text in UNKNOWN_WORDS]
    assert len(set(serial)) == len(serial)
    with ThreadPoolExecutor(8) as pool:
        for _ in range(50):
            assert list(pool.map(phonemise, UNKNOWN_WORDS)) == serial


@pytest.mark.parametrize(
    "text", ["Hello 😀 there", "naïve café", "x" * 300, "3.14 and $5", "a\0b", "(what) [is] «this»", "?!… hi"]
)
def test_odd_text_is_spoken(phonemise: Phonemiser, text: str) -> None:
    assert set(phonemise(text)) <= set(VOCABULARY)


@pytest.mark.parametrize("text", ["", "   ", "!!!", "\n\t", "…", "\0"])
def test_text_without_words_is_refused(phonemise: Phonemiser, text: str) -> None:
    with pytest.raises(EngineError):
        phonemise(text)


@pytest.mark.parametrize("length", [LONGEST, LONGEST + 1, 509, 510, 511, 3_000])
def test_long_phonemes_without_punctuation_are_cut_under_the_limit(length: int) -> None:
    pieces = phrases("a" * length)
    assert "".join(pieces) == "a" * length
    assert all(len(tokenise(piece)) <= MAX_PHONEMES + 2 and len(piece) <= LONGEST for piece in pieces)


def test_a_cut_is_made_where_a_speaker_breathes() -> None:
    sentence = "a" * 250 + ". " + "b" * 100 + ", " + "c" * 200
    assert phrases(sentence) == ["a" * 250 + ".", "b" * 100 + ", " + "c" * 200]


def test_tokens_are_the_published_ones() -> None:
    assert tokenise("həlˈO") == [0, 50, 83, 54, 156, 31, 0]
    assert len(VOCABULARY) == 114
    assert spoken("a~b") == "ab"
