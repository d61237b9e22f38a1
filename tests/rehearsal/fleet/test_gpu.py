"""What nvidia-smi prints, as SageMaker's metrics."""

from __future__ import annotations

import pytest

from rehearsal.fleet.gpu import parse


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("40, 2048, 8192\n", {"GPUUtilization": 40, "GPUMemoryUtilization": 25}),
        ("40, 2048, 8192\n60, 4096, 8192\n", {"GPUUtilization": 100, "GPUMemoryUtilization": 75}),
        ("", {}),
    ],
)
def test_parse(output: str, expected: dict[str, float]) -> None:
    assert parse(output) == expected
