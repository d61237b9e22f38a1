"""The batched kernel: the whole fleet in short steps, a numpy vector an instance. Cost does not grow with the rate.

A step is a fifth of one service time. Within it, head-of-line work is done at X(n), completions free their slots, and
the step's arrivals fill the least occupied instances level by level, which is what sequential least-outstanding
routing does when nobody leaves in between. tests/planner/simulate/test_kernels.py holds it to the exact kernel.
"""

from __future__ import annotations

import numpy as np

from planner.errors import UsageError
from planner.simulate.interval import IntArray, Interval, TtfabBins
from planner.simulate.routing import Routing
from planner.simulate.service import FloatArray, ServiceModel

# Shorter steps move no result by more than the tests' tolerance and cost in proportion.
STEP_SHARE = 0.2
_POOL = 1 << 18
# Draws for the TTFAB of one position in the queue: 1 % precision in the tails that matter.
_DRAWS = 20_000


class BatchedKernel:
    """Same contract as ExactKernel; TTFAB is drawn from the position at admission."""

    def __init__(
        self,
        service: ServiceModel,
        *,
        instances: int,
        bound: int,
        routing: Routing,
        bins: TtfabBins,
        rng: np.random.Generator,
    ) -> None:
        if bound < 1:
            raise UsageError(f"admission bound {bound} is below 1")
        self._bound, self._routing, self._rng = bound, routing, rng
        self._rates = service.rates_up_to(bound)
        self._rates[0] = self._rates[1]  # an idle instance's work turns negative: how long ago it went idle
        self._step_s = STEP_SHARE / float(self._rates[1])
        self._inside: IntArray = np.zeros(instances, np.int64)
        self._left: FloatArray = np.full(instances, -1.0)
        self._work = _Pool(service.work(rng, _POOL))
        self._phase = _Pool(rng.random(_POOL))
        self._positions = _PositionTtfab(service, bins, rng)
        self._now_s = 0.0
        self._retired = 0

    @property
    def instances(self) -> int:
        return int(self._inside.size)

    def add_instance(self) -> None:
        self._inside = np.append(self._inside, 0)
        self._left = np.append(self._left, -1.0)

    def retire_instance(self) -> None:
        self._retired += int(self._inside[-1])
        self._inside, self._left = self._inside[:-1], self._left[:-1]

    def advance(self, until_s: float, arrivals_s: FloatArray) -> Interval:
        start_s, span_s = self._now_s, until_s - self._now_s
        steps = max(1, round(span_s / self._step_s))
        step_s = span_s / steps
        each = np.bincount(((arrivals_s - start_s) / step_s).astype(int).clip(0, steps - 1), minlength=steps)
        progress = self._rates * step_s
        reached = np.zeros(self._bound + 2)
        shed = completed = area = 0
        peak = int(self._inside.max(initial=0))
        for arriving in each.tolist():
            completed += self._work_off(progress)
            if arriving:
                before = np.bincount(self._inside, minlength=self._bound + 1)
                shed += self._admit(arriving, before, progress[1])
                after = np.bincount(self._inside, minlength=self._bound + 1)
                reached[1:] += np.cumsum(before - after)
                peak = max(peak, int(np.flatnonzero(after)[-1]))
            area += int(self._inside.sum())
        self._now_s = until_s
        completed, self._retired = completed + self._retired, 0
        return Interval(
            start_s=start_s,
            end_s=until_s,
            offered=len(arrivals_s),
            shed=shed,
            completed=completed,
            peak=peak,
            in_flight_s=area * step_s,
            instance_s=span_s * self.instances,
            ttfab_counts=self._positions.counts(reached),
        )

    def _work_off(self, progress: FloatArray) -> int:
        inside, left = self._inside, self._left
        left -= progress[inside]
        completed = 0
        done = np.flatnonzero((left <= 0) & (inside > 0))
        while done.size:
            completed += int(done.size)
            inside[done] -= 1
            done = done[inside[done] > 0]
            left[done] += self._work.take(done.size)
            done = done[left[done] <= 0]
        return completed

    def _admit(self, arriving: int, before: IntArray, step_work: float) -> int:
        idle = np.flatnonzero(self._inside == 0)
        shed = self._fill(arriving, before) if self._routing == "least_outstanding" else self._scatter(arriving)
        started = idle[self._inside[idle] > 0]
        if started.size:
            done_in_step = np.minimum(self._phase.take(started.size) * step_work, -self._left[started])
            self._left[started] = self._work.take(started.size) - done_in_step
        return shed

    def _fill(self, arriving: int, before: IntArray) -> int:
        """Raise the lowest instances level by level; what finds every instance full is shed."""
        room = np.cumsum(np.cumsum(before[: self._bound]))
        taken = min(arriving, int(room[-1]))
        level = int(np.searchsorted(room, taken, side="right"))
        over = taken - (int(room[level - 1]) if level else 0)
        if level:
            np.maximum(self._inside, level, out=self._inside)
        if over:
            at_level = np.flatnonzero(self._inside == level)
            first = self._phase.index(at_level.size)
            self._inside[np.take(at_level, np.arange(first, first + over), mode="wrap")] += 1
        return arriving - taken

    def _scatter(self, arriving: int) -> int:
        wanted = self._inside + np.bincount(self._rng.integers(0, self.instances, arriving), minlength=self.instances)
        np.minimum(wanted, self._bound, out=self._inside)
        return int(wanted.sum() - self._inside.sum())


class _Pool:
    """Random numbers drawn ahead and used round and round."""

    def __init__(self, values: FloatArray) -> None:
        self._values, self._next = values, 0

    def take(self, size: int) -> FloatArray:
        if self._next + size > self._values.size:
            self._next = 0
        taken = self._values[self._next : self._next + size]
        self._next += size
        return taken

    def index(self, below: int) -> int:
        return int(self.take(1)[0] * below)


class _PositionTtfab:
    """TTFAB of a request admitted as the k-th inside: the head's rest and k-1 whole works at speed X(k)."""

    def __init__(self, service: ServiceModel, bins: TtfabBins, rng: np.random.Generator) -> None:
        self._service, self._bins, self._rng = service, bins, rng
        self._shares: dict[int, FloatArray] = {}

    def counts(self, reached: FloatArray) -> FloatArray:
        """Expected bin counts when reached[k] requests were admitted as the k-th."""
        total = np.zeros(self._bins.size)
        for position in np.flatnonzero(reached).tolist():
            total += reached[position] * self._share(position)
        return total

    def _share(self, position: int) -> FloatArray:
        if position not in self._shares:
            drawn_s = self._work(position) / self._service.rates_up_to(position)[position]
            counts = self._bins.count(drawn_s * self._service.shares_up_to(position)[position])
            self._shares[position] = counts / _DRAWS
        return self._shares[position]

    def _work(self, position: int) -> FloatArray:
        if position == 1:
            return self._service.work(self._rng, _DRAWS)
        cv = self._service.cv
        whole = np.full(_DRAWS, position - 1.0)
        if cv:
            whole = self._rng.gamma((position - 1) / cv**2, cv**2, _DRAWS)
        return whole + self._rest_of_head()

    def _rest_of_head(self) -> FloatArray:
        """Equilibrium residual: a uniform part of a length-biased work (for Gamma: one more shape unit of cv^2)."""
        cv = self._service.cv
        biased = self._rng.gamma(1 / cv**2 + 1, cv**2, _DRAWS) if cv else np.ones(_DRAWS)
        rest: FloatArray = biased * self._rng.random(_DRAWS)
        return rest
