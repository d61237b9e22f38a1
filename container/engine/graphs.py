"""CUDA graphs: a captured shape costs one launch instead of about two thousand."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from container.engine.batch import Item, Noise, Spoken, Synthesiser
from container.engine.network import Acoustics, Kokoro
from container.engine.network.kokoro import SAMPLES_PER_FRAME
from container.engine.network.layers import STYLE
from container.engine.network.text import HIDDEN
from container.engine.shapes import Shapes, round_up
from container.engine.voicebank import STYLES
from container.weights.vocabulary import BOUNDARY

log = logging.getLogger(__name__)

Graphed = Callable[..., Any]


class ShapedSynthesiser(Synthesiser):
    """Pads every batch to one of a few shapes. Replays a graph where one was captured, runs as it is otherwise."""

    def __init__(self, network: Kokoro, device: torch.device, shapes: Shapes) -> None:
        super().__init__(network, device)
        self._shapes = shapes
        self._graphs: dict[tuple[str, int, int], Graphed] = {}

    def __call__(self, items: Sequence[Item], noise: Noise | None = None) -> list[Spoken]:
        """Rows that only fill up the batch speak nothing and are dropped."""
        missing = round_up(len(items), self._shapes.batches) - len(items)
        filler = Item([BOUNDARY, BOUNDARY], torch.zeros_like(items[0].style))
        return super().__call__([*items, *[filler] * missing], noise)[: len(items)]

    @torch.inference_mode()
    def warm(self) -> int:
        """Capture the shapes; the number captured. Without room for the rest, serving goes on with fewer."""
        pool = torch.cuda.graph_pool_handle()
        try:
            for batch in self._shapes.batches:
                for tokens in self._shapes.tokens:
                    self._graphs["read", batch, tokens] = capture(self._read_padded, self._texts(batch, tokens), pool)
            for batch, frames in self._shapes.spoken():
                self._graphs["speak", batch, frames] = capture(self._speak_padded, self._sounds(batch, frames), pool)
        except RuntimeError as error:  # out of memory, or a library that cannot be captured
            log.warning("%d shapes captured, the others run without a graph: %s", len(self._graphs), error)
            torch.cuda.empty_cache()
        return len(self._graphs)

    def _read(self, tokens: Tensor, lengths: list[int], voices: Tensor, speeds: Tensor) -> Acoustics:
        wide = round_up(tokens.shape[1], self._shapes.tokens)
        ends = torch.tensor(lengths, device=self.device)
        run = self._graphs.get(("read", len(lengths), wide), self._read_padded)
        result: Acoustics = run(pad_time(tokens, wide), ends, voices, speeds)
        return result

    def _speak(self, acoustics: Acoustics, frames: list[int], voices: Tensor, noise: Noise | None) -> Tensor:
        wide = round_up(max(frames), self._shapes.frames)
        tokens = max(self._shapes.tokens_for(wide), acoustics.durations.shape[1])
        parts = [pad_time(part, tokens) for part in (acoustics.prosody, acoustics.text, acoustics.durations)]
        ends = torch.tensor(frames, device=self.device)
        run = self._graphs.get(("speak", len(frames), wide), self._speak_padded)
        samples: Tensor = run(*parts, ends, voices, self._noise(frames, wide, noise))
        return samples

    def _read_padded(self, tokens: Tensor, ends: Tensor, voices: Tensor, speeds: Tensor) -> Acoustics:
        return self.network.read(tokens, ends, voices, speeds, padded=True)

    def _speak_padded(
        self, prosody: Tensor, text: Tensor, durations: Tensor, ends: Tensor, voices: Tensor, noise: Tensor
    ) -> Tensor:
        frames = noise.shape[1] // SAMPLES_PER_FRAME
        return self.network.speak(Acoustics(prosody, text, durations), ends, frames, voices, noise, padded=True)

    def _texts(self, batch: int, tokens: int) -> tuple[Tensor, ...]:
        """Inputs of ``_read_padded`` of one shape."""
        return (
            torch.zeros(batch, tokens, dtype=torch.long, device=self.device),
            torch.full((batch,), tokens, device=self.device),
            torch.zeros(batch, STYLES, dtype=self.dtype, device=self.device),
            torch.ones(batch, dtype=self.dtype, device=self.device),
        )

    def _sounds(self, batch: int, frames: int) -> tuple[Tensor, ...]:
        """Inputs of ``_speak_padded`` of one shape."""
        tokens = self._shapes.tokens_for(frames)
        return (
            torch.zeros(batch, tokens, HIDDEN + STYLE, dtype=self.dtype, device=self.device),
            torch.zeros(batch, tokens, HIDDEN, dtype=self.dtype, device=self.device),
            torch.ones(batch, tokens, dtype=torch.long, device=self.device),
            torch.full((batch,), frames, device=self.device),
            torch.zeros(batch, STYLES, dtype=self.dtype, device=self.device),
            torch.zeros(batch, SAMPLES_PER_FRAME * frames, dtype=self.dtype, device=self.device),
        )


def pad_time(x: Tensor, length: int) -> Tensor:
    """[B, T, ...] with zeros appended up to ``length``."""
    return torch.cat([x, x.new_zeros(len(x), length - x.shape[1], *x.shape[2:])], 1)


def capture(run: Graphed, inputs: tuple[Tensor, ...], pool: Any) -> Graphed:
    """``run`` as one graph over fixed buffers. What it returns is overwritten by the next replay from the pool."""
    buffers = [x.clone() for x in inputs]
    side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):  # libraries choose algorithms and make plans here, which a capture forbids
            run(*buffers)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        result = run(*buffers)

    def replay(*values: Tensor) -> Any:
        for buffer, value in zip(buffers, values, strict=True):
            buffer.copy_(value)
        graph.replay()
        return result

    return replay
