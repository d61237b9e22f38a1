"""The real engine: long texts, mixes, memory, and the int8 export it was converted from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from container.engine.base import SAMPLE_RATE_HZ, Segment
from container.engine.batch import seeded_noise
from container.engine.kokoro import KokoroEngine, Phonemes
from container.engine.onnx import OnnxEngine
from container.settings import Settings
from container.weights import ModelDir
from container.weights.vocabulary import tokenise

pytestmark = pytest.mark.kokoro
VOICE = "jf_alpha"


@pytest.mark.parametrize("phonemes", [510, pytest.param(509, marks=pytest.mark.slow)])
def test_the_longest_texts_the_model_takes_are_spoken(engine: KokoroEngine, phonemes: int) -> None:
    text = ("hˈIli " * 100)[:phonemes]
    (template,) = engine.prepare([Segment("Yes.", VOICE, 2.0)])
    (audio,) = engine.synthesise([replace(template, tokens=phonemes + 2, payload=Phonemes(text, tokenise(text)))])
    assert 10 < len(audio) / SAMPLE_RATE_HZ < 60


def test_three_thousand_characters_without_punctuation_come_back_in_pieces(engine: KokoroEngine) -> None:
    prepared = engine.prepare([Segment("hello world " * 250, VOICE)])
    assert len(prepared) > 5
    assert all(piece.tokens <= 402 for piece in prepared)
    assert all(piece.cost_s > 0 for piece in prepared)


def test_a_voice_mix_is_neither_of_its_parts(engine: KokoroEngine) -> None:
    engine.noise = seeded_noise(1)
    voices = (VOICE, f"{VOICE}*0.5000+jm_kumo*0.5000", "jm_kumo")
    pitch = [dominant_hz(engine.synthesise(engine.prepare([Segment("Hello there.", v)]))[0]) for v in voices]
    engine.noise = None
    assert pitch[0] > pitch[1] > pitch[2]


def test_the_same_noise_gives_the_same_audio(engine: KokoroEngine) -> None:
    engine.noise = seeded_noise(7)
    prepared = engine.prepare([Segment("Good morning.", VOICE)])
    first, second = engine.synthesise(prepared)[0], engine.synthesise(prepared)[0]
    engine.noise = None
    assert np.array_equal(first, second)


def test_memory_is_flat_over_lengths_never_seen_before(engine: KokoroEngine) -> None:
    """A compiled convolution a shape, without a bound, costs 8 MiB or more for every new length."""
    texts = ("Good morning to you.", "Where did you put the keys?", "Nobody was surprised at all.")
    speeds = [round(0.9 + 0.05 * step, 2) for step in range(6)]
    batches = [engine.prepare([Segment(text, VOICE, speed)]) for speed in speeds for text in texts]
    for batch in batches[:4]:
        engine.synthesise(batch)
    before = resident_mib()
    for batch in batches[4:]:
        engine.synthesise(batch)
    assert resident_mib() - before < 100


def test_converted_weights_speak_as_the_int8_export_does(engine: KokoroEngine, model: ModelDir) -> None:
    """Level and long-term spectrum; what is left is the export's missing breath noise and its int8 activations."""
    onnx = OnnxEngine(Settings(model_dir=model.path, threads=2))
    onnx.load(lambda _stage: None)
    segment = Segment("The parcel arrives on Tuesday at noon, and nobody is at home.", VOICE)
    ours = engine.synthesise(engine.prepare([segment]))[0]
    theirs = onnx.synthesise(onnx.prepare([segment]))[0]
    assert len(ours) == pytest.approx(len(theirs), rel=0.02)
    assert level_db(theirs) == pytest.approx(level_db(ours), abs=1.0)
    difference = mean_spectrum_db(ours) - mean_spectrum_db(theirs)
    assert np.abs(difference).mean() < 2.0


def level_db(audio: NDArray[np.float32]) -> float:
    return float(10 * np.log10((audio.astype(np.float64) ** 2).mean()))


def mean_spectrum_db(audio: NDArray[np.float32]) -> NDArray[np.float64]:
    """Long-term spectrum in 64 bands."""
    frames = np.lib.stride_tricks.sliding_window_view(audio.astype(np.float64), 1024)[::256] * np.hanning(1024)
    power = (np.abs(np.fft.rfft(frames)) ** 2).mean(0)[:512].reshape(64, 8).mean(1)
    return 10 * np.log10(power + 1e-9)


def dominant_hz(audio: NDArray[np.float32]) -> float:
    """Pitch from the autocorrelation's highest peak between 60 and 500 Hz."""
    spectrum = np.abs(np.fft.rfft(audio.astype(np.float64), 2 * len(audio))) ** 2
    correlation = np.fft.irfft(spectrum)
    shortest, longest = SAMPLE_RATE_HZ // 500, SAMPLE_RATE_HZ // 60
    return SAMPLE_RATE_HZ / (shortest + int(np.argmax(correlation[shortest:longest])))


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20
