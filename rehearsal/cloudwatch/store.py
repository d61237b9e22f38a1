"""Datapoints and their statistics: aligned to periods, exact by namespace, name and dimensions."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

HIGH_RESOLUTION_KEPT_S = 3 * 3600.0
"""After this, sub-minute periods can no longer be queried; CloudWatch then answers nothing, without an error."""
KEPT_DATAPOINTS = 50_000
"""A series. At 10 s this is over five days."""

Dimensions = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, order=True)
class MetricId:
    """What makes a metric another metric."""

    namespace: str
    name: str
    dimensions: Dimensions


@dataclass(frozen=True, slots=True)
class Datapoint:
    """One published sample set: either values with counts, or a statistic set that keeps no values."""

    at_s: float
    values: tuple[float, ...] = ()
    counts: tuple[float, ...] = ()
    low: float = math.inf
    high: float = -math.inf
    total: float = 0.0
    samples: float = 0.0
    high_resolution: bool = False
    unit: str | None = None
    visible_from_s: float = 0.0

    @classmethod
    def of(cls, at_s: float, values: Mapping[float, float], **extra: object) -> Datapoint:
        """From a histogram: value to count."""
        return cls(
            at_s,
            tuple(values),
            tuple(values.values()),
            min(values),
            max(values),
            sum(value * count for value, count in values.items()),
            sum(values.values()),
            **extra,  # type: ignore[arg-type]
        )


@dataclass(slots=True)
class _Series:
    points: deque[Datapoint] = field(default_factory=lambda: deque(maxlen=KEPT_DATAPOINTS))


def metric_id(namespace: str, name: str, dimensions: Iterable[Mapping[str, str]]) -> MetricId:
    """From the API's spelling; the order of dimensions does not matter."""
    return MetricId(namespace, name, tuple(sorted((item["Name"], item["Value"]) for item in dimensions)))


class MetricStore:
    """All datapoints. moto's threads and the event loop both use it."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._series: dict[MetricId, _Series] = {}
        self._lock = threading.Lock()

    def put(self, metric: MetricId, point: Datapoint) -> None:
        """Publish one datapoint."""
        with self._lock:
            self._series.setdefault(metric, _Series()).points.append(point)

    def metrics(self) -> list[MetricId]:
        """Everything that was ever published."""
        with self._lock:
            return sorted(self._series)

    def statistic(
        self, metric: MetricId, statistic: str, period_s: int, start_s: float, end_s: float, unit: str | None = None
    ) -> dict[float, float]:
        """Period start → value, for the periods that begin in [start, end) and hold data."""
        buckets: dict[float, list[Datapoint]] = {}
        first = math.floor(start_s / period_s) * period_s
        for point in self._readable(metric, period_s):
            begin = math.floor(_stored_at_s(point) / period_s) * period_s
            if first <= begin < end_s and (unit is None or unit == point.unit):
                buckets.setdefault(begin, []).append(point)
        values = {begin: aggregate(buckets[begin], statistic) for begin in sorted(buckets)}
        return {begin: value for begin, value in values.items() if value is not None}

    def _readable(self, metric: MetricId, period_s: int) -> list[Datapoint]:
        now = self._clock()
        with self._lock:
            series = self._series.get(metric)
            points = list(series.points) if series else []
        oldest = now - HIGH_RESOLUTION_KEPT_S if period_s < 60 else -math.inf
        return [point for point in points if point.visible_from_s <= now and point.at_s >= oldest]


def aggregate(points: Iterable[Datapoint], statistic: str) -> float | None:
    """One statistic over a period's datapoints; None for a percentile of statistic sets, as in CloudWatch."""
    points = list(points)
    samples = sum(point.samples for point in points)
    if statistic == "SampleCount":
        return samples
    if statistic == "Sum":
        return sum(point.total for point in points)
    if statistic == "Average":
        return sum(point.total for point in points) / samples
    if statistic == "Minimum":
        return min(point.low for point in points)
    if statistic == "Maximum":
        return max(point.high for point in points)
    return _percentile(points, float(statistic.removeprefix("p")) / 100)


def _percentile(points: list[Datapoint], fraction: float) -> float | None:
    if not all(point.values for point in points):
        return None
    pairs = sorted(pair for point in points for pair in zip(point.values, point.counts, strict=True))
    rank = fraction * sum(count for _, count in pairs)
    seen = 0.0
    for value, count in pairs:
        seen += count
        if seen >= rank:
            return value
    return pairs[-1][0]


def _stored_at_s(point: Datapoint) -> float:
    """Standard resolution is kept by the minute."""
    return point.at_s if point.high_resolution else math.floor(point.at_s / 60) * 60
