"""Which device and number format to compute in. CPUs differ too much for a table, so they are asked."""

from __future__ import annotations

import time
from pathlib import Path

import torch
import torch.nn.functional as F

from container.engine.base import EngineError

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
WORTH_IT = 1.2
"""A format must be this much faster on the generator's commonest convolution before quality is spent on it."""

NVIDIA_DRIVER = Path("/dev/nvidiactl")
"""There in a container exactly when the host gave it a GPU."""


def choose_device(wanted: str) -> torch.device:
    if wanted == "cuda" and not torch.cuda.is_available():
        raise EngineError("DEVICE=cuda, but torch sees no CUDA device; set DEVICE=auto or install torch for CUDA")
    if wanted == "cpu" or torch.cuda.is_available():
        return torch.device("cpu" if wanted == "cpu" else "cuda")
    if torch.version.cuda is not None and NVIDIA_DRIVER.exists():
        raise EngineError(
            f"there is a GPU, but torch for CUDA {torch.version.cuda} cannot use it: its driver is probably too old. "
            "Choose a newer inference_ami_version, build with TORCH_INDEX_URL, or set DEVICE=cpu"
        )
    return torch.device("cpu")


def choose_precision(wanted: str, device: torch.device) -> torch.dtype:
    """The type of the vocoder's convolutions; everything that decides durations and pitch stays in fp32."""
    if wanted in PRECISIONS:
        return PRECISIONS[wanted]
    if wanted != "auto":
        raise EngineError(f"PRECISION={wanted} is for ENGINE=onnx; this engine takes auto, {', '.join(PRECISIONS)}")
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16
    faster = convolution_s(torch.float32) / convolution_s(torch.bfloat16)
    return torch.bfloat16 if faster >= WORTH_IT else torch.float32


def convolution_s(dtype: torch.dtype, repeats: int = 4) -> float:
    """Best time of 128 -> 128 channels, kernel 7, over 2 000 frames."""
    x = torch.randn(1, 128, 1, 2_000).to(dtype).contiguous(memory_format=torch.channels_last)
    kernel = torch.randn(128, 128, 1, 7).to(dtype).contiguous(memory_format=torch.channels_last)
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        F.conv2d(x, kernel, padding=(0, 3))
        times.append(time.perf_counter() - start)
    return min(times)
