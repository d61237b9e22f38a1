"""Cost line, shapes, core sharing, voice mixes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from container.engine.base import EngineError
from container.engine.cost import CostModel
from container.engine.precision import choose_precision
from container.engine.shapes import MOST_FRAMES_IN_A_GRAPH, Shapes, padding_waste, round_up
from container.engine.threads import SharedCores
from container.engine.voicebank import VoiceBank


def test_cost_is_the_line_through_two_measurements() -> None:
    cost = CostModel.through([(10, 0.1), (60, 0.35)])
    assert cost(10) == pytest.approx(0.1)
    assert cost(110) == pytest.approx(0.6)
    assert cost(60, speed=2.0) == pytest.approx(0.2)


@pytest.mark.parametrize("measured", [[(10, 0.3), (60, 0.1)], [(10, 0.2), (10, 0.3)]])
def test_a_noisy_measurement_gives_no_negative_cost(measured: list[tuple[int, float]]) -> None:
    cost = CostModel.through(measured)
    assert cost.per_token_s == 0
    assert cost(500) > 0


@pytest.mark.parametrize(("size", "rounded"), [(1, 32), (32, 32), (33, 64), (512, 512), (600, 600)])
def test_sizes_round_up_to_a_warmed_one_or_stay(size: int, rounded: int) -> None:
    assert round_up(size, Shapes().tokens) == rounded


def test_warmed_shapes_are_bounded_and_hold_any_text_of_their_length() -> None:
    shapes = Shapes()
    assert all(batch * frames <= MOST_FRAMES_IN_A_GRAPH for batch, frames in shapes.spoken())
    assert (1, 64) in shapes.spoken()
    assert (32, 256) in shapes.spoken()
    assert shapes.tokens_for(192) == 256
    assert padding_waste([50, 100], 2, 100) == pytest.approx(0.25)


def test_a_lone_call_gets_every_core_and_overlapping_calls_share() -> None:
    cores = SharedCores(4)
    before = torch.get_num_threads()
    try:
        with cores.share():
            assert torch.get_num_threads() == 4
            with cores.share():
                assert torch.get_num_threads() == 2
        with cores.share():
            assert torch.get_num_threads() == 4
    finally:
        torch.set_num_threads(before)


def test_precision_is_refused_where_it_belongs_to_another_engine() -> None:
    assert choose_precision("fp32", torch.device("cpu")) == torch.float32
    with pytest.raises(EngineError, match="ENGINE=onnx"):
        choose_precision("int8", torch.device("cpu"))


def test_voices_mix_by_weight_and_the_default_comes_first(tmp_path: Path) -> None:
    for name, value in (("anna", 1.0), ("bert", 3.0)):
        torch.save(torch.full((510, 1, 256), value), tmp_path / f"{name}.pt")
    bank = VoiceBank({path.stem: path for path in sorted(tmp_path.iterdir())}, "bert")
    assert bank.names == ("bert", "anna")
    assert bank.style("anna*0.25+bert*0.75", 20).tolist() == [2.5] * 256
    assert bank.style("anna", 9_999).tolist() == [1.0] * 256
    with pytest.raises(EngineError, match="carla"):
        bank.style("carla", 5)
