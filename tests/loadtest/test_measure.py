"""Windows cut out of hand-made records, and the join with CloudWatch."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from loadtest import observe
from loadtest.inbox import Health, Inbox, Rows, RunClock, shifted
from loadtest.measure import Window, client_load, in_flight_mean, measure, window_facts
from planner.artifacts.qmax import Method
from planner.artifacts.records import RequestRecord

S = 1_000_000_000
WINDOW = Window(10 * S, 20 * S)


def request(sent_s: float, done_s: float, **changes: Any) -> RequestRecord:
    base = RequestRecord(
        worker="w",
        run=0,
        rung=0,
        intended_ns=int(sent_s * S),
        sent_ns=int(sent_s * S),
        headers_ns=None,
        first_audio_ns=int((sent_s + done_s) / 2 * S),
        done_ns=int(done_s * S),
        outcome="ok",
        error=None,
        status=200,
        bytes=48_000,
        chars=10,
        text=0,
        boot_id="a",
        queue_depth=1,
        service_ms=50.0,
    )
    return replace(base, **changes)


def method(**changes: Any) -> Method:
    return Method(**({"rungs": [1], "hold_s": 20, "measure_window_s": 10, "idle_s": 0, "slo_ms": 3000} | changes))


def test_in_flight_counts_overlaps_only() -> None:
    records = [request(0, 10), request(5, 15), request(12, 13), request(19, 40), request(20, 21)]
    assert in_flight_mean(records, WINDOW) == pytest.approx((0 + 5 + 1 + 1 + 0) / 10)


def test_requests_belong_to_the_window_they_end_in() -> None:
    records = [
        request(0, 10),
        request(0, 9.99),
        request(19, 20),
        request(0, 19.99),
        request(11, 12, outcome="cancelled"),
    ]
    facts = window_facts(records, WINDOW, 30_000)
    assert [record.done_ns for record in facts.ended] == [10 * S, int(19.99 * S)]


def test_a_request_older_than_anything_that_came_back_counts_as_failed() -> None:
    records = [request(11, 12), request(13.9, 60), request(14.1, 60), request(1, 30, outcome="cancelled")]
    facts = window_facts(records, WINDOW, 3000)
    assert (facts.stalled, facts.failed) == (2, 2)


def test_a_rung_far_beyond_the_slo_is_slow_and_not_stalled() -> None:
    records = [request(10 + i * 0.1, 15 + i * 0.1) for i in range(100)]
    facts = window_facts(records, WINDOW, 5)
    assert facts.failed == 0


def test_outcomes_never_enter_latency() -> None:
    good = [request(10 + i * 0.1, 10.1 + i * 0.1) for i in range(80)]
    refused = [request(18 + i * 0.01, 18.001 + i * 0.01, outcome="rejected", first_audio_ns=None) for i in range(20)]
    rung = measure(Rows([*good, *refused]), WINDOW, concurrency=1, run=0, method=method(), pcm=True, voids=[])
    assert rung.verdict == "invalid"
    assert rung.outcomes == {"ok": 80, "rejected": 20}
    assert rung.ttfab_ms is not None
    assert rung.ttfab_ms.p95 == pytest.approx(50)
    assert (rung.completed, rung.ok, rung.achieved_rps, rung.audio_s_per_s) == (100, 80, 8.0, 8.0)
    assert (rung.service_ms_mean, rung.service_ms_cv, rung.chars_mean) == (50.0, 0.0, 10.0)


def test_the_slo_metric_decides() -> None:
    records = [request(10 + i * 0.1, 10.1 + i * 0.1) for i in range(99)]
    for metric, verdict in (("ttfab", "pass"), ("latency", "fail")):
        found = measure(
            Rows(records),
            WINDOW,
            concurrency=1,
            run=0,
            method=method(slo_ms=70, slo_metric=metric),
            pcm=False,
            voids=[],
        )
        assert found.verdict == verdict
        assert found.audio_s_per_s is None


def test_two_boot_ids_void_the_rung() -> None:
    records = [request(10 + i * 0.1, 10.1 + i * 0.1, boot_id="ab"[i % 2]) for i in range(99)]
    rung = measure(Rows(records), WINDOW, concurrency=1, run=0, method=method(), pcm=True, voids=[])
    assert rung.verdict == "invalid"
    assert "2 containers" in rung.reasons[0]


def test_the_worst_load_process_counts() -> None:
    rows = Rows(
        gaps=[(11 * S, 1.0), (12 * S, 9.0), (5 * S, 500.0)],
        health=[
            Health("a", 11 * S, 0.2, [1.0, 1.0]),
            Health("b", 11 * S, 0.8, [2.0, 30.0]),
            Health("b", 12 * S, 0.6, [2.0]),
            Health("b", 25 * S, 1.0, [900.0]),
        ],
    )
    found = client_load(rows, WINDOW)
    assert (found.dispatch_gap_p95_ms, found.loop_lag_p95_ms) == (9.0, 30.0)
    assert found.cpu_share == pytest.approx(0.7)


def test_workers_on_other_machines_land_on_one_clock() -> None:
    clock = RunClock()
    inbox = Inbox(clock)
    for worker, monotonic_ns in (("a", 0), ("b", 500 * S)):
        row = shifted(request(1, 2), monotonic_ns)
        values = [getattr(row, name) for name in RequestRecord.__dataclass_fields__]
        inbox.receive(
            {
                "worker": worker,
                "anchor": [monotonic_ns, 7_000 * S],
                "at_ns": monotonic_ns,
                "job": 0,
                "users": 1,
                "in_flight": 1,
                "started": 1,
                "last_started_ns": monotonic_ns + S,
                "rows": [[*values, None]],
                "lags_ms": [],
                "cpu_share": 0.0,
            }
        )
    assert {record.sent_ns for record in inbox.rows(0).records} == {7_001 * S}
    assert inbox.started(0) == (2, 7_001 * S)
    assert inbox.alive() == {"a", "b"}
    assert [record.sent_ns for record in inbox.take_raw(0)] == [S, 501 * S]


def at(second: float) -> datetime:
    return datetime.fromtimestamp(1_800_000_000 + second, UTC)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(3, 42, (10, 40)), (0, 20, (0, 20)), (1, 19, None), (9, 10, None), (0, 10, (0, 10))],
)
def test_only_whole_periods_count(start: float, end: float, expected: tuple[float, float] | None) -> None:
    found = observe.whole_periods(at(start), at(end), 10)
    assert found == (None if expected is None else (at(expected[0]), at(expected[1])))


def test_cloudwatch_is_read_inside_the_window_and_in_ms() -> None:
    def read(name: str, stat: str, *_: object) -> observe.Series:
        series = {
            ("ConcurrentRequestsPerModel", "Maximum"): [(at(0), 99.0), (at(10), 7.0), (at(110), 8.0), (at(120), 50.0)],
            ("FirstChunkLatency", "p95"): [(at(60), 55_000.0)],
        }
        return series.get((name, stat), [])

    view = observe.view(read, at(5), at(125))
    assert view is not None
    assert (view.concurrency_max, view.first_chunk_p95_ms) == (8.0, 55.0)
    assert (view.invocations, view.gpu_utilization_pct) == (None, None)
    rung = measure(
        Rows([request(10, 15), request(15, 20)]), WINDOW, concurrency=1, run=0, method=method(), pcm=True, voids=[]
    )
    assert observe.joined(rung, view).metric_ratio == 8.0
    assert observe.joined(rung, None).metric_ratio is None


def test_a_window_without_a_whole_period_has_no_view() -> None:
    assert observe.view(lambda *_: [], at(1), at(9)) is None
