"""Counters, gauges and histograms in Prometheus text, no more than the container needs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

SECONDS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0)
SIZES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


class Counter:
    """Only goes up; one value a label."""

    kind = "counter"

    def __init__(self, name: str, help_text: str, label: str) -> None:
        self.name, self.help_text, self._label = name, help_text, label
        self._values: dict[str, int] = {}

    def add(self, label: str, amount: int = 1) -> None:
        self._values[label] = self._values.get(label, 0) + amount

    def lines(self) -> Iterator[str]:
        for label, value in sorted(self._values.items()):
            yield f'{self.name}{{{self._label}="{label}"}} {value}'


class Gauge:
    """Read when asked."""

    kind = "gauge"

    def __init__(self, name: str, help_text: str, read: Callable[[], float]) -> None:
        self.name, self.help_text, self._read = name, help_text, read

    def lines(self) -> Iterator[str]:
        yield f"{self.name} {self._read():g}"


class Histogram:
    """Cumulative buckets."""

    kind = "histogram"

    def __init__(self, name: str, help_text: str, bounds: Sequence[float]) -> None:
        self.name, self.help_text, self._bounds = name, help_text, tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self) -> Iterator[str]:
        running = 0
        for bound, count in zip((*self._bounds, float("inf")), self._counts, strict=True):
            running += count
            edge = "+Inf" if bound == float("inf") else f"{bound:g}"
            yield f'{self.name}_bucket{{le="{edge}"}} {running}'
        yield f"{self.name}_sum {self._sum:.6f}"
        yield f"{self.name}_count {running}"


class Metrics:
    """Everything GET /metrics shows."""

    def __init__(
        self, depth: Callable[[], float], waiting: Callable[[], float], running: Callable[[], float],
        sessions: Callable[[], float], ready: Callable[[], float],
    ) -> None:  # fmt: skip
        self.requests = Counter("speech_requests_total", "Finished requests by outcome.", "outcome")
        self.rejections = Counter("speech_rejections_total", "Requests refused before any work, by reason.", "reason")
        self.first_audio_s = Histogram(
            "speech_first_audio_seconds", "Arrival to first audio handed to the transport.", SECONDS
        )
        self.completion_s = Histogram("speech_completion_seconds", "Arrival to last byte, successes only.", SECONDS)
        self.queue_wait_s = Histogram("speech_queue_wait_seconds", "Admission to the first engine call.", SECONDS)
        self.batch_size = Histogram("speech_batch_size", "Segments in one engine call.", SIZES)
        self.engine_call_s = Histogram("speech_engine_call_seconds", "Duration of one engine call.", SECONDS)
        self._series = (
            self.requests, self.rejections, self.first_audio_s, self.completion_s, self.queue_wait_s,
            self.batch_size, self.engine_call_s,
            Gauge("speech_queue_depth", "Requests queued and executing.", depth),
            Gauge("speech_segments_waiting", "Segments not yet handed to the engine.", waiting),
            Gauge("speech_engine_calls_running", "Engine calls in progress.", running),
            Gauge("speech_websocket_sessions", "Open bidirectional sessions.", sessions),
            Gauge("speech_ready", "1 while /ping answers 200.", ready),
        )  # fmt: skip

    def batch(self, size: int, took_s: float) -> None:
        self.batch_size.observe(size)
        self.engine_call_s.observe(took_s)

    def text(self) -> str:
        lines: list[str] = []
        for series in self._series:
            lines += [f"# HELP {series.name} {series.help_text}", f"# TYPE {series.name} {series.kind}"]
            lines += series.lines()
        return "\n".join(lines) + "\n"
