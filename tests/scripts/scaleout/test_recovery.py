"""First traffic and recovery from hand-made records."""

from __future__ import annotations

import pytest

from planner.artifacts.records import RequestRecord
from scripts.scaleout import recovery

SECOND = 1_000_000_000


def request(sent_s: float, took_ms: float = 100.0, boot: str | None = "old", outcome: str = "ok") -> RequestRecord:
    sent = round(sent_s * SECOND)
    first = sent + round(took_ms * 1e6)
    heard = first if outcome == "ok" else None
    return RequestRecord("w", 0, 0, sent, sent, sent, heard, first + 1000, outcome, None, 200, 10, 5, 0, boot)


def steady(
    start_s: float, end_s: float, took_ms: float, boots: tuple[str, ...], rate: float = 10
) -> list[RequestRecord]:
    count = round((end_s - start_s) * rate)
    return [request(start_s + i / rate, took_ms, boots[i % len(boots)]) for i in range(count)]


def find(records, now_s: float, *, target=200.0, hold=10.0, after=0.0, instances=2, metric="ttfab"):
    return recovery.recovered(
        records,
        metric,
        target_ms=target,
        hold_ns=round(hold * SECOND),
        after_ns=round(after * SECOND),
        now_ns=round(now_s * SECOND),
        instances=instances,
    )


def test_recovery_begins_where_the_fast_requests_begin():
    records = steady(0, 20, 500, ("old",)) + steady(20, 40, 100, ("old", "new"))
    found = find(records, 40)
    # At most one request in twenty of the hold may be slow, and the hold starts with a good one.
    assert found is not None
    assert found.at_ns / SECOND == pytest.approx(20)
    assert found.p95_ms == pytest.approx(100)


@pytest.mark.parametrize(
    ("records", "now_s"),
    [
        (steady(0, 40, 500, ("old", "new")), 40),  # never fast
        (steady(0, 9, 100, ("old", "new")), 9),  # the hold is not over
        (steady(0, 10.1, 100, ("old", "new")), 10.1),  # its last requests may still come
        (steady(0, 40, 100, ("old",)), 40),  # only one instance answers
        (steady(0, 40, 100, ("old", "new"), rate=0.5), 40),  # too few to speak of a p95
        ([], 40),
    ],
)
def test_no_recovery(records, now_s):
    assert find(records, now_s) is None


def test_failures_count_as_slow():
    good = steady(0, 20, 100, ("old", "new"))
    broken = [request(i + 0.05, outcome="broken") for i in range(20)]
    assert find(good + broken, 20) is None
    assert find(good + broken[:1], 20) is not None


def test_cut_requests_at_the_end_count_for_nothing():
    records = steady(0, 20, 100, ("old", "new")) + [request(10, outcome="cancelled")] * 30
    assert find(records, 20) is not None


def test_nothing_before_the_first_traffic_counts():
    records = steady(0, 40, 100, ("old", "new"))
    found = find(records, 40, after=15)
    assert found is not None
    assert found.at_ns / SECOND == pytest.approx(15)


def test_without_boot_ids_the_instances_cannot_be_counted():
    assert find(steady(0, 40, 100, (None,)), 40, instances=0) is not None  # type: ignore[arg-type]


def test_the_whole_response_can_be_the_metric():
    slow_end = [
        RequestRecord("w", 0, 0, at, at, at, at + SECOND // 10, at + SECOND, "ok", None, 200, 1, 1, 0, boot)
        for index, at in enumerate(range(0, 30 * SECOND, SECOND // 10))
        for boot in [("old", "new")[index % 2]]
    ]
    assert find(slow_end, 30) is not None
    assert find(slow_end, 30, metric="latency") is None


def test_first_traffic_is_the_first_audio_of_an_unknown_instance():
    records = [request(1), request(2, boot="new", took_ms=300), request(1.5, boot="new", outcome="broken")]
    assert recovery.first_traffic_ns(records, {"old"}) == round(2.3 * SECOND)
    assert recovery.first_traffic_ns(records, {"old", "new"}) is None
    assert recovery.first_traffic_ns([request(1, boot=None)], {"old"}) is None


@pytest.mark.parametrize(("count", "expected"), [(9, None), (10, 10.0), (20, 19.0), (100, 95.0), (101, 96.0)])
def test_p95_is_nearest_rank(count, expected):
    records = [request(0, took_ms=value) for value in range(1, count + 1)]
    found = recovery.p95_ms(records, "ttfab")
    assert found == (None if expected is None else pytest.approx(expected))
