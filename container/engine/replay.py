"""An engine of scripted service times: a published server's behaviour, in real time, on any machine."""

from __future__ import annotations

import math
import random
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from container.engine.base import SAMPLE_RATE_HZ, EngineDead, EngineError, Prepared, Samples, Segment, StageMarker
from container.settings import Settings

CHARS_PER_S = 14.0
"""Kokoro at speed 1 speaks about this many characters a second, so clips have a believable length."""
SHORTEST_AUDIO_S = 0.4
LEAD_IN = 1_200
"""Samples of silence before speech; real voices draw breath too."""
Z_95 = 1.6448536269514722

VOICES = (
    "af_heart",
    "af_bella",
    "am_adam",
    "bf_emma",
    "bm_george",
    "jf_alpha",
    "jf_gongitsune",
    "jf_nezumi",
    "jf_tebukuro",
    "jm_kumo",
)


class ServiceTimes:
    """Lognormal with the given mean and p95; with p95 equal to the mean it is constant."""

    def __init__(self, mean_s: float, p95_s: float, seed: int) -> None:
        # mean = m exp(s²/2) and p95 = m exp(z s) give s² - 2 z s + 2 ln(p95/mean) = 0; the smaller root is meant.
        excess = Z_95**2 - 2 * math.log(p95_s / mean_s)
        if excess < 0:
            raise ValueError(f"no lognormal has mean {mean_s} s and p95 {p95_s} s")
        self._sigma = Z_95 - math.sqrt(excess)
        self._mu = math.log(mean_s) - self._sigma**2 / 2
        self._random = random.Random(seed)

    def draw_s(self) -> float:
        return self._random.lognormvariate(self._mu, self._sigma)


class ReplayEngine:
    """Lanes that complete on an absolute schedule: start = max(ready, lane free), end = start + service.

    Late wake-ups of a busy machine therefore delay one answer and never the ones behind it.
    """

    name = "replay"
    max_batch = 1
    shared_lanes = False

    def __init__(
        self,
        settings: Settings,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.lanes = settings.replay_lanes
        self._clock, self._sleep = clock, sleep
        self._stages_s = settings.replay_stages_s
        self._mean_s = settings.replay_service_mean_ms / 1000
        self._times = ServiceTimes(self._mean_s, settings.replay_service_p95_ms / 1000, settings.replay_seed)
        self._lane_free_s = [-math.inf] * self.lanes
        self._cold_s = 0.0
        self._lock = threading.Lock()
        self._closed = False
        self._tone = _tone()

    def load(self, stage: StageMarker) -> None:
        for name in ("framework_init", "weights_ready"):
            self._sleep(self._stages_s[name])
            stage(name)
        self._cold_s = self._stages_s["warmup_done"]

    def voices(self) -> tuple[str, ...]:
        return VOICES

    def prepare(self, segments: Sequence[Segment]) -> list[Prepared]:
        ready_s = self._clock()
        return [self._prepared(segment, ready_s) for segment in segments]

    def _prepared(self, segment: Segment, ready_s: float) -> Prepared:
        if not any(char.isalnum() for char in segment.text):
            raise EngineError("nothing in this text can be spoken")
        return Prepared(segment, tokens=len(segment.text), cost_s=self._mean_s * segment.share, payload=ready_s)

    def synthesise(self, batch: Sequence[Prepared]) -> list[Samples]:
        end_s = max(self._reserve(item) for item in batch)
        while (left_s := end_s - self._clock()) > 0:
            self._sleep(left_s)
        return [self._audio(item.segment) for item in batch]

    def _reserve(self, item: Prepared) -> float:
        with self._lock:
            if self._closed:
                raise EngineDead("the replay engine is closed")
            service_s = self._times.draw_s() * item.segment.share + self._cold_s
            self._cold_s = 0.0
            lane = min(range(self.lanes), key=self._lane_free_s.__getitem__)
            self._lane_free_s[lane] = max(item.payload, self._lane_free_s[lane]) + service_s
            return self._lane_free_s[lane]

    def _audio(self, segment: Segment) -> Samples:
        duration_s = max(SHORTEST_AUDIO_S * segment.share, len(segment.text) / CHARS_PER_S / segment.speed)
        samples: Samples = np.resize(self._tone, max(1, round(duration_s * SAMPLE_RATE_HZ)))
        samples[:LEAD_IN] = 0.0
        return samples

    def alive(self) -> bool:
        return not self._closed

    def close(self) -> None:
        self._closed = True


def _tone() -> Samples:
    """One second of a quiet 200 Hz hum, a whole number of periods so that it repeats without a click."""
    phase = np.arange(SAMPLE_RATE_HZ, dtype=np.float32) * np.float32(2 * np.pi * 200 / SAMPLE_RATE_HZ)
    tone: Samples = np.sin(phase) * np.float32(0.1)
    return tone
