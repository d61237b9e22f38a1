"""The control loop: kernel, metric publication, policy and instance starts, period by period."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

import numpy as np

from planner.simulate.arrivals import Arrivals
from planner.simulate.interval import Interval, Kernel, TtfabBins
from planner.simulate.kernel import KernelChoice, build, choose
from planner.simulate.policies import FleetView, Policy, Sample
from planner.simulate.routing import Routing
from planner.simulate.service import ServiceModel
from planner.simulate.utilisation import UtilisationCurve

METRIC_PERIOD_S = 10


@dataclass(frozen=True)
class FleetSpec:
    """Everything but the traffic and the policy."""

    service: ServiceModel
    slo_s: float
    bound: int | None
    t_total_s: float
    start_instances: int
    min_instances: int
    max_instances: int
    quota: int | None = None
    routing: Routing = "least_outstanding"
    publish_delay_s: int = METRIC_PERIOD_S
    """How long after a period ends its sample can be read."""
    idle_metric: Literal["zero", "missing"] = "zero"
    """What the metric shows without traffic; AWS does not say."""
    updates_overlap: bool = False
    """False: SageMaker refuses a new count while the endpoint is Updating."""
    scaling_from_s: float = 0.0
    """The policy acts from here on."""
    watching_from_s: float | None = None
    """Its alarms see metrics from here on; None = once it acts. Suspended scaling leaves alarms running."""
    gpu: UtilisationCurve | None = None
    cpu: UtilisationCurve | None = None
    kernel: KernelChoice = "auto"
    seed: int = 0


@dataclass(frozen=True)
class Activity:
    """A change of the desired count, or one that was refused."""

    at_s: float
    before: int
    after: int
    outcome: Literal["done", "quota"] = "done"


@dataclass(frozen=True)
class Point:
    """One metric period of the timeline."""

    interval: Interval
    in_service: int
    desired: int


@dataclass(frozen=True)
class Run:
    """Raw outcome of one policy on one profile."""

    points: tuple[Point, ...]
    activities: tuple[Activity, ...]
    total: Interval
    billed_instance_s: float
    kernel: KernelChoice


def simulate(spec: FleetSpec, policy: Policy, arrivals: Arrivals) -> Run:
    """Run one policy over one profile."""
    return _Loop(spec, policy, arrivals).run()


class _Loop:
    def __init__(self, spec: FleetSpec, policy: Policy, arrivals: Arrivals) -> None:
        self.spec, self.policy, self.arrivals = spec, policy, arrivals
        self.kernel_kind = spec.kernel if spec.kernel != "auto" else self._affordable()
        self.kernel: Kernel = build(
            self.kernel_kind,
            spec.service,
            instances=spec.start_instances,
            bound=spec.bound,
            routing=spec.routing,
            bins=TtfabBins(spec.slo_s),
            rng=np.random.default_rng([spec.seed, 1]),
        )
        self.desired = spec.start_instances
        self.ready_at_s: list[float] = []
        self.unpublished: deque[Sample] = deque()
        self.activities: list[Activity] = []
        self.billed_s = 0.0

    def _affordable(self) -> KernelChoice:
        profile = self.arrivals.profile
        count = profile.expected_arrivals(0, profile.duration_s)
        fleet = max(self.spec.start_instances, round(profile.peak_rps / self.spec.service.capacity_rps))
        fleet = min(fleet, self.spec.max_instances)
        return choose(
            self.spec.service, arrivals=count, span_s=profile.duration_s, instances=fleet, bound=self.spec.bound
        )

    def run(self) -> Run:
        points: list[Point] = []
        now_s, end_s = 0.0, self.arrivals.profile.duration_s
        total: Interval | None = None
        spec = self.spec
        watching_from_s = spec.scaling_from_s if spec.watching_from_s is None else spec.watching_from_s
        while now_s < end_s:
            until_s = min(now_s + METRIC_PERIOD_S, end_s)
            interval = self._serve(now_s, until_s)
            self.billed_s += self.desired * (until_s - now_s)
            points.append(Point(interval, self.kernel.instances, self.desired))
            total = interval if total is None else total.then(interval)
            now_s = until_s
            if now_s >= watching_from_s:
                self._control(interval, now_s)
        assert total is not None, "a profile lasts some time"
        return Run(tuple(points), tuple(self.activities), total, self.billed_s, self.kernel_kind)

    def _serve(self, start_s: float, end_s: float) -> Interval:
        """Advance to the period's end, stopping where instances come into service."""
        pending = self.arrivals.between(start_s, end_s)
        served: Interval | None = None
        for stop_s in [*sorted({ready for ready in self.ready_at_s if start_s < ready < end_s}), end_s]:
            split = int(np.searchsorted(pending, stop_s, side="left"))
            part = self.kernel.advance(stop_s, pending[:split])
            served = part if served is None else served.then(part)
            pending = pending[split:]
            self._start_ready(stop_s)
        assert served is not None, "the period's end is always a stop"
        return served

    def _start_ready(self, now_s: float) -> None:
        due = [ready for ready in self.ready_at_s if ready <= now_s]
        for _ in due:
            self.kernel.add_instance()
        self.ready_at_s = [ready for ready in self.ready_at_s if ready > now_s]

    def _control(self, interval: Interval, now_s: float) -> None:
        self.unpublished.append(self._sample(interval))
        if self.unpublished[0].end_s + self.spec.publish_delay_s > now_s:
            return
        sample = self.unpublished.popleft()
        wanted = self.policy.observe(sample, FleetView(now_s, self.desired, self.kernel.instances))
        if wanted is not None and now_s > self.spec.scaling_from_s:
            self._change(wanted, now_s)

    def _sample(self, interval: Interval) -> Sample:
        spec = self.spec
        each_rps = interval.completed / max(interval.instance_s, 1e-9)
        quiet = interval.offered == 0 and interval.peak == 0
        return Sample(
            end_s=interval.end_s,
            concurrency_max=None if quiet and spec.idle_metric == "missing" else float(interval.peak),
            invocations_per_instance=None if quiet else interval.offered / self.kernel.instances,
            gpu_pct=spec.gpu.at(each_rps) if spec.gpu else None,
            cpu_pct=spec.cpu.at(each_rps) if spec.cpu else None,
        )

    def _change(self, wanted: int, now_s: float) -> None:
        spec = self.spec
        wanted = min(max(wanted, spec.min_instances), spec.max_instances)
        if wanted == self.desired or (self.ready_at_s and not spec.updates_overlap):
            return
        if spec.quota is not None and wanted > max(spec.quota, self.desired):
            self.activities.append(Activity(now_s, self.desired, wanted, "quota"))
            return
        self.activities.append(Activity(now_s, self.desired, wanted))
        self.policy.applied(self.desired, wanted, now_s)
        if wanted > self.desired:
            self.ready_at_s += [now_s + spec.t_total_s] * (wanted - self.desired)
        for _ in range(self.desired - wanted):
            if self.ready_at_s:
                self.ready_at_s.pop()
            else:
                self.kernel.retire_instance()
        self.desired = wanted
