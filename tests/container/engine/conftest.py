"""The real model once a session, ours and upstream's, from the same checkpoint."""

from __future__ import annotations

# isort: split
import warnings
from typing import Any

import pytest
import torch

from bench.engine import UPSTREAM
from container.engine.batch import Item
from container.engine.kokoro import KokoroEngine
from container.settings import Settings
from container.weights import ModelDir, resolve
from container.weights.vocabulary import tokenise

SHORT = (
    ("Hello there, who are you?", 1.4),
    ("Nobody was surprised at all.", 1.6),
    ("The parcel arrives at noon today.", 1.75),
    ("We measured it twice, to be sure.", 1.9),
    ("Rain fell until the lamps went out.", 2.0),
    ("Please hold the line a little longer.", 2.0),
    ("A quick brown fox jumps over the dog.", 2.0),
    ("One request at a time, behind one lock.", 2.0),
)
"""Texts of 25 to 39 characters with their speeds."""
LONG = (
    *SHORT[:4],
    ("A quick brown fox jumps over the lazy dog while the old band plays on by the river.", 1.25),
    ("We measured it twice, and twice it came out longer than anyone in the room had dared to expect.", 1.5),
    ("Please hold the line; your call is important to us and the next person who is free will answer it.", 1.0),
    ("In the beginning there was one request at a time behind a lock, and every listener waited for all the others "
     "to finish, which is how a graphics card comes to be busy for less than half of the day.", 2.0),
)  # fmt: skip
"""Texts of 25 to 196 characters."""


@pytest.fixture(scope="session")
def model() -> ModelDir:
    return resolve(source="packages")


@pytest.fixture(scope="session")
def engine(model: ModelDir) -> KokoroEngine:
    engine = KokoroEngine(Settings(model_dir=model.path, device="cpu", threads=2))
    engine.load(lambda _stage: None)
    return engine


@pytest.fixture(scope="session")
def upstream(model: ModelDir) -> Any:
    """kokoro.KModel itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from kokoro import KModel

        return KModel(repo_id="hexgrad/Kokoro-82M", config=UPSTREAM, model=str(model.checkpoint)).eval()


@pytest.fixture(scope="session")
def short_items(engine: KokoroEngine, model: ModelDir) -> list[Item]:
    return items(SHORT, engine, model)


@pytest.fixture(scope="session")
def long_items(engine: KokoroEngine, model: ModelDir) -> list[Item]:
    return items(LONG, engine, model)


def items(texts: tuple[tuple[str, float], ...], engine: KokoroEngine, model: ModelDir) -> list[Item]:
    """A segment for each text; the voices take turns."""
    voices = [torch.load(path, weights_only=True).reshape(-1, 256) for path in model.voice_files.values()]
    built = []
    for index, (text, speed) in enumerate(texts):
        tokens = tokenise(engine._phonemise(text))
        built.append(Item(tokens, voices[index % len(voices)][len(tokens) - 3], speed))
    return built
