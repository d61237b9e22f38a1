"""The real model once a session, ours and upstream's, from the same checkpoint."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

from container.engine.batch import Item
from container.engine.kokoro import KokoroEngine
from container.settings import Settings
from container.weights import ModelDir, resolve
from container.weights.vocabulary import TOKENS, VOCABULARY, tokenise

TEXTS = (
    "Hello there, who are you?",
    "The parcel arrives on Tuesday at noon.",
    "Yes, certainly; nobody was surprised.",
    "A quick brown fox jumps over the lazy dog while the old band plays on by the river.",
    "We measured it twice, and twice it came out longer than anyone in the room had dared to expect.",
    "Rain fell. Then it stopped, the street lamps went out one after another, and the town was quiet.",
    "Please hold the line; your call is important to us and will be answered by the next person who is free.",
    "In the beginning there was one request at a time behind a lock, and every listener waited for all the others "
    "to finish, which is how a graphics card comes to be busy for less than half of the day.",
)
UPSTREAM_CONFIG: dict[str, Any] = {
    "vocab": VOCABULARY, "n_token": TOKENS, "hidden_dim": 512, "style_dim": 128, "n_layer": 3, "max_dur": 50,
    "n_mels": 80, "dim_in": 64, "dropout": 0.2, "text_encoder_kernel_size": 5,
    "istftnet": {
        "upsample_rates": [10, 6], "upsample_kernel_sizes": [20, 12], "gen_istft_n_fft": 20, "gen_istft_hop_size": 5,
        "resblock_kernel_sizes": [3, 7, 11], "resblock_dilation_sizes": [[1, 3, 5]] * 3,
        "upsample_initial_channel": 512,
    },
    "plbert": {
        "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 2048, "max_position_embeddings": 512,
        "num_hidden_layers": 12, "dropout": 0.1,
    },
}  # fmt: skip


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

        return KModel(repo_id="hexgrad/Kokoro-82M", config=UPSTREAM_CONFIG, model=str(model.checkpoint)).eval()


@pytest.fixture(scope="session")
def items(engine: KokoroEngine, model: ModelDir) -> list[Item]:
    """Eight segments of 25 to 200 characters with different voices and speeds."""
    voices = [torch.load(path, weights_only=True).reshape(-1, 256) for path in model.voice_files.values()]
    speeds = (1.0, 0.8, 1.25, 1.0, 1.1, 0.9, 1.5, 1.0)
    built = []
    for index, (text, speed) in enumerate(zip(TEXTS, speeds, strict=True)):
        tokens = tokenise(engine._phonemise(text))
        built.append(Item(tokens, voices[index % len(voices)][len(tokens) - 3], speed))
    return built
