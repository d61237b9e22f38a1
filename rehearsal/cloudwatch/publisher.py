"""What SageMaker publishes about endpoints: concurrency every 10 s, the rest every minute."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterable

from rehearsal.cloudwatch.store import Datapoint, MetricStore, metric_id
from rehearsal.faults import Faults
from rehearsal.fleet import gpu
from rehearsal.fleet.instance import Instance
from rehearsal.fleet.load import Window
from rehearsal.fleet.usage import Usage
from rehearsal.fleet.variant import Fleet
from rehearsal.record import InFlightSample, Record
from rehearsal.sagemaker.endpoints import Endpoints
from rehearsal.settings import Settings

CONCURRENCY_PERIOD_S = 10
MINUTE_S = 60
SAMPLE_EVERY_S = 0.25
SAMPLES_PER_WINDOW = 10
"""The sample count of a published window; AWS documents none."""

RUNTIME = "AWS/SageMaker"
HOSTS = "/aws/sagemaker/Endpoints"


class Publisher:
    """Collects what requests report and publishes it period by period."""

    def __init__(
        self, settings: Settings, store: MetricStore, endpoints: Endpoints, record: Record, faults: Faults
    ) -> None:
        self._settings = settings
        self._store = store
        self._endpoints = endpoints
        self._record = record
        self._faults = faults
        self._usage: dict[str, Usage] = {}
        self._gpu: dict[str, float] = {}
        self._minute: dict[tuple[str, str, str], Counter[float]] = defaultdict(Counter)
        self._units: dict[str, str] = {}

    async def run(self) -> None:
        """Sample in-flight all the time; publish at every period's end. Until cancelled."""
        now = time.time()
        concurrency_due = _next(now, CONCURRENCY_PERIOD_S)
        minute_due = _next(now, MINUTE_S)
        while True:
            await asyncio.sleep(SAMPLE_EVERY_S)
            self._sample()
            now = time.time()
            if now >= concurrency_due:
                self.publish_concurrency(concurrency_due - CONCURRENCY_PERIOD_S)
                concurrency_due = _next(now, CONCURRENCY_PERIOD_S)
            if now >= minute_due:
                self._gpu = await gpu.read()
                self.publish_minute(minute_due - MINUTE_S)
                minute_due = _next(now, MINUTE_S)

    def count(self, endpoint: str, variant: str, name: str, value: float, unit: str = "None") -> None:
        """One value of a minute metric."""
        self._minute[endpoint, variant, name][value] += 1
        self._units[name] = unit

    def publish_concurrency(self, start_s: float) -> None:
        """ConcurrentRequestsPerModel of the window that began at ``start_s``."""
        for fleet in self._fleets():
            windows = [instance.load.take_window() for instance in fleet.instances if instance.counted]
            total = fleet.load.take_window()
            if not windows or (self._faults.on("idle-gaps") and not total.high):
                continue
            for window in [total] if self._settings.metric_scope == "variant_total" else windows:
                point = _statistic_set(start_s, window)
                self._put(RUNTIME, "ConcurrentRequestsPerModel", fleet.endpoint, fleet.variant, point)

    def publish_minute(self, start_s: float) -> None:
        """Everything else of the minute that began at ``start_s``."""
        for (endpoint, variant, name), values in self._minute.items():
            self._put(RUNTIME, name, endpoint, variant, Datapoint.of(start_s, values, unit=self._units[name]))
        self._minute.clear()
        for fleet in self._fleets():
            for instance in fleet.instances:
                self._publish_usage(start_s, fleet, instance)

    def _publish_usage(self, start_s: float, fleet: Fleet, instance: Instance) -> None:
        if instance.container is None or not instance.serving:
            return
        usage = self._usage.setdefault(instance.id, Usage())
        for name, value in {**usage.read(instance.container.pid), **self._gpu}.items():
            self._put(HOSTS, name, fleet.endpoint, fleet.variant, Datapoint.of(start_s, {value: 1.0}, unit="Percent"))

    def _put(self, namespace: str, name: str, endpoint: str, variant: str, point: Datapoint) -> None:
        if self._faults.on("missing-metrics"):
            return
        if self._faults.on("late-metrics"):
            delay_s = self._faults.number("late-metrics", "delay_s")
            point = Datapoint(
                *(point.at_s, point.values, point.counts, point.low, point.high, point.total, point.samples),
                high_resolution=point.high_resolution,
                unit=point.unit,
                visible_from_s=time.time() + delay_s,
            )
        dimensions = [{"Name": "EndpointName", "Value": endpoint}, {"Name": "VariantName", "Value": variant}]
        self._store.put(metric_id(namespace, name, dimensions), point)

    def _sample(self) -> None:
        now = time.monotonic_ns()
        for fleet in self._fleets():
            for instance in fleet.instances:
                if instance.counted:
                    self._record.samples.append(InFlightSample(now, instance.id, instance.load.in_flight))

    def _fleets(self) -> Iterable[Fleet]:
        return [fleet for endpoint in self._endpoints.all.values() for fleet in endpoint.live.fleets]


def _statistic_set(start_s: float, window: Window) -> Datapoint:
    return Datapoint(
        start_s,
        low=window.low,
        high=window.high,
        total=window.mean * SAMPLES_PER_WINDOW,
        samples=SAMPLES_PER_WINDOW,
        high_resolution=True,
        unit="None",
    )


def _next(now: float, period_s: int) -> float:
    return (math.floor(now / period_s) + 1) * period_s
