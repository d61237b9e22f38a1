"""The exact kernel: every arrival and departure an event. About a microsecond an event in small fleets."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from planner.simulate.interval import Interval, TtfabBins
from planner.simulate.routing import Routing
from planner.simulate.service import FloatArray, ServiceModel

_NEVER = math.inf


class ExactKernel:
    """FCFS flow-equivalent servers with an admission bound; a request leaves when its work is done."""

    def __init__(
        self,
        service: ServiceModel,
        *,
        instances: int,
        bound: int | None,
        routing: Routing,
        bins: TtfabBins,
        rng: np.random.Generator,
    ) -> None:
        self._service, self._bins, self._rng, self._routing = service, bins, rng, routing
        self._bound: float = _NEVER if bound is None else bound
        self._now_s = 0.0
        self._inside: list[int] = []
        self._next_done_s: list[float] = []
        self._queues: list[deque[tuple[float, int, float]]] = []
        self._times_s: list[float] = []
        self._levels: list[int] = []
        self._pace_s = [0.0]
        self._extend_pace(64 if bound is None else bound)
        for _ in range(instances):
            self.add_instance()

    @property
    def instances(self) -> int:
        return len(self._inside)

    def add_instance(self) -> None:
        self._inside.append(0)
        self._next_done_s.append(_NEVER)
        self._queues.append(deque())

    def retire_instance(self) -> None:
        self._inside.pop()
        done_s, queue = self._next_done_s.pop(), self._queues.pop()
        while queue:
            came_s, level, _ = queue.popleft()
            self._times_s.append(done_s - came_s)
            self._levels.append(level)
            done_s += queue[0][2] * self._pace_s[len(queue)] if queue else 0.0

    def advance(self, until_s: float, arrivals_s: FloatArray) -> Interval:
        start_s, held = self._now_s, sum(self._inside)
        late = len(self._times_s)
        work = self._service.work(self._rng, len(arrivals_s)).tolist()
        shed, peak, admitted_at_s, left_at_s = self._serve(arrivals_s.tolist(), work, until_s)
        self._now_s = until_s
        served = len(self._times_s) - late
        span_s = until_s - start_s
        in_flight_s = held * span_s + (len(arrivals_s) - shed) * until_s - admitted_at_s - served * until_s + left_at_s
        return Interval(
            start_s=start_s,
            end_s=until_s,
            offered=len(arrivals_s),
            shed=shed,
            completed=served + late,
            peak=peak,
            in_flight_s=in_flight_s,
            instance_s=span_s * self.instances,
            ttfab_counts=self._take_counts(),
        )

    def _take_counts(self) -> FloatArray:
        shares = self._service.shares_up_to(max(self._levels, default=0))
        counts = self._bins.count(np.array(self._times_s) * shares[np.array(self._levels, dtype=int)])
        self._times_s.clear()
        self._levels.clear()
        return counts.astype(float)

    def _extend_pace(self, depth: int) -> None:
        self._pace_s = [0.0, *(1 / self._service.rates_up_to(depth)[1:]).tolist()]

    def _serve(self, arrivals_s: list[float], work: list[float], until_s: float) -> tuple[int, int, float, float]:
        """The event loop. Returns shed, peak, and the sums of admission and departure times."""
        inside, next_done_s, queues, pace_s = self._inside, self._next_done_s, self._queues, self._pace_s
        keep_time, keep_level = self._times_s.append, self._levels.append
        bound, shed, peak = self._bound, 0, max(inside, default=0)
        admitted_at_s = left_at_s = 0.0
        picks = self._picks(len(arrivals_s)) if self._routing == "random" else None
        soonest_s = min(next_done_s)
        for number, now_s in enumerate([*arrivals_s, until_s]):
            while soonest_s <= now_s:
                server = next_done_s.index(soonest_s)
                queue = queues[server]
                came_s, level, _ = queue.popleft()
                keep_time(soonest_s - came_s)
                keep_level(level)
                left_at_s += soonest_s
                left = inside[server] - 1
                inside[server] = left
                next_done_s[server] = soonest_s + queue[0][2] * pace_s[left] if left else _NEVER
                soonest_s = min(next_done_s)
            if number == len(arrivals_s):
                break
            if picks is None:
                held = min(inside)
                server = inside.index(held)
            else:
                server = picks[number]
                held = inside[server]
            if held >= bound:
                shed += 1
                continue
            level = held + 1
            if level >= len(pace_s):
                self._extend_pace(2 * level)
                pace_s = self._pace_s
            inside[server] = level
            queues[server].append((now_s, level, work[number]))
            admitted_at_s += now_s
            if level > peak:
                peak = level
            if not held:
                next_done_s[server] = now_s + work[number] * pace_s[1]
                soonest_s = min(soonest_s, next_done_s[server])
            elif pace_s[level] != pace_s[held]:
                left_s = (next_done_s[server] - now_s) * pace_s[level] / pace_s[held]
                next_done_s[server] = now_s + left_s
                soonest_s = min(next_done_s)
        return shed, peak, admitted_at_s, left_at_s

    def _picks(self, size: int) -> list[int]:
        picked: list[int] = self._rng.integers(0, self.instances, max(size, 1)).tolist()
        return picked
