"""Kernel launches a request, upstream against ours, from torch's profiler. Needs a CUDA device."""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile

from bench.engine import Locked, Served
from container.settings import Settings

TEXT = "Please wait here a moment."


def launches(speak: Callable[[str], float]) -> tuple[int, int]:
    """(kernel launches, graph launches) of one request after a warm-up."""
    speak(TEXT)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recorded:
        speak(TEXT)
        torch.cuda.synchronize()
    counts = {event.key: event.count for event in recorded.key_averages()}
    kernels = sum(count for key, count in counts.items() if key.startswith(("cudaLaunchKernel", "cuLaunchKernel")))
    return kernels, sum(count for key, count in counts.items() if key.startswith("cudaGraphLaunch"))


def main() -> int:
    if not torch.cuda.is_available():
        print("error: torch sees no CUDA device\n  fix: run bench/gpu.sh on a GPU machine", file=sys.stderr)
        return 2
    print("| design | kernel launches | graph launches |\n|---|---|---|")
    for design in (Locked(Settings.from_env()), Served("ours", Settings.from_env())):
        kernels, graphs = launches(design)
        print(f"| {design.name} | {kernels} | {graphs} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
