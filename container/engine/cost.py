"""How long a segment takes to synthesise: a straight line through what was measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

CALIBRATION = ("Ready.", "This sentence is long enough to show how the time grows.")


@dataclass(frozen=True, slots=True)
class CostModel:
    """Seconds = fixed + per_token * tokens / speed: the sound half's work follows the audio's length."""

    fixed_s: float
    per_token_s: float

    def __call__(self, tokens: int, speed: float = 1.0) -> float:
        return self.fixed_s + self.per_token_s * tokens / speed

    @staticmethod
    def measured(synthesise: Callable[[str], tuple[int, float]], texts: Sequence[str]) -> CostModel:
        """Speak each text twice, the first time to warm up; ``synthesise`` gives tokens and seconds."""
        for text in texts:
            synthesise(text)
        return CostModel.through([synthesise(text) for text in texts])

    @staticmethod
    def through(measured: Sequence[tuple[int, float]]) -> CostModel:
        """The line through the shortest and the longest of (tokens, seconds); never falling, never negative."""
        (short, short_s), (long, long_s) = min(measured), max(measured)
        slope = max(0.0, (long_s - short_s) / (long - short)) if long > short else 0.0
        return CostModel(max(0.0, short_s - slope * short), slope)


GUESS = CostModel(0.02, 0.005)
"""Until it is measured."""
