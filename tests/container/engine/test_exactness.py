"""A padded batch equals single runs of upstream's own model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from container.engine.batch import Item, Synthesiser
from container.engine.graphs import ShapedSynthesiser
from container.engine.network import Kokoro
from container.engine.network.checkpoint import load_network, set_convolution_type
from container.engine.shapes import Shapes
from container.weights import ModelDir

pytestmark = pytest.mark.kokoro
CPU = torch.device("cpu")


def gaussians(index: int, samples: int) -> torch.Tensor:
    """Upstream's noise for one item: a draw for each of nine harmonics."""
    generator = torch.Generator().manual_seed(100 + index)
    return torch.randn(1, 600 * 600, 9, generator=generator)[:, :samples]


def mixed_noise(network: Kokoro) -> Any:
    """The same noise as our network takes it: mixed over harmonics, unit variance."""
    mix = network.decoder.generator.m_source.l_linear.weight[0]
    return lambda index, samples: gaussians(index, samples)[0].to(mix.dtype) @ (mix / mix.norm())


@contextmanager
def upstream_noise(index: int) -> Iterator[None]:
    """Upstream draws with torch.randn_like; only the nine-harmonic draw reaches the audio."""
    original = torch.randn_like

    def drawn(x: torch.Tensor) -> torch.Tensor:
        return gaussians(index, x.shape[1]).to(x.dtype) if x.shape[-1] == 9 else torch.zeros_like(x)

    torch.randn_like = drawn
    try:
        yield
    finally:
        torch.randn_like = original


@contextmanager
def default_type(dtype: torch.dtype) -> Iterator[None]:
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextmanager
def injected(upstream: Any, source: torch.Tensor) -> Iterator[None]:
    """Upstream with ``source`` in place of its harmonic source."""
    module = upstream.decoder.generator.m_source
    original = module.forward
    module.forward = lambda _f0: (source.unsqueeze(-1), None, None)
    try:
        yield
    finally:
        module.forward = original


@torch.inference_mode()
def upstream_run(upstream: Any, item: Item, index: int) -> tuple[NDArray[Any], list[int]]:
    with upstream_noise(index):
        audio, durations = upstream.forward_with_tokens(
            torch.tensor([item.tokens]), item.style.unsqueeze(0).to(upstream.bert_encoder.weight.dtype), item.speed
        )
    return audio.double().numpy(), durations.tolist()


def snr_db(reference: NDArray[Any], other: NDArray[Any]) -> float:
    reference, other = reference.astype(np.float64), other.astype(np.float64)
    return float(10 * np.log10((reference**2).sum() / ((reference - other) ** 2).sum()))


@pytest.fixture(scope="module")
def exact(model: ModelDir) -> Synthesiser:
    return Synthesiser(load_network(model.checkpoint), CPU)


def test_batch_of_eight_with_the_source_injected(exact: Synthesiser, upstream: Any, items: list[Item]) -> None:
    sources: list[torch.Tensor] = []
    hook = exact.network.decoder.generator.m_source.register_forward_hook(lambda _m, _i, out: sources.append(out))
    batch = exact(items, mixed_noise(exact.network))
    hook.remove()
    for index, (item, ours) in enumerate(zip(items, batch, strict=True)):
        with injected(upstream, sources[0][index : index + 1, : len(ours.samples)]):
            reference, durations = upstream_run(upstream, item, index)
        assert ours.durations == durations
        assert len(ours.samples) == len(reference)
        assert np.abs(ours.samples - reference).max() <= 2e-4  # phase of near-silent bins; see the float64 test


@pytest.mark.parametrize("count", [3, pytest.param(8, marks=pytest.mark.slow)])
def test_batch_in_double_precision(model: ModelDir, items: list[Item], upstream: Any, count: int) -> None:
    with default_type(torch.float64):
        double = Synthesiser(load_network(model.checkpoint, torch.float64), CPU)
        window = upstream.decoder.generator.stft.window
        upstream.double()
        upstream.decoder.generator.stft.window = window.double()
        try:
            batch = double(items[:count], mixed_noise(double.network))
            for index in range(count):
                reference, durations = upstream_run(upstream, items[index], index)
                assert batch[index].durations == durations
                assert np.abs(batch[index].samples - reference).max() <= 1e-7
        finally:
            upstream.float()
            upstream.decoder.generator.stft.window = window


def test_single_precision_is_within_the_thread_count_control(exact: Synthesiser, items: list[Item]) -> None:
    """End to end, tiny differences of pitch add up to phase; the same model on other threads shows as much."""
    noise = mixed_noise(exact.network)
    index = 1
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    one = exact([items[index]], lambda _i, n: noise(index, n))[0].samples
    torch.set_num_threads(2)
    two = exact([items[index]], lambda _i, n: noise(index, n))[0].samples
    batch = exact(items[:3], noise)[index].samples
    torch.set_num_threads(threads)
    assert snr_db(two, batch) >= min(snr_db(two, one), 60.0) - 6.0


def test_padding_to_warmed_shapes_changes_nothing(exact: Synthesiser, items: list[Item]) -> None:
    """The path that CUDA graphs replay, run without a graph."""
    noise = mixed_noise(exact.network)
    shaped = ShapedSynthesiser(exact.network, CPU, Shapes(batches=(4,), tokens=(64, 128), frames=(256, 400)))
    plain, padded = exact(items[:3], noise), shaped(items[:3], noise)
    assert len(padded) == 3
    for one, other in zip(plain, padded, strict=True):
        assert one.durations == other.durations
        assert snr_db(one.samples, other.samples) >= 35


def log_spectral_distance_db(a: NDArray[Any], b: NDArray[Any]) -> float:
    """Mean over frames of the RMS difference of log spectra, the quietest 40 dB below peak left out."""
    spectra = []
    for signal in (a, b):
        frames = np.lib.stride_tricks.sliding_window_view(signal.astype(np.float64), 1024)[::256] * np.hanning(1024)
        spectra.append(np.abs(np.fft.rfft(frames)) ** 2)
    floor = spectra[0].max() * 1e-4
    logs = [10 * np.log10(np.maximum(s, floor)) for s in spectra]
    return float(np.sqrt(((logs[0] - logs[1]) ** 2).mean(1)).mean())


def test_bf16_convolutions_keep_durations_and_the_spectrum(
    model: ModelDir, exact: Synthesiser, items: list[Item]
) -> None:
    network = load_network(model.checkpoint)
    set_convolution_type(network.decoder, torch.bfloat16)
    noise = mixed_noise(exact.network)
    full, reduced = exact(items[:2], noise), Synthesiser(network, CPU)(items[:2], noise)
    for one, other in zip(full, reduced, strict=True):
        assert one.durations == other.durations
        assert log_spectral_distance_db(one.samples, other.samples) < 1.0
