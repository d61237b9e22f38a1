"""When the new instance first answered and when traffic was well again, from the probe's own records. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from planner.artifacts.qmax import SloMetric
from planner.artifacts.records import RequestRecord

# Below 20 requests the nearest-rank p95 is the slowest one, a stricter test; below 10 it says nothing.
MINIMUM_REQUESTS = 10


@dataclass(frozen=True)
class Recovered:
    """The first moment from which the p95 stayed under the target for the hold."""

    at_ns: int
    until_ns: int
    p95_ms: float
    requests: int


def boot_ids(records: Iterable[RequestRecord]) -> Counter[str]:
    """Requests each instance answered."""
    return Counter(record.boot_id for record in records if record.boot_id is not None)


def first_traffic_ns(records: Iterable[RequestRecord], known: set[str]) -> int | None:
    """When the first request that a new instance answered began to be heard."""
    stamps = [
        record.first_audio_ns
        for record in records
        if record.boot_id is not None
        and record.boot_id not in known
        and record.outcome == "ok"
        and record.first_audio_ns is not None
    ]
    return min(stamps, default=None)


def value_ms(record: RequestRecord, metric: SloMetric) -> float | None:
    """What the SLO is about: first audio or the whole response; None unless the request ended well."""
    return record.ttfab_ms if metric == "ttfab" else record.latency_ms


def p95_ms(records: Iterable[RequestRecord], metric: SloMetric) -> float | None:
    """Nearest-rank p95 of the requests that ended well; None when they are too few."""
    values = sorted(value for record in records if (value := value_ms(record, metric)) is not None)
    if len(values) < MINIMUM_REQUESTS:
        return None
    return values[_rank(len(values)) - 1]


def recovered(
    records: Sequence[RequestRecord],
    metric: SloMetric,
    *,
    target_ms: float,
    hold_ns: int,
    after_ns: int,
    now_ns: int,
    instances: int,
) -> Recovered | None:
    """Earliest start of a hold in which the p95 is at or under ``target_ms`` and all ``instances`` answered.

    Failed requests are slow ones. A hold still running decides nothing, nor one whose last requests may still come.
    """
    usable = [r for r in records if r.outcome != "cancelled" and r.sent_ns >= after_ns]
    ordered = sorted(usable, key=lambda record: record.sent_ns)
    sent = [record.sent_ns for record in ordered]
    values = [value_ms(record, metric) for record in ordered]
    good = [value is not None and value <= target_ms for value in values]
    good_before = [0]
    for flag in good:
        good_before.append(good_before[-1] + flag)
    for index, start_ns in enumerate(sent):
        if start_ns + hold_ns + target_ms * 1e6 > now_ns:
            return None
        end = bisect_left(sent, start_ns + hold_ns)
        count = end - index
        if not good[index] or count < MINIMUM_REQUESTS or good_before[end] - good_before[index] < _rank(count):
            continue
        window = ordered[index:end]
        if instances and len(boot_ids(window)) < instances:
            continue
        found = p95_ms(window, metric)
        if found is not None:
            return Recovered(start_ns, start_ns + hold_ns, found, count)
    return None


def _rank(count: int) -> int:
    """ceil(0.95 n) without the rounding of floating point."""
    return -(-95 * count // 100)
