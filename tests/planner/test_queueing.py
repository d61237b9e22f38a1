"""The chains against closed forms, brute force and a small simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import expm

from planner.queueing import birth_death, erlang, expected_window_max, time_to_full_s, transient

DEEP = 600


@pytest.mark.parametrize("rho", [0.1, 0.5, 0.8, 0.95])
def test_mm1(rho: float) -> None:
    chain = birth_death([1.0] * DEEP, rho)
    assert chain.mean_occupancy == pytest.approx(rho / (1 - rho), abs=1e-6)
    assert chain.mean_response_s == pytest.approx(1 / (1 - rho), abs=1e-6)
    assert erlang([1.0] * DEEP, rho, 1).mean_occupancy == pytest.approx(rho / (1 - rho), abs=1e-6)


@pytest.mark.parametrize("depth", [1, 2, 7, 50])
@pytest.mark.parametrize("rho", [0.3, 1.0, 1.25, 31.0])
def test_mm1k_blocking(depth: int, rho: float) -> None:
    expected = 1 / (depth + 1) if rho == 1 else (1 - 1 / rho) / (1 - rho ** -(depth + 1))
    assert birth_death([2.0] * depth, 2 * rho).blocking == pytest.approx(expected, abs=1e-6)
    assert erlang([2.0] * depth, 2 * rho, 1).blocking == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("servers", [1, 3, 10])
def test_mmc_waits_as_erlang_c_says(servers: int) -> None:
    offered = 0.85 * servers
    term = offered**servers / math.factorial(servers) / (1 - 0.85)
    erlang_c = term / (sum(offered**n / math.factorial(n) for n in range(servers)) + term)
    expected = erlang_c * 0.85 / 0.15 + offered
    rates = [float(min(n, servers)) for n in range(1, DEEP + 1)]
    assert birth_death(rates, offered).mean_occupancy == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("rho", [0.2, 0.8, 0.95])
@pytest.mark.parametrize("stages", [1, 2, 16, math.inf])
def test_erlang_and_deterministic_service_follow_pollaczek_khinchine(rho: float, stages: float) -> None:
    scv = 1 / stages
    expected = rho + rho**2 * (1 + scv) / (2 * (1 - rho))
    assert erlang([1.0] * DEEP, rho, stages).mean_occupancy == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("rho", [0.4, 1.0, 1.6])
def test_one_slot_is_erlangs_loss_formula_whatever_the_service(rho: float) -> None:
    for stages in (1, 3, math.inf):
        assert erlang([1.0], rho, stages).blocking == pytest.approx(rho / (1 + rho), abs=1e-9)
    assert birth_death([1.0], rho).blocking == pytest.approx(rho / (1 + rho), abs=1e-9)


def stage_generator(rates: list[float], arrival: float, stages: int) -> np.ndarray:
    """M/E_k/1/K written out: state 0, then (n, stages left)."""
    depth = len(rates)
    q = np.zeros((1 + depth * stages, 1 + depth * stages))

    def at(n: int, left: int) -> int:
        return 1 + (n - 1) * stages + left - 1

    q[0, at(1, stages)] = arrival
    for n in range(1, depth + 1):
        for left in range(1, stages + 1):
            if n < depth:
                q[at(n, left), at(n + 1, left)] = arrival
            done = at(n, left - 1) if left > 1 else (0 if n == 1 else at(n - 1, stages))
            q[at(n, left), done] = stages * rates[0]
    return q - np.diag(q.sum(axis=1))


@pytest.mark.parametrize("load", [0.7, 1.0, 1.3])
def test_erlang_transient_against_the_written_out_chain(load: float) -> None:
    depth, stages, duration = 12, 6, 80.0
    q = stage_generator([1.0] * depth, load, stages)
    size = len(q)
    start = np.zeros(size)
    start[1 + 3 * stages + stages - 1] = 1.0  # four present, service just begun
    lifted = np.zeros((2 * size, 2 * size))
    lifted[:size, :size], lifted[:size, size:] = q, np.eye(size)
    average = (start @ expm(lifted * duration)[:size, size:]) / duration
    shed = average[1 + (depth - 1) * stages :].sum()
    chain = erlang([1.0] * depth, load, stages)
    assert transient(chain, chain.start_at(4), duration).shed_fraction == pytest.approx(shed, abs=3e-3)


@pytest.mark.parametrize("load", [0.7, 1.3])
def test_birth_death_transient_is_exact(load: float) -> None:
    rates = [0.6, 0.9, 1.0, 1.0, 0.95]
    size = len(rates) + 1
    q = np.diag([load] * (size - 1), 1) + np.diag(rates, -1)
    q -= np.diag(q.sum(axis=1))
    chain = birth_death(rates, load)
    duration = 40 * chain.step_s
    lifted = np.zeros((2 * size, 2 * size))
    lifted[:size, :size], lifted[:size, size:] = q, np.eye(size)
    average = expm(lifted * duration)[2, size:] / duration
    assert transient(chain, chain.start_at(2), duration).occupancy == pytest.approx(average, abs=1e-9)


def test_time_to_full_of_a_pure_birth_process() -> None:
    chain = birth_death([1e-12] * 5, 2.0)
    assert time_to_full_s(chain, chain.start_at(1)) == pytest.approx(4 / 2.0, rel=1e-6)


def simulated_window_max(rate: float, depth: int, exponential: bool, windows: int) -> float:
    """Mean 10 s maximum of a single server of mean service 1/18 s, event by event."""
    random = np.random.default_rng(7)
    period, service = 10.0, 1 / 18
    now, present, departure, edge, top = 0.0, 0, math.inf, period, 0
    arrival = random.exponential(1 / rate)
    maxima: list[int] = []
    while len(maxima) < windows:
        now = min(arrival, departure, edge)
        if now == edge:
            maxima.append(top)
            top, edge = present, edge + period
        elif now == arrival:
            if present < depth:
                present += 1
                if present == 1:
                    departure = now + (random.exponential(service) if exponential else service)
            top = max(top, present)
            arrival = now + random.exponential(1 / rate)
        else:
            present -= 1
            departure = now + (random.exponential(service) if exponential else service) if present else math.inf
    return float(np.mean(maxima[20:]))


@pytest.mark.parametrize(("exponential", "rho"), [(True, 0.7), (False, 0.8), (False, 0.95)])
def test_expected_maximum_against_a_simulation(exponential: bool, rho: float) -> None:
    rates = [18.0] * 50
    chain = birth_death(rates, 18 * rho) if exponential else erlang(rates, 18 * rho, math.inf)
    assert expected_window_max(chain) == pytest.approx(simulated_window_max(18 * rho, 50, exponential, 1500), rel=0.04)


def test_expected_maximum_is_the_same_by_stepping_and_by_squaring(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = erlang([18.0] * 20, 15.0, 50)
    stepped = expected_window_max(chain)
    monkeypatch.setattr("planner.queueing.STEPPING_LIMIT", 0)
    assert expected_window_max(chain) == pytest.approx(stepped, rel=1e-9)


def test_rows_are_distributions() -> None:
    for chain in (birth_death([1.0, 1.5, 2.0], 1.7), erlang([1.0, 1.5, 2.0], 1.7, 9)):
        for matrix in (chain.kernel, chain.occupancy):
            assert matrix.min() >= 0
            assert matrix.sum(axis=1) == pytest.approx(np.ones(len(matrix)))


def test_expected_maximum_of_a_single_slot() -> None:
    # Idle for exp(1/lambda), busy for s: the slot stays free through 10 s with probability exp(-10 lambda) if idle now.
    chain = erlang([18.0], 0.1, math.inf)
    busy = 0.1 / 18 / (1 + 0.1 / 18)
    assert expected_window_max(chain) == pytest.approx(1 - (1 - busy) * math.exp(-1.0), abs=5e-3)
