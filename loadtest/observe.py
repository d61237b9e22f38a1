"""What AWS saw while a rung was measured: CloudWatch's view of the window, and changes of the endpoint."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from planner.artifacts.qmax import CloudWatchView, Rung
from scripts.aws.cloudwatch import metric
from scripts.aws.endpoint import LiveEndpoint, read_counts

PERIOD_S = 10
"""High-resolution data of this period can be read for three hours."""
SURE_WINDOW_S = 2 * PERIOD_S
"""Wherever it begins, a window of this length holds a whole period."""
MINUTE_S = 60
PUBLISHED_LATE_S = 20.0
"""A period that is not in CloudWatch this long after it ended will not come."""
ASK_EVERY_S = 2.0
MICROSECONDS = 1e-3
"""AWS publishes latencies in microseconds; artifacts hold ms."""

Series = list[tuple[datetime, float]]
Read = Callable[[str, str, int, datetime, datetime], Series]
"""(metric, statistic, period in s, start, end) → readings."""


def whole_periods(start: datetime, end: datetime, period_s: int) -> tuple[datetime, datetime] | None:
    """The periods that lie completely inside; a period that only overlaps also saw the ramp or the drain."""
    first = math.ceil(start.timestamp() / period_s) * period_s
    last = math.floor(end.timestamp() / period_s) * period_s
    if first >= last:
        return None
    return datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)


def unseen(window_s: float) -> list[str]:
    """A note if CloudWatch may have nothing of a window of this length, which the plan would then miss."""
    if window_s >= SURE_WINDOW_S:
        return []
    chance = "no" if window_s < PERIOD_S else "perhaps no"
    return [
        f"{window_s:g} s measured hold {chance} whole {PERIOD_S} s period of CloudWatch, so the metric ratio may stay "
        f"unknown and a plan from it says stop: --measure-window-s {SURE_WINDOW_S} or more, --hold-s at least as long"
    ]


def view(read: Read, start: datetime, end: datetime) -> CloudWatchView | None:
    """Of the whole periods inside a window; a metric without data is None, never zero."""
    inside = whole_periods(start, end, PERIOD_S)
    if inside is None:
        return None

    def values(name: str, stat: str, period_s: int = PERIOD_S) -> list[float]:
        span = inside if period_s == PERIOD_S else whole_periods(start, end, period_s)
        if span is None:
            return []
        return [value for at, value in read(name, stat, period_s, *span) if span[0] <= at < span[1]]

    def most(found: list[float], scale: float = 1.0) -> float | None:
        return max(found) * scale if found else None

    concurrency = values("ConcurrentRequestsPerModel", "Maximum")
    lowest = values("ConcurrentRequestsPerModel", "Minimum")
    invocations = values("Invocations", "Sum", MINUTE_S)
    return CloudWatchView(
        period_s=PERIOD_S,
        concurrency_max=most(concurrency),
        concurrency_min=min(lowest, default=None),
        model_latency_p95_ms=most(values("ModelLatency", "p95", MINUTE_S), MICROSECONDS),
        first_chunk_p95_ms=most(values("FirstChunkLatency", "p95", MINUTE_S), MICROSECONDS),
        invocations=sum(invocations) if invocations else None,
        gpu_utilization_pct=most(values("GPUUtilization", "Average", MINUTE_S)),
        cpu_utilization_pct=most(values("CPUUtilization", "Average", MINUTE_S)),
    )


def joined(rung: Rung, seen: CloudWatchView | None) -> Rung:
    """The rung with CloudWatch's view and the ratio of its Maximum to our mean."""
    ratio = None
    if seen and seen.concurrency_max is not None and rung.in_flight_mean:
        ratio = round(seen.concurrency_max / rung.in_flight_mean, 4)
    return rung.model_copy(update={"cloudwatch": seen, "metric_ratio": ratio})


def reader(endpoint: str, variant: str) -> Read:
    """Readings of one variant."""

    def read(name: str, stat: str, period_s: int, start: datetime, end: datetime) -> Series:
        return metric(name, endpoint, variant, stat, period_s, start, end)

    return read


def wait_published(read: Read, start: datetime, end: datetime) -> None:
    """Until every whole period of the window is there, or late beyond hope."""
    inside = whole_periods(start, end, PERIOD_S)
    if inside is None:
        return
    expected = (inside[1] - inside[0]).total_seconds() / PERIOD_S
    while datetime.now(UTC) < end + timedelta(seconds=PUBLISHED_LATE_S):
        found = read("ConcurrentRequestsPerModel", "Maximum", PERIOD_S, *inside)
        if len([at for at, _ in found if inside[0] <= at < inside[1]]) >= expected:
            return
        time.sleep(ASK_EVERY_S)


def change(live: LiveEndpoint) -> str | None:
    """A reason to void the rung if the endpoint is no longer what is being measured."""
    counts = read_counts(live.name, live.variant)
    if counts.status != "InService":
        return f"the endpoint is {counts.status}"
    if (counts.desired, counts.current) != (live.desired_instances, live.current_instances):
        return (
            f"the instance count changed from {live.current_instances} to {counts.current} (desired {counts.desired})"
        )
    return None
