"""Utilisation of this machine's GPUs, where there are any."""

from __future__ import annotations

import asyncio
import shutil

TOOL = "nvidia-smi"
QUERY = ("--query-gpu=utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits")


async def read() -> dict[str, float]:
    """GPUUtilization (100 % a GPU, as SageMaker counts) and GPUMemoryUtilization; empty without a GPU."""
    if shutil.which(TOOL) is None:
        return {}
    process = await asyncio.create_subprocess_exec(
        TOOL, *QUERY, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    output, _ = await process.communicate()
    return parse(output.decode()) if process.returncode == 0 else {}


def parse(output: str) -> dict[str, float]:
    """One line a GPU: utilisation, used and total memory."""
    rows = [[float(field) for field in line.split(",")] for line in output.splitlines() if line.strip()]
    if not rows:
        return {}
    return {
        "GPUUtilization": sum(row[0] for row in rows),
        "GPUMemoryUtilization": sum(100 * row[1] / row[2] for row in rows),
    }
