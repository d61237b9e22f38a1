"""Which device the engine computes on, and when it refuses to guess."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from container.engine import precision
from container.engine.base import EngineError


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """A machine as torch and the device files show it."""

    def make(*, usable: bool, built_for: str | None, driver: bool) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: usable)
        monkeypatch.setattr(torch.version, "cuda", built_for)
        monkeypatch.setattr(precision, "NVIDIA_DRIVER", tmp_path if driver else Path(tmp_path, "none"))

    return make


@pytest.mark.parametrize(
    ("wanted", "usable", "built_for", "driver", "device"),
    [
        ("auto", True, "13.0", True, "cuda"),
        ("cuda", True, "13.0", True, "cuda"),
        ("cpu", True, "13.0", True, "cpu"),
        ("cpu", False, "13.0", True, "cpu"),
        ("auto", False, "13.0", False, "cpu"),
        ("auto", False, None, True, "cpu"),
    ],
)
def test_device(machine, wanted, usable, built_for, driver, device):
    machine(usable=usable, built_for=built_for, driver=driver)
    assert precision.choose_device(wanted).type == device


@pytest.mark.parametrize(
    ("wanted", "says"), [("auto", "driver is probably too old"), ("cuda", "torch sees no CUDA device")]
)
def test_a_gpu_that_cannot_be_used_is_not_replaced_by_the_cpu(machine, wanted, says):
    machine(usable=False, built_for="13.0", driver=True)
    with pytest.raises(EngineError, match=says):
        precision.choose_device(wanted)
