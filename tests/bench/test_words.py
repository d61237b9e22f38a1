"""Word errors against counts made by hand."""

from __future__ import annotations

import pytest

from bench.words import errors, right, word_error_rate, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Please hold the line.", ["please", "hold", "the", "line"]),
        ("I’m sure; aren't you?", ["i'm", "sure", "aren't", "you"]),
        ("Gate 12, at 9:30", ["gate", "12", "at", "9", "30"]),
        ("...", []),
    ],
)
def test_words_are_what_is_said(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("reference", "heard", "expected"),
    [
        ("a b c", "a b c", 0),
        ("a b c", "a x c", 1),
        ("a b c", "a c", 1),
        ("a b c", "a b b c", 1),
        ("a b c", "", 3),
        ("", "a b", 2),
        ("a b c d", "b c d e", 2),
    ],
)
def test_errors_are_the_fewest_changes(reference: str, heard: str, expected: int) -> None:
    assert errors(reference.split(), heard.split()) == expected


def test_the_rate_is_over_all_words_and_not_the_mean_of_sentences() -> None:
    """One error in a sentence of one word and none in one of four: 1 of 5."""
    assert word_error_rate(["Stop!", "Turn left at once."], ["top", "turn left at once"]) == pytest.approx(0.2)


def test_transcripts_are_paired() -> None:
    with pytest.raises(ValueError, match="shorter"):
        word_error_rate(["one", "two"], ["one"])


def test_a_sentence_is_right_if_its_words_are() -> None:
    assert right(["A b.", "c d", "e"], ["a b", "c", "E!"]) == [True, False, True]
