"""Kokoro-82M on torch: the default engine on GPUs and CPUs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from container.engine.base import EngineDead, EngineError, Prepared, Samples, Segment, StageMarker
from container.engine.batch import Item, Noise, Synthesiser
from container.engine.cost import CALIBRATION, GUESS, CostModel
from container.engine.g2p import Phonemiser
from container.engine.graphs import ShapedSynthesiser
from container.engine.memory import bound_arenas, release_after
from container.engine.network import Kokoro
from container.engine.network.checkpoint import load_network, set_convolution_type
from container.engine.phrasing import phrases
from container.engine.precision import choose_device, choose_precision
from container.engine.shapes import Shapes
from container.engine.threads import SharedCores
from container.engine.voicebank import VoiceBank
from container.weights import resolve
from container.weights.vocabulary import tokenise

if TYPE_CHECKING:
    from container.settings import Settings

GPU_BATCH = 32


@dataclass(frozen=True, slots=True)
class Phonemes:
    """What a Prepared carries."""

    text: str
    tokens: list[int]


class KokoroEngine:
    """Batches on a GPU; on a CPU, where a batch gains nothing, one segment a lane."""

    name = "kokoro"
    shared_lanes = True

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._device = choose_device(settings.device)
        self._cores = SharedCores(settings.threads)
        gpu = self._device.type == "cuda"
        self.max_batch = settings.max_batch or (GPU_BATCH if gpu else 1)
        self.lanes = 1 if gpu else self._cores.lanes
        self.precision = "fp32"
        self.noise: Noise | None = None
        """Set for repeatable audio."""
        self._cost = GUESS
        self._dead = False

    def load(self, stage: StageMarker) -> None:
        bound_arenas()
        self._phonemise = Phonemiser()
        stage("framework_init")
        settings = self._settings
        model = resolve(settings.model_dir, settings.weights_dir, settings.weights_source)
        self._voices = VoiceBank(model.voice_files, settings.default_voice)
        network = load_network(model.checkpoint)
        dtype = choose_precision(settings.precision, self._device)
        set_convolution_type(network.decoder, dtype)
        self.precision = str(dtype).removeprefix("torch.")
        self._synthesiser = self._synthesiser_for(network)
        stage("weights_ready")
        if isinstance(self._synthesiser, ShapedSynthesiser):
            self._synthesiser.warm()
        self._cost = CostModel.measured(self._once, CALIBRATION)

    def voices(self) -> tuple[str, ...]:
        return self._voices.names

    def prepare(self, segments: Sequence[Segment]) -> list[Prepared]:
        prepared = []
        for segment in segments:
            for phrase in phrases(self._phonemise(segment.text)):
                tokens = tokenise(phrase)
                cost_s = self._cost(len(tokens), segment.speed)
                prepared.append(Prepared(segment, len(tokens), cost_s, Phonemes(phrase, tokens)))
        return prepared

    def synthesise(self, batch: Sequence[Prepared]) -> list[Samples]:
        items = [self._item(prepared) for prepared in batch]
        with self._cores.share():
            try:
                spoken = self._synthesiser(items, self.noise)
            except torch.OutOfMemoryError:
                torch.cuda.empty_cache()
                if len(items) == 1:
                    raise EngineError("the segment does not fit into the device's memory") from None
                return [samples for one in batch for samples in self.synthesise([one])]
            except RuntimeError as error:
                self._dead = True
                raise EngineDead(f"synthesis failed on {self._device}: {error}") from error
        audio = [one.samples for one in spoken]
        if self._device.type == "cpu":
            release_after(sum(map(len, audio)))
        if not all(np.isfinite(samples).all() for samples in audio):
            self._dead = True
            raise EngineDead("the network produced numbers that are not finite")
        return audio

    def alive(self) -> bool:
        return not self._dead

    def close(self) -> None:
        """Nothing runs between calls."""

    def _synthesiser_for(self, network: Kokoro) -> Synthesiser:
        if self._device.type != "cuda":
            return Synthesiser(network, self._device)
        sizes = tuple(size for size in Shapes().batches if size < self.max_batch)
        return ShapedSynthesiser(network, self._device, Shapes(batches=(*sizes, self.max_batch)))

    def _item(self, prepared: Prepared) -> Item:
        phonemes: Phonemes = prepared.payload
        style = self._voices.style(prepared.segment.voice, len(phonemes.text))
        return Item(phonemes.tokens, style, prepared.segment.speed)

    def _once(self, text: str) -> tuple[int, float]:
        (prepared,) = self.prepare([Segment(text, self.voices()[0])])
        start = time.perf_counter()
        self.synthesise([prepared])
        return prepared.tokens, time.perf_counter() - start
