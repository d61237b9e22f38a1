"""Corpora: what ships, what a file may hold, and the order users speak it in."""

from __future__ import annotations

import hashlib
from itertools import islice
from pathlib import Path

import pytest

from loadtest.corpus import load, shuffled
from planner.errors import UsageError


def test_short_clips_have_the_published_length_distribution() -> None:
    workload = load("short-clips").workload(seed=0, response_format="pcm", voice=None)
    assert (workload.chars_min, workload.chars_max) == (6, 61)
    assert workload.chars_mean == pytest.approx(25.2, abs=1.0)


def test_paragraphs_hold_several_sentences_each() -> None:
    assert all(text.count(". ") >= 2 for text in load("paragraphs").texts)


def test_identity_ignores_comments_and_blank_lines(tmp_path: Path) -> None:
    file = tmp_path / "mine.txt"
    file.write_text("# a comment\n\nOne.\nTwo words.\n", encoding="utf-8")
    corpus = load(str(file))
    assert corpus.name == "mine"
    assert corpus.texts == ("One.", "Two words.")
    assert corpus.sha256 == hashlib.sha256(b"One.\nTwo words.").hexdigest()
    workload = corpus.workload(seed=3, response_format="wav", voice="jf_alpha")
    assert (workload.chars_min, workload.chars_mean, workload.chars_max, workload.seed) == (4, 7.0, 10, 3)


@pytest.mark.parametrize("content", ["", "\n\n", "# only a comment\n"])
def test_an_empty_corpus_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "empty.txt"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match="no text"):
        load(str(file))


def test_an_unknown_name_lists_what_ships() -> None:
    with pytest.raises(UsageError) as caught:
        load("no-such-corpus")
    assert "paragraphs, short-clips" in caught.value.hint


def test_every_user_speaks_every_text_in_an_order_of_its_own() -> None:
    first = list(islice(shuffled(60, "0/0/a"), 120))
    assert sorted(first[:60]) == sorted(first[60:]) == list(range(60))
    assert first[:60] != first[60:]
    assert first == list(islice(shuffled(60, "0/0/a"), 120))
    assert first != list(islice(shuffled(60, "0/0/b"), 120))
