"""One instance under open (Poisson) arrivals as a small Markov chain with admission: steady state and transients.

The closed-loop throughput X(n) of the ladder is the rate of a flow-equivalent server holding n requests (Chandy,
Herzog, Woo 1975). Two chains share one form, a kernel over a short step plus the occupancy seen during that step:

- ``birth_death``: exponential service, rate X(n) at every instant. M/M/1, M/M/c and M/M/1/K are special cases.
- ``erlang``: service in k equal stages (k = inf is deterministic), embedded at departures. The arrivals during one
  service are negative binomial (Poisson for k = inf), and a service started with n present takes 1/X(n) on average.
  M/E_k/1/K and M/D/1/K are special cases.

Everything is linear algebra on K + 1 states; nothing is sampled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

# Poisson mass left out of a uniformisation sum; far below every printed digit.
TRUNCATION = 1e-12
# States whose steady-state tail is below this cannot move the mean of a 10 s maximum.
NEGLIGIBLE_TAIL = 1e-10
# Under heavy overload the unnormalised weights grow geometrically; they are rescaled long before they overflow.
RESCALE_ABOVE = 1e100
# P(max < m) is smooth in m: at most this many levels are computed, the rest interpolated.
LEVELS_MAX = 96
# Beyond this many steps repeated squaring is cheaper than stepping.
STEPPING_LIMIT = 3000


@dataclass(frozen=True, eq=False)
class Chain:
    """A chain on S states; ``depth`` is the admission bound K (queued + executing)."""

    arrival_rps: float
    depth: int
    step_s: float
    kernel: Matrix
    """S x S, one step."""
    occupancy: Matrix
    """S x (K + 1): share of a step, started in a state, during which n requests are present."""
    jumps: Matrix
    """S x S, the part of one jump step that can raise the occupancy; ``stay`` is the rest."""
    stay: Vector
    jump_step_s: float
    peak: Vector
    """Occupancy reached just before a jump lands in a state."""
    random_jumps: bool
    """True: the number of jump steps in a time is Poisson (uniformisation). False: it is fixed."""

    @cached_property
    def steady(self) -> Vector:
        """Stationary distribution over the S states."""
        return _stationary(self.jumps)

    @property
    def occupancy_steady(self) -> Vector:
        """P(n present), n = 0..K; by PASTA also what an arrival sees."""
        return self.steady @ self.occupancy

    @property
    def mean_occupancy(self) -> float:
        """L of Little's law: requests in the system."""
        return mean(self.occupancy_steady)

    @property
    def blocking(self) -> float:
        """Share of arrivals that find K present and are shed."""
        return float(self.occupancy_steady[-1])

    @property
    def mean_response_s(self) -> float:
        """W = L / (lambda (1 - blocking)), Little's law over the admitted."""
        return self.mean_occupancy / (self.arrival_rps * (1 - self.blocking))

    def start_at(self, occupancy: float) -> Vector:
        """All mass on the two states around a mean occupancy (clipped to what the chain can hold)."""
        states = self.kernel.shape[0]
        level = min(max(occupancy, 0.0), states - 1.0)
        low = min(int(level), states - 1)
        start = np.zeros(states)
        start[low] = 1 - (level - low)
        if low + 1 < states:
            start[low + 1] = level - low
        return start


def mean(distribution: Vector) -> float:
    """Mean of a distribution on 0..K."""
    return float(distribution @ np.arange(len(distribution)))


def birth_death(rates_rps: Sequence[float], arrival_rps: float) -> Chain:
    """Exponential service at ``rates_rps[n-1]`` with n present; admission bound K = len(rates_rps)."""
    depth = len(rates_rps)
    death = np.asarray(rates_rps, dtype=np.float64)
    uniform = arrival_rps + float(death.max())
    up = np.full(depth, arrival_rps / uniform)
    down = death / uniform
    jumps = np.diag(up, 1) + np.diag(down, -1)
    stay = 1.0 - jumps.sum(axis=1)
    kernel, occupancy = _uniformised(jumps + np.diag(stay))
    return Chain(
        arrival_rps=arrival_rps,
        depth=depth,
        step_s=1.0 / uniform,
        kernel=kernel,
        occupancy=occupancy,
        jumps=jumps,
        stay=stay,
        jump_step_s=1.0 / uniform,
        peak=np.arange(depth + 1, dtype=np.float64),
        random_jumps=True,
    )


def erlang(rates_rps: Sequence[float], arrival_rps: float, stages: float) -> Chain:
    """Service in ``stages`` equal stages (inf: deterministic) of mean 1/rates_rps[n-1], n present at its start.

    States 0..K-1 count what a departure leaves behind. From 0 the next service starts one arrival later. A state's mean
    holding time is tau; one step is the shortest service, and a state is left with probability step/tau.
    """
    depth = len(rates_rps)
    service_s = 1.0 / np.asarray(rates_rps, dtype=np.float64)
    started = np.concatenate(([0], np.arange(depth - 1)))  # row of service_s used from each state
    tau = service_s[started].copy()
    arrivals = _arrivals_during(arrival_rps * tau, stages, depth)
    tau[0] += 1.0 / arrival_rps
    step = float(service_s.min())
    left = np.concatenate(([0], np.arange(depth - 1)))  # left behind if nobody arrives
    counts = np.arange(depth)
    rows, landing = np.broadcast_to(counts[:, None], arrivals.shape), left[:, None] + counts[None, :]
    moves, occupancy = np.zeros((depth, depth)), np.zeros((depth, depth + 1))
    inside = landing < depth - 1
    moves[rows[inside], landing[inside]] = arrivals[inside]
    moves[:, depth - 1] = np.clip(1.0 - moves.sum(axis=1), 0.0, 1.0)
    # Time with a arrivals so far during one service is P(A > a) / lambda on average.
    so_far = np.clip(1.0 - np.cumsum(arrivals, axis=1), 0.0, 1.0) / (arrival_rps * tau[:, None])
    below = landing + 1 < depth
    occupancy[rows[below], landing[below] + 1] = so_far[below]
    occupancy[0, 0] = 1.0 / (arrival_rps * tau[0])
    occupancy[:, depth] += np.clip(1.0 - occupancy.sum(axis=1), 0.0, 1.0)
    leave = step / tau
    jumps = moves * leave[:, None]
    stay = 1.0 - leave
    kernel = jumps + np.diag(stay)
    return Chain(
        arrival_rps=arrival_rps,
        depth=depth,
        step_s=step,
        kernel=kernel,
        occupancy=occupancy,
        jumps=jumps,
        stay=stay,
        jump_step_s=step,
        peak=np.arange(depth, dtype=np.float64) + 1.0,
        random_jumps=False,
    )


@dataclass(frozen=True, eq=False)
class Window:
    """What a time window looks like on average."""

    occupancy: Vector
    """Time average of P(n present) over the window; by PASTA what its arrivals see."""

    @property
    def shed_fraction(self) -> float:
        """Share of the window's arrivals that find no slot."""
        return float(self.occupancy[-1])


def transient(chain: Chain, start: Vector, duration_s: float) -> Window:
    """Average occupancy over ``duration_s`` from ``start``: sums of powers of the kernel by doubling."""
    steps = max(1, round(duration_s / chain.step_s))
    state, total = start, np.zeros_like(start)
    power, series = chain.kernel, np.eye(len(start))
    remaining = steps
    while True:
        if remaining & 1:
            total = total + state @ series
            state = state @ power
        remaining >>= 1
        if not remaining:
            break
        series = series + power @ series
        power = power @ power
    return Window(occupancy=(total / steps) @ chain.occupancy)


def timeline(chain: Chain, start: Vector, duration_s: float, points: int) -> list[tuple[float, Vector]]:
    """Occupancy distribution at ``points`` + 1 equally spaced moments from ``start``."""
    steps = max(1, round(duration_s / points / chain.step_s))
    leap = np.linalg.matrix_power(chain.kernel, steps)
    seen, state = [], start
    for point in range(points + 1):
        seen.append((point * steps * chain.step_s, state @ chain.occupancy))
        state = state @ leap
    return seen


def time_to_full_s(chain: Chain, start: Vector) -> float:
    """Mean time until all K slots are taken for the first time."""
    safe = chain.peak < chain.depth
    survive = chain.jumps * safe[None, :] + np.diag(chain.stay)
    alive = np.ones(len(start), dtype=bool) if not chain.random_jumps else safe
    system = np.eye(int(alive.sum())) - survive[np.ix_(alive, alive)]
    try:
        times = np.linalg.solve(system, np.full(len(system), chain.jump_step_s))
    except np.linalg.LinAlgError:
        return math.inf
    expected = float(start[alive] @ times)
    return expected if expected >= 0 and math.isfinite(expected) else math.inf


def expected_window_max(chain: Chain, window_s: float = 10.0) -> float:
    """Mean of the largest occupancy within ``window_s`` in steady state.

    P(max < m) is the mass that survives the window when every path reaching m is killed; the mean is the sum of
    1 - P(max < m) over m = 1..K.
    """
    tail = 1.0 - np.cumsum(chain.occupancy_steady)
    top = chain.depth
    if chain.steady[-1] < NEGLIGIBLE_TAIL:
        top = min(chain.depth, int(np.argmax(tail < NEGLIGIBLE_TAIL)) + 2)
    size = min(len(chain.steady), top + 1)
    every = np.arange(1, top + 1)
    levels = every if top <= LEVELS_MAX else np.unique(np.linspace(1, top, LEVELS_MAX).astype(np.int64))
    jumps, stay, peak = chain.jumps[:size, :size], chain.stay[:size], chain.peak[:size]
    allowed = peak[None, :] < levels[:, None]
    # Started below m: the present occupancy itself counts. Embedded states enter with what is already in service.
    begin = chain.steady[:size] * (np.arange(size)[None, :] < levels[:, None])
    survived = _survival(begin, jumps, stay, allowed, window_s / chain.jump_step_s, chain.random_jumps)
    return float(np.sum(1.0 - np.interp(every, levels, survived)))


def _survival(
    begin: Matrix, jumps: Matrix, stay: Vector, allowed: npt.NDArray[np.bool_], steps: float, poisson: bool
) -> Vector:
    if steps > STEPPING_LIMIT:
        return np.array(
            [_survives(row, jumps, stay, mask, round(steps)) for row, mask in zip(begin, allowed, strict=True)]
        )
    mass = begin
    if not poisson:
        for _ in range(round(steps)):
            mass = (mass @ jumps) * allowed + mass * stay
        return np.asarray(mass.sum(axis=1))
    # Uniformised jumps go one up, one down or nowhere: three shifted products instead of a matrix product.
    up, down = np.diagonal(jumps, 1), np.diagonal(jumps, -1)
    survived = np.zeros(len(begin))
    for weight in _poisson_weights(steps):
        survived += weight * mass.sum(axis=1)
        moved = mass * stay
        moved[:, 1:] += mass[:, :-1] * up
        moved[:, :-1] += mass[:, 1:] * down
        mass = moved * allowed
    return survived


def _survives(begin: Vector, jumps: Matrix, stay: Vector, mask: npt.NDArray[np.bool_], steps: int) -> float:
    size = int(np.flatnonzero(begin).max(initial=0)) + 1
    killed = jumps[:size, :size] * mask[None, :size] + np.diag(stay[:size])
    return float(begin[:size] @ np.linalg.matrix_power(killed, steps).sum(axis=1))


def _poisson_weights(rate: float) -> Vector:
    upper = int(rate + 8.0 * math.sqrt(rate) + 20)
    counts = np.arange(upper + 1)
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, upper + 1)))))
    weights = np.exp(counts * math.log(rate) - rate - log_factorial)
    return np.asarray(weights / weights.sum())


def _uniformised(jump_chain: Matrix) -> tuple[Matrix, Matrix]:
    """exp(Q dt) and its time average over dt = 1/Lambda, as Poisson sums over the jump chain (Jensen 1953)."""
    kernel, average = np.zeros_like(jump_chain), np.zeros_like(jump_chain)
    power, weight, beyond, n = np.eye(len(jump_chain)), math.exp(-1.0), 1.0, 0
    while beyond > TRUNCATION:
        beyond -= weight
        kernel += weight * power
        average += max(beyond, 0.0) * power  # integral of the n-th Poisson weight over the step = P(more than n)
        power = power @ jump_chain
        n += 1
        weight /= n
    return kernel / kernel.sum(axis=1, keepdims=True), average / average.sum(axis=1, keepdims=True)


def _arrivals_during(mean_arrivals: Vector, stages: float, count: int) -> Matrix:
    """P(A = a), a = 0..count-1, a row for each mean: Poisson over an Erlang time is negative binomial."""
    table = np.empty((len(mean_arrivals), count))
    if math.isinf(stages):
        growth, table[:, 0] = mean_arrivals, np.exp(-mean_arrivals)
        for a in range(1, count):
            table[:, a] = table[:, a - 1] * growth / a
        return table
    share = mean_arrivals / stages
    table[:, 0] = np.exp(-stages * np.log1p(share))
    ratio = share / (1.0 + share)
    for a in range(1, count):
        table[:, a] = table[:, a - 1] * ratio * (stages + a - 1) / a
    return table


def _stationary(jumps: Matrix) -> Vector:
    """Stationary distribution of a chain that falls by at most one state a step.

    State reduction (Grassmann, Taksar, Heyman 1985) has no subtraction, so no cancellation. Eliminating the top state
    sends whoever reached it to the one below: one column a state instead of a matrix.
    """
    reduced = jumps.copy()
    size = len(reduced)
    for n in range(size - 1, 0, -1):
        reduced[:n, n - 1] += reduced[:n, n]
        reduced[:n, n] /= reduced[n, n - 1]
    steady = np.zeros(size)
    steady[0] = 1.0
    for n in range(1, size):
        steady[n] = steady[:n] @ reduced[:n, n]
        if steady[n] > RESCALE_ABOVE:
            steady[: n + 1] /= steady[n]
    return np.asarray(steady / steady.sum())
