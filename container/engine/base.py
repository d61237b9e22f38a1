"""What the scheduler asks of an engine. Engines block; they never run on the event loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE_HZ = 24_000

Samples = NDArray[np.float32]
"""Mono, [-1, 1], SAMPLE_RATE_HZ."""

StageMarker = Callable[[str], None]
"""Called with framework_init and weights_ready as they happen."""


class EngineError(Exception):
    """The engine cannot synthesise this input; other requests are unaffected."""


class EngineDead(Exception):
    """The engine cannot synthesise anything any more; the container must report unhealthy."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One piece of a request's text, short enough for one forward pass."""

    text: str
    voice: str
    """A voice name or a mix, ``name*0.6+other*0.4``, already validated."""
    speed: float = 1.0
    share: float = 1.0
    """This piece's part of its request's text; 1 when it is the whole."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A segment ready to synthesise."""

    segment: Segment
    tokens: int
    """Phoneme tokens; the measure of its size."""
    cost_s: float
    """Expected synthesis time alone on an idle engine, seconds."""
    payload: Any = None
    """Engine-private."""


class Engine(Protocol):
    """Synthesises speech. Thread-safe where it says so."""

    name: str
    max_batch: int
    """Most segments one synthesise call takes."""
    lanes: int
    """synthesise calls that may run at the same time."""
    shared_lanes: bool
    """True when calls that overlap slow each other down, as on the cores of one CPU."""

    def load(self, stage: StageMarker) -> None:
        """Load everything that serving needs; blocks. Called once, before anything else."""

    def voices(self) -> tuple[str, ...]:
        """Names that Segment.voice may use."""

    def prepare(self, segments: Sequence[Segment]) -> list[Prepared]:
        """Phonemise. Thread-safe (serialised inside). Raises EngineError for text it cannot speak.

        A segment that exceeds the model's limit comes back as several Prepared, in order.
        """

    def synthesise(self, batch: Sequence[Prepared]) -> list[Samples]:
        """One Samples for each of ``batch``. Called from up to ``lanes`` threads at once. Raises EngineDead."""

    def alive(self) -> bool:
        """False once synthesise cannot succeed any more. Cheap and never blocks: /ping asks."""

    def close(self) -> None:
        """Release threads and processes; idempotent."""
