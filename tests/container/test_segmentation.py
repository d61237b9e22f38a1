"""Cutting text: nothing lost, nothing empty, short first, never near the model's limit."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from container.segmentation import in_one, segment

SEVEN = (
    "The old lighthouse keeper climbed the stairs every evening at six. He lit the lamp, checked the clock, and wrote "
    "the weather down. Ships passed without a sound. Some nights the fog was so thick that he rang the bell. "
    "Nobody ever thanked him for it. He did not mind at all. The sea, he used to say, keeps its own accounts and pays "
    "what it owes."
)
HARSH = st.text(
    st.one_of(
        st.sampled_from(list("abc .,;:!?…“”‘’\n\t\u200d\ufe0f👩🇩е字。，、é\u0301٣$€£%&@#1239-—()[]\"'")),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=600,
)


def squeezed(text: str) -> str:
    return "".join(text.split())


@given(HARSH)
def test_nothing_is_lost(text):
    assert squeezed("".join(segment(text))) == squeezed(text)
    assert squeezed("".join(in_one(text))) == squeezed(text)


@given(HARSH)
def test_every_piece_has_something_to_say(text):
    pieces = segment(text)
    assert all(piece.strip() for piece in pieces)
    if len(pieces) > 1:
        assert all(any(char.isalnum() for char in piece) for piece in pieces)


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=200, max_size=3_000))
def test_no_piece_of_words_is_long(text):
    assert max(len(piece) for piece in segment("a" + text.replace(" ", "b") + "a")) <= 2 * 200 or not text.isalnum()


@pytest.mark.parametrize("length", range(6, 62, 5))
def test_a_short_clip_is_one_piece(length):
    words = itertools.cycle(["yes", "turn", "left", "at", "the", "lights"])
    text = ""
    while len(text) < length:
        text += next(words) + " "
    assert segment(text[:length].strip() + ".") == [text[:length].strip() + "."]


def test_two_short_sentences_stay_together():
    assert segment("Yes. I will be there at nine.") == ["Yes. I will be there at nine."]


def test_a_paragraph_starts_short_and_grows():
    pieces = segment(SEVEN)
    assert pieces[0] == "The old lighthouse keeper climbed the stairs"
    assert segment(SEVEN, first=60)[0] == "The old lighthouse keeper climbed the stairs every evening at six."
    assert " ".join(pieces) == SEVEN
    assert all(piece[-1] in ".!?" for piece in pieces[1:])


@pytest.mark.parametrize("text", [SEVEN, SEVEN * 4, "word " * 500, "Short. " * 200, "a" * 2_000])
def test_a_listener_never_waits_in_the_middle(text):
    seconds_of_speech, seconds_of_work = 0.07, 0.07 * 0.5
    ready_s = heard_until_s = 0.0
    for number, piece in enumerate(segment(text)):
        ready_s += seconds_of_work * len(piece)
        assert number == 0 or ready_s <= heard_until_s
        heard_until_s = max(heard_until_s, ready_s) + seconds_of_speech * len(piece)


@pytest.mark.parametrize(
    "sentence",
    [
        "Dr. Smith paid $1,234.50 to Mrs. O'Neill of St. Ives Ltd. in full.",
        "The U.S. team met J. R. R. Tolkien at 5 p.m. on the 3rd.",
        "It weighs 3.5 kg, i.e. less than e.g. a cat vs. a dog of 7.2 kg.",
        "Well... that was that, and nobody said any more about it at all.",
    ],
)
def test_abbreviations_and_numbers_do_not_end_a_sentence(sentence):
    pieces = segment(f"{sentence} Then something else of about the same length was said by them. And more.")
    for piece in pieces:
        assert not re.search(r"\b(Dr|Mrs|St|Ltd|U\.S|J|R|i\.e|e\.g|vs)\.$|\.\.\.$", piece)


def test_quotes_stay_with_their_sentence():
    text = "“We should leave before the rain comes,” she said. “I would rather wait until it ends.” He sat."
    for piece in segment(text):
        assert piece.count("“") == piece.count("”")


def test_a_long_first_sentence_is_cut_at_a_clause():
    text = (
        "When the last visitor had finally gone home, the keeper closed the heavy iron gate behind them and walked "
        "slowly back towards the house without once looking round."
    )
    first = segment(text)[0]
    assert first == "When the last visitor had finally gone home,"


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("a" * 3_000, 200),
        ("word " * 600, 200),
        ("9" * 500, 50),
        ("字" * 500, 34),
        ("，".join(["字" * 20] * 20), 34),
        ("👩‍👩‍👧" * 300 + "a", 2_000),
    ],
)
def test_text_without_sentences_is_still_bounded(text, most):
    pieces = segment(text)
    assert squeezed("".join(pieces)) == squeezed(text)
    assert max(map(len, pieces)) <= most


def test_fifo_takes_a_paragraph_whole_but_not_a_page():
    assert in_one(SEVEN) == [SEVEN]
    page = " ".join([SEVEN] * 8)
    assert 7 <= len(in_one(page)) <= 12
    assert max(map(len, in_one(page))) <= 400


@pytest.mark.timeout(30)
def test_a_long_text_is_cut_without_backtracking():
    text = "Some words, and then a few more of them. " * 250
    assert squeezed("".join(segment(text))) == squeezed(text)
