"""The published phoneme vocabulary of Kokoro-82M: symbol -> token."""

from __future__ import annotations

BOUNDARY = 0
"""Token before the first and after the last phoneme."""

TOKENS = 178
"""Rows of the embedding; not all are symbols."""

MAX_PHONEMES = 510
"""Positions of the text encoder, less the two boundaries."""

_RUNS = (
    (1, ";:,.!?"),
    (9, '—…"()“” \u0303ʣʥʦʨᵝ\uab67AI'),
    (31, "O"),
    (33, "Q"),
    (35, "ST"),
    (39, "W"),
    (41, "Yᵊabcdef"),
    (50, "hijklmnopqrstuvwxyzɑɐɒæ"),
    (75, "βɔɕç"),
    (80, "ɖðʤə"),
    (85, "ɚɛɜ"),
    (90, "ɟ"),
    (92, "ɡ"),
    (99, "ɥ"),
    (101, "ɨɪʝ"),
    (110, "ɯɰŋɳɲɴø"),
    (118, "ɸθœ"),
    (123, "ɹ"),
    (125, "ɾɻ"),
    (128, "ʁɽʂʃʈʧ"),
    (135, "ʊʋ"),
    (138, "ʌɣɤ"),
    (142, "χʎ"),
    (147, "ʒʔ"),
    (156, "ˈˌː"),
    (162, "ʰ"),
    (164, "ʲ"),
    (169, "↓"),
    (171, "→↗↘"),
    (177, "ᵻ"),
)

VOCABULARY: dict[str, int] = {symbol: first + i for first, run in _RUNS for i, symbol in enumerate(run)}


def spoken(phonemes: str) -> str:
    """``phonemes`` without the symbols the model does not know."""
    return "".join(symbol for symbol in phonemes if symbol in VOCABULARY)


def tokenise(phonemes: str) -> list[int]:
    """Tokens with boundaries; symbols the model does not know are skipped, as upstream does."""
    return [BOUNDARY, *(VOCABULARY[symbol] for symbol in phonemes if symbol in VOCABULARY), BOUNDARY]
