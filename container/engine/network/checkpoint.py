"""Load a published checkpoint into the network without initialising anything twice."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch import Tensor, nn

from container.engine.network.kokoro import Kokoro
from container.engine.network.layers import Conv, TransposedConv
from container.engine.network.source import Spectrum

RENAMED = (
    (re.compile(r"^bert\.encoder\.embedding_hidden_mapping_in\."), "bert.projection."),
    (re.compile(r"^bert\.encoder\.albert_layer_groups\.0\.albert_layers\.0\."), "bert.layer."),
    (re.compile(r"\.(weight|bias)_(ih|hh)_l0_reverse$"), r".backwards.\1_\2_l0"),
    (re.compile(r"(?<!backwards)\.(weight|bias)_(ih|hh)_l0$"), r".forwards.\1_\2_l0"),
)
UNUSED = re.compile(r"^bert\.pooler\.|\.position_ids$")
NORM_AFFINE = re.compile(r"\.norm\d?\.?\d*\.norm\.(weight|bias)$|\.adain\d\.\d\.norm\.(weight|bias)$")


class CheckpointError(Exception):
    """The file is not a Kokoro-82M checkpoint."""


def load_network(path: Path, dtype: torch.dtype = torch.float32) -> Kokoro:
    """The network in evaluation mode on the CPU, all of it in ``dtype``."""
    with torch.device("meta"):
        network = Kokoro()
    nested = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    problems = network.load_state_dict(_translate(nested, dtype), strict=False, assign=True)
    if problems.missing_keys or problems.unexpected_keys:
        missing, unexpected = problems.missing_keys[:3], problems.unexpected_keys[:3]
        raise CheckpointError(f"{path} is not a Kokoro-82M checkpoint: missing {missing}, unexpected {unexpected}")
    network.decoder.generator.spectrum = Spectrum(dtype)
    return network.to(dtype).eval().requires_grad_(False)


def _translate(nested: dict[str, dict[str, Tensor]], dtype: torch.dtype) -> dict[str, Tensor]:
    """The published names and weight norm, flattened into ours."""
    flat = {
        f"{part}.{key.removeprefix('module.')}": value.to(dtype)
        for part, module_state in nested.items()
        for key, value in module_state.items()
    }
    state: dict[str, Tensor] = {}
    for key, value in flat.items():
        if UNUSED.search(key) or key.endswith(".weight_g"):
            continue
        if NORM_AFFINE.search(key):
            _require_identity(key, value)
            continue
        name = key
        if key.endswith(".weight_v"):
            name = key.removesuffix("_v")
            value = fold_weight_norm(value, flat[f"{name}_g"])
        else:
            value = value.clone()  # the file's mapping, half of it needed no more, is given up
        for pattern, replacement in RENAMED:
            name = pattern.sub(replacement, name)
        state[name] = value
    return state


def fold_weight_norm(direction: Tensor, norm: Tensor) -> Tensor:
    return direction * (norm / torch.norm_except_dim(direction, 2, 0))


def _require_identity(key: str, value: Tensor) -> None:
    """Instance norms carry an affine map in the file that upstream never trained; the network has none."""
    identity = 1.0 if key.endswith("weight") else 0.0
    if not torch.all(value == identity):
        raise CheckpointError(f"{key} is not the identity; this checkpoint needs an affine instance norm")


def set_convolution_type(module: nn.Module, dtype: torch.dtype) -> None:
    """Compute the convolutions of ``module`` in ``dtype``, kernels stored in the order the layout wants."""
    for conv in module.modules():
        if isinstance(conv, Conv | TransposedConv):
            kernel = conv.weight.to(dtype).unsqueeze(2).contiguous(memory_format=torch.channels_last)
            conv.weight = nn.Parameter(kernel, requires_grad=False)
            if conv.bias is not None:
                conv.bias = nn.Parameter(conv.bias.to(dtype), requires_grad=False)
