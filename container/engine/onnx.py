"""Kokoro-82M's int8 ONNX export on ONNX Runtime: for CPUs without fast bf16."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from container.engine.base import EngineDead, EngineError, Prepared, Samples, Segment, StageMarker
from container.engine.cost import CALIBRATION, GUESS, CostModel
from container.engine.g2p import Phonemiser
from container.engine.phrasing import phrases
from container.engine.threads import usable_cores
from container.engine.voicebank import VoiceBank
from container.weights import WeightsError, resolve
from container.weights.vocabulary import tokenise

if TYPE_CHECKING:
    from container.settings import Settings

EXPORT_GAIN = 1.5
"""The export's inverse transform leaves out the division by the sum of squared windows: Hann, hop of a quarter."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a Prepared carries."""

    tokens: NDArray[np.int64]
    phonemes: int


class OnnxEngine:
    """One segment a call; a lane a core, each with one thread."""

    name = "onnx"
    shared_lanes = True
    max_batch = 1
    precision = "int8"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.lanes = settings.threads or usable_cores()
        self._cost = GUESS
        self._dead = False

    def load(self, stage: StageMarker) -> None:
        import onnxruntime

        self._phonemise = Phonemiser()
        stage("framework_init")
        settings = self._settings
        model = resolve(settings.model_dir, settings.weights_dir, settings.weights_source)
        if model.int8_model is None:
            raise WeightsError(f"{model.path} holds no int8 export; set ENGINE=kokoro or WEIGHTS_SOURCE=packages")
        self._voices = VoiceBank(model.voice_files, settings.default_voice)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session: Any = onnxruntime.InferenceSession(
            str(model.int8_model), options, providers=["CPUExecutionProvider"]
        )
        self._failures = (onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException,)
        stage("weights_ready")
        self._cost = CostModel.measured(self._once, CALIBRATION)

    def voices(self) -> tuple[str, ...]:
        return self._voices.names

    def prepare(self, segments: Sequence[Segment]) -> list[Prepared]:
        return [
            self._prepared(segment, phrase) for segment in segments for phrase in phrases(self._phonemise(segment.text))
        ]

    def synthesise(self, batch: Sequence[Prepared]) -> list[Samples]:
        return [self._speak(prepared) for prepared in batch]

    def alive(self) -> bool:
        return not self._dead

    def close(self) -> None:
        """Nothing runs between calls."""

    def _prepared(self, segment: Segment, phrase: str) -> Prepared:
        tokens = np.array([tokenise(phrase)], dtype=np.int64)
        cost_s = self._cost(tokens.size, segment.speed)
        return Prepared(segment, tokens.size, cost_s, Inputs(tokens, len(phrase)))

    def _speak(self, prepared: Prepared) -> Samples:
        inputs: Inputs = prepared.payload
        style = self._voices.style(prepared.segment.voice, inputs.phonemes).numpy().reshape(1, -1)
        speed = np.array([prepared.segment.speed], dtype=np.float32)
        try:
            audio = self._session.run(None, {"tokens": inputs.tokens, "style": style, "speed": speed})[0]
        except self._failures as error:
            self._dead = True
            raise EngineDead(f"synthesis failed: {error}") from error
        samples = np.asarray(audio, np.float32).ravel() / np.float32(EXPORT_GAIN)
        if not np.isfinite(samples).all():
            raise EngineError("the export produced numbers that are not finite")
        return samples

    def _once(self, text: str) -> tuple[int, float]:
        (prepared,) = self.prepare([Segment(text, self.voices()[0])])
        start = time.perf_counter()
        self.synthesise([prepared])
        return prepared.tokens, time.perf_counter() - start
