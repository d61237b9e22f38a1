"""English text to phonemes. espeak keeps global state, so one lock serialises everything here."""

from __future__ import annotations

import importlib.util
import logging
import re
import threading
from collections.abc import Callable

from container.engine.base import EngineError
from container.weights.vocabulary import spoken

SPACY_MODEL = "en_core_web_sm"

AMERICAN = (
    ("ɜːɹ", "ɜɹ"), ("ɜː", "ɜɹ"), ("ɪə", "iə"), ("ɚ", "əɹ"), ("ɐ", "ə"), ("ɬ", "l"), ("ɾ", "T"), ("ʔ", "t"),
    ("r", "ɹ"), ("x", "k"), ("ç", "k"), ("o", "ɔ"), ("ː", ""), ("ʲ", ""), ("\u0303", ""),
)  # fmt: skip
"""espeak's symbols that the model did not see in English, as misaki writes them."""

LOUD_RUN = re.compile(r"(\W)\1{7,}")
"""Long runs of one mark are read out one by one; eight are enough."""


class Phonemiser:
    """Thread-safe. Uses misaki's dictionary where spaCy's English model is installed, espeak otherwise."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        logging.getLogger("phonemizer").setLevel(logging.ERROR)
        dictionary = importlib.util.find_spec(SPACY_MODEL) is not None
        self.name = "misaki" if dictionary else "espeak"
        self._phonemise: Callable[[str], str] = _misaki() if dictionary else _espeak()

    def __call__(self, text: str) -> str:
        """Phonemes the model knows; raises EngineError where nothing can be spoken."""
        text = LOUD_RUN.sub(r"\1" * 8, " ".join(text.replace("\0", " ").split()))
        if not text:
            raise EngineError("the text is empty")
        with self._lock:
            try:
                phonemes = self._phonemise(text)
            except (RuntimeError, ValueError, IndexError, KeyError, TypeError, AttributeError) as error:
                raise EngineError(f"the text cannot be phonemised: {error}") from error
        phonemes = spoken(phonemes).strip()
        if not any(symbol.isalpha() for symbol in phonemes):
            raise EngineError("the text holds nothing that can be spoken")
        return phonemes


def _espeak() -> Callable[[str], str]:
    from misaki.espeak import EspeakG2P

    espeak = EspeakG2P("en-us")

    def phonemise(text: str) -> str:
        phonemes = str(espeak(text)[0])
        for symbol, american in AMERICAN:
            phonemes = phonemes.replace(symbol, american)
        return phonemes

    return phonemise


def _misaki() -> Callable[[str], str]:
    """misaki downloads spaCy's model when it is missing, so this is called only where it is there."""
    from misaki import en, espeak

    g2p = en.G2P(trf=False, british=False, fallback=espeak.EspeakFallback(british=False), unk="")
    return lambda text: str(g2p(text)[0])
