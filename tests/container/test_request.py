"""Validation: what passes, what is refused, and what the refusal says."""

from __future__ import annotations

import pytest

from container.errors import RequestError
from container.request import parse_request
from container.voices import canonical_voice

VOICES = ("anna", "bert", "carla")


def parse(**fields):
    return parse_request(fields, voices=VOICES, default_voice="anna", max_text_chars=100)


def test_defaults():
    request = parse(text="  Hello \n")
    assert (request.text, request.voice, request.speed) == ("Hello", "anna", 1.0)
    assert (request.format, request.transport, request.timestamps) == (None, None, False)
    assert len(request.request_id) == 32


@pytest.mark.parametrize(
    "fields",
    [
        {"voice": "bert"}, {"voice": "anna*0.5+bert*0.5"}, {"voice": None}, {"speed": 0.5}, {"speed": 2},
        {"speed": None}, {"format": "mp3"}, {"format": None},
        {"transport": "sse", "timestamps": True}, {"timestamps": False},
        {"request_id": "a-1._:Z"},
    ],
)  # fmt: skip
def test_good_fields(fields):
    assert parse(text="Hello", **fields).text == "Hello"


@pytest.mark.parametrize(
    ("fields", "mentions"),
    [
        ({"speed": 0}, "0.5 to 2.0"),
        ({"speed": -1}, "0.5 to 2.0"),
        ({"speed": 100}, "0.5 to 2.0"),
        ({"speed": float("nan")}, "0.5 to 2.0"),
        ({"speed": float("inf")}, "0.5 to 2.0"),
        ({"speed": 10**400}, "0.5 to 2.0"),
        ({"speed": True}, "boolean"),
        ({"speed": "1"}, "string"),
        ({"voice": ""}, "empty"),
        ({"voice": 7}, "number"),
        ({"voice": ["anna"]}, "list"),
        ({"voice": "a" * 600}, "512"),
        ({"format": "ogg"}, "wav, pcm, mp3"),
        ({"format": ["wav"]}, "wav, pcm, mp3"),
        ({"transport": "carrier pigeon"}, "binary, sse"),
        ({"timestamps": "yes"}, "true or false"),
        ({"timestamps": True, "transport": "binary"}, "sse"),
        ({"request_id": "bad id\r\nX-Evil: 1"}, "request_id"),
        ({"request_id": ""}, "request_id"),
        ({"voise": "anna"}, "voise"),
        ({"text": ""}, "spoken"),
        ({"text": " \n\t"}, "spoken"),
        ({"text": "😀🎉 ..."}, "spoken"),
        ({"text": "\x00\x01"}, "spoken"),
        ({"text": None}, "null"),
        ({"text": {"a": 1}}, "object"),
        ({"text": "half \udc00"}, "surrogate"),
    ],
)
def test_bad_fields(fields, mentions):
    with pytest.raises(RequestError) as caught:
        parse(**{"text": "Hello", **fields})
    assert caught.value.status == 400
    assert mentions in caught.value.message
    assert ("voices" in caught.value.body()) == ("voice" in fields)


def test_every_problem_is_named_at_once():
    with pytest.raises(RequestError) as caught:
        parse(text=1, speed=9, format="ogg")
    assert len(caught.value.details["problems"]) == 3


def test_control_characters_become_spaces():
    assert parse(text="one\x00two\x1bthree").text == "one two three"


@pytest.mark.parametrize(
    ("spec", "canonical"),
    [
        ("anna", "anna"),
        ("anna*3", "anna"),
        ("anna*0.6+bert*0.4", "anna*0.6000+bert*0.4000"),
        ("anna*3 + bert*1", "anna*0.7500+bert*0.2500"),
        ("anna+bert", "anna*0.5000+bert*0.5000"),
        ("anna*1+bert*0", "anna"),
        ("anna*1+anna*2", "anna"),
        ("anna*1e0+bert*1e-9", "anna"),
    ],
)
def test_mixes_have_one_spelling(spec, canonical):
    assert canonical_voice(spec, VOICES) == canonical


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ("zoe", "unknown_voice"),
        ("anna+zoe", "unknown_voice"),
        ("anna**2", "unknown_voice"),
        ("+", "unknown_voice"),
        ("anna+", "unknown_voice"),
        ("../../etc/passwd", "unknown_voice"),
        ("anna*-1+bert*2", "invalid_voice"),
        ("anna*0", "invalid_voice"),
        ("anna*0+bert*0", "invalid_voice"),
        ("anna*1e400+bert*1", "invalid_voice"),
        ("anna*...+bert", "invalid_voice"),
        ("+".join(["anna"] * 9), "invalid_voice"),
    ],
)
def test_bad_voices(spec, code):
    with pytest.raises(RequestError) as caught:
        canonical_voice(spec, VOICES)
    assert (caught.value.status, caught.value.code) == (400, code)
    assert caught.value.body()["voices"] == ["anna", "bert", "carla"]
