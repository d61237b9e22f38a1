"""What SageMaker would publish of requests and in-flight counts. Fleets and clock are stand-ins."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal.cloudwatch.publisher import Publisher
from rehearsal.cloudwatch.store import MetricStore, metric_id
from rehearsal.dataplane import report
from rehearsal.faults import Faults
from rehearsal.fleet.load import Load
from rehearsal.record import Record, RequestTrace
from rehearsal.settings import Settings

T0 = 1_800_000_000.0
DIMENSIONS = [{"Name": "EndpointName", "Value": "speech"}, {"Name": "VariantName", "Value": "primary"}]


class Bench:
    """Two instances of one variant."""

    def __init__(self, scope: Any = "per_instance") -> None:
        self.now = 0.0
        self.faults = Faults()
        self.store = MetricStore(clock=lambda: T0 + 3600)
        clock = lambda: self.now  # noqa: E731
        self.total = Load(clock)
        self.instances = [
            SimpleNamespace(id=f"i-{number}", counted=True, serving=True, container=None, load=Load(clock))
            for number in range(2)
        ]
        fleet = SimpleNamespace(endpoint="speech", variant="primary", instances=self.instances, load=self.total)
        endpoint = SimpleNamespace(live=SimpleNamespace(fleets=[fleet]))
        endpoints: Any = SimpleNamespace(all={"speech": endpoint})
        self.publisher = Publisher(Settings(metric_scope=scope), self.store, endpoints, Record(), self.faults)

    def enter(self, instance: int) -> None:
        self.total.enter()
        self.instances[instance].load.enter()

    def leave(self, instance: int) -> None:
        self.instances[instance].load.leave()
        self.total.leave()

    def read(self, name: str, statistic: str, period_s: int = 10) -> dict[float, float]:
        metric = metric_id("AWS/SageMaker", name, DIMENSIONS)
        return self.store.statistic(metric, statistic, period_s, T0, T0 + 600)

    def busy_window(self) -> None:
        """0–5 s: 2 and 1 in flight; 5–10 s: 1 and 1; one entry at 5 s makes it 3 and 1 for no time at all."""
        self.enter(0)
        self.enter(0)
        self.enter(1)
        self.now = 5.0
        self.enter(0)
        self.leave(0)
        self.leave(0)
        self.now = 10.0
        self.publisher.publish_concurrency(T0)


@pytest.mark.parametrize(("scope", "high", "low"), [("per_instance", 3, 0), ("variant_total", 4, 0)])
def test_extremes_are_exact_however_short(scope: str, high: float, low: float) -> None:
    bench = Bench(scope)
    bench.busy_window()
    assert bench.read("ConcurrentRequestsPerModel", "Maximum") == {T0: high}
    assert bench.read("ConcurrentRequestsPerModel", "Minimum") == {T0: low}


@pytest.mark.parametrize(("scope", "mean"), [("per_instance", 1.25), ("variant_total", 2.5)])
def test_the_mean_is_over_time(scope: str, mean: float) -> None:
    bench = Bench(scope)
    bench.busy_window()
    assert bench.read("ConcurrentRequestsPerModel", "Average") == {T0: pytest.approx(mean)}


def test_an_idle_variant_publishes_zeros_or_with_the_fault_nothing() -> None:
    bench = Bench()
    bench.publisher.publish_concurrency(T0)
    bench.faults.set("idle-gaps", {})
    bench.publisher.publish_concurrency(T0 + 10)
    assert bench.read("ConcurrentRequestsPerModel", "Maximum") == {T0: 0}


def test_missing_metrics_publishes_nothing() -> None:
    bench = Bench()
    bench.faults.set("missing-metrics", {})
    bench.busy_window()
    assert bench.read("ConcurrentRequestsPerModel", "Maximum") == {}


def trace(**more: Any) -> RequestTrace:
    milliseconds = 1_000_000
    times = {"arrival_ns": 0, "routed_ns": 2, "headers_ns": 50, "first_byte_ns": 52, "end_ns": 62}
    given = {"variant": "primary", "outcome": "ok", "container_status": 200, **more}
    return RequestTrace(1, "speech", 1, **{name: value * milliseconds for name, value in times.items()} | given)


def test_latencies_are_microseconds() -> None:
    bench = Bench()
    report.publish(bench.publisher, trace(), instances=2)
    bench.publisher.publish_minute(T0)
    expected = {
        "FirstChunkLatency": 52_000,
        "FirstChunkModelLatency": 50_000,
        "FirstChunkOverheadLatency": 2_000,
        "ModelLatency": 60_000,
        "OverheadLatency": 2_000,
        "Invocations": 1,
        "InvocationsPerInstance": 0.5,
        "Invocation4XXErrors": 0,
        "Invocation5XXErrors": 0,
        "InvocationModelErrors": 0,
        "MidStreamErrors": 0,
    }
    assert {name: bench.read(name, "Sum", 60)[T0] for name in expected} == expected


@pytest.mark.parametrize(
    ("status", "counted"),
    [(400, {"Invocation4XXErrors"}), (503, {"Invocation5XXErrors"}), (None, {"Invocation5XXErrors"})],
)
def test_errors_of_the_container(status: int | None, counted: set[str]) -> None:
    bench = Bench()
    report.publish(bench.publisher, trace(container_status=status, first_byte_ns=None), instances=1)
    bench.publisher.publish_minute(T0)
    errors = {name for name in ("Invocation4XXErrors", "Invocation5XXErrors") if bench.read(name, "Sum", 60)[T0]}
    assert errors == counted
    assert bench.read("InvocationModelErrors", "Sum", 60) == {T0: 1}
    assert bench.read("FirstChunkLatency", "Sum", 60) == {}


def test_percentiles_of_latencies() -> None:
    bench = Bench()
    for first_ms in range(1, 101):
        report.publish(bench.publisher, trace(first_byte_ns=first_ms * 1_000_000), instances=1)
    bench.publisher.publish_minute(T0)
    assert bench.read("FirstChunkLatency", "p95", 60) == {T0: 95_000}
