"""The int8 ONNX export of Kokoro-82M as the published checkpoint: dequantised, renamed, weight norm unfolded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]

WEIGHT_NORMED = re.compile(
    r"^(text_encoder\.cnn\.\d\.0|predictor\.(F0|N)\.\d\.(conv1|conv2|conv1x1|pool)"
    r"|decoder\.(encode|decode\.\d)\.(conv1|conv2|conv1x1|pool)|decoder\.(F0_conv|N_conv|asr_res\.0)"
    r"|decoder\.generator\.(ups\.\d|conv_post|(resblocks|noise_res)\.\d\.convs[12]\.\d))\.weight$"
)
INSTANCE_NORMS = re.compile(r"^(.*\.(?:norm[12]|adain[12]\.\d))\.fc\.bias$")
NOT_A_PARAMETER = re.compile(r"_\d+\.weight$|\.i?stft\.")
"""Repeats of the shared text-encoder layer, and the export's own Fourier transform."""
POOLER = {"bert.pooler.weight": (768, 768), "bert.pooler.bias": (768,)}
OUTSIDE_PREDICTOR = ("F0.", "N.", "F0_proj.", "N_proj.", "shared.")


class Graph:
    """An ONNX graph's initialisers and nodes, as numpy."""

    def __init__(self, path: Path) -> None:
        import onnx
        from onnx import numpy_helper

        graph = onnx.load(path).graph
        self.nodes = list(graph.node)
        self.constants: dict[str, NDArray[Any]] = {t.name: numpy_helper.to_array(t) for t in graph.initializer}

    def weights(self) -> Iterator[tuple[str, Array]]:
        """(name, value) of every constant that looks like a parameter of the checkpoint."""
        for name, value in self.constants.items():
            if name.startswith(("encoder.", "decoder.")) and value.dtype == np.float32 and not name.endswith("_scale"):
                yield checkpoint_name(name), value
        readers: dict[str, Callable[[Any], Iterator[tuple[str, Array]]]] = {
            "MatMulInteger": self._matmul_integer,
            "ConvInteger": self._conv_integer,
            "DequantizeLinear": self._embedding,
            "DynamicQuantizeLSTM": self._lstm,
            "Conv": self._float_weight,
            "ConvTranspose": self._float_weight,
            "MatMul": self._float_weight,
        }
        for node in self.nodes:
            if node.op_type in readers:
                yield from readers[node.op_type](node)

    def _scale_of(self, quantised: str) -> Array:
        return self.constants[quantised.removesuffix("_quantized") + "_scale"]

    def _matmul_integer(self, node: Any) -> Iterator[tuple[str, Array]]:
        weight = node.input[1]
        if weight in self.constants:
            levels = self.constants[weight].astype(np.float32) - self.constants[node.input[3]].astype(np.float32)
            yield f"{module_of(node.name)}.weight", (levels * self._scale_of(weight)).T

    def _conv_integer(self, node: Any) -> Iterator[tuple[str, Array]]:
        levels = self.constants[node.input[1]].astype(np.float32)
        zero = self.constants[node.input[3]].astype(np.float32).reshape(-1, 1, 1)
        scale = self._scale_of(node.input[1]).reshape(-1, 1, 1)
        yield f"{module_of(node.name)}.weight", (levels - zero) * scale

    def _embedding(self, node: Any) -> Iterator[tuple[str, Array]]:
        scale = node.input[1]
        if scale in self.constants and scale.endswith(".weight_scale"):
            name = scale.removesuffix("_scale")
            levels = self.constants[f"{name}_quantized"].astype(np.float32)
            zero = self.constants[node.input[2]].astype(np.float32)
            yield checkpoint_name(name), (levels - zero) * self.constants[scale]

    def _float_weight(self, node: Any) -> Iterator[tuple[str, Array]]:
        if node.input[1] in self.constants:
            value = self.constants[node.input[1]]
            yield f"{module_of(node.name)}.weight", value.T if node.op_type == "MatMul" else value

    def _lstm(self, node: Any) -> Iterator[tuple[str, Array]]:
        """Gates are i, o, f, c in ONNX and i, f, c, o in torch; both bias vectors lie in one row."""
        module = module_of(node.name)
        for weight, zero, kind in ((1, 9, "ih"), (2, 11, "hh")):
            name = node.input[weight]
            levels, scale = self.constants[name].astype(np.float32), self._scale_of(name)
            offset = self.constants[node.input[zero]].astype(np.float32)
            for direction, suffix in enumerate(("", "_reverse")):
                value = (levels[direction] - _of_direction(offset, direction)) * _of_direction(scale, direction)
                yield f"{module}.weight_{kind}_l0{suffix}", torch_gates(value.T)
        for direction, suffix in enumerate(("", "_reverse")):
            halves = np.split(self.constants[node.input[3]][direction], 2)
            for kind, bias in zip(("ih", "hh"), halves, strict=True):
                yield f"{module}.bias_{kind}_l0{suffix}", torch_gates(bias)


def _of_direction(parameter: Array, direction: int) -> Array:
    """A quantisation parameter is shared, or given for each direction, or for each direction and column."""
    return parameter[direction] if parameter.ndim else parameter


def torch_gates(stacked: Array) -> Array:
    i, o, f, c = np.split(stacked, 4)
    return np.concatenate([i, f, c, o])


def checkpoint_name(initialiser: str) -> str:
    """``decoder.decoder.x`` is ``decoder.x``; ``encoder.x`` is ``x``."""
    return initialiser.split(".", 1)[1]


def module_of(node: str) -> str:
    """``/encoder/text_encoder/cnn.0/cnn.0.0/Conv_quant`` computes with ``text_encoder.cnn.0.0``."""
    parts: list[str] = []
    for part in node.strip("/").split("/")[1:-1]:
        if parts and part.startswith(f"{parts[-1]}."):
            parts.pop()
        parts.append(part)
    name = ".".join(parts)
    return f"predictor.{name}" if f"{name}.".startswith(OUTSIDE_PREDICTOR) else name


def import_int8(path: Path) -> dict[str, dict[str, Array]]:
    """Module name -> state dict, as the published checkpoint has it, with every tensor upstream's loader expects."""
    state: dict[str, Array] = {}
    for name, value in Graph(path).weights():
        if NOT_A_PARAMETER.search(name):
            continue
        if WEIGHT_NORMED.match(name):
            state[f"{name}_v"], state[f"{name}_g"] = unfold_weight_norm(value)
        else:
            state[name] = np.array(value, np.float32, order="C")
    for name in list(state):
        if match := INSTANCE_NORMS.match(name):
            channels = state[name].size // 2
            state[f"{match[1]}.norm.weight"] = np.ones(channels, np.float32)
            state[f"{match[1]}.norm.bias"] = np.zeros(channels, np.float32)
    # Upstream loads nothing at all into a module whose state dict lacks a tensor, so the unused pooler is there too.
    state |= {name: np.zeros(shape, np.float32) for name, shape in POOLER.items()}
    nested: dict[str, dict[str, Array]] = {}
    for name, value in state.items():
        part, key = name.split(".", 1)
        nested.setdefault(part, {})[key] = value
    return nested


def unfold_weight_norm(weight: Array) -> tuple[Array, Array]:
    """Direction and norm of each row; a row of zeros needs a direction that is not zero, or it becomes NaN."""
    weight = np.array(weight, np.float32, order="C")
    norm = np.sqrt((weight.astype(np.float64) ** 2).sum((1, 2), keepdims=True)).astype(np.float32)
    return np.where(norm == 0, np.float32(1e-3), weight), norm
