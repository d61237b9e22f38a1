"""Both kernels against closed forms, against the birth-death chain, and against each other."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from planner.simulate.interval import Interval, Kernel, TtfabBins
from planner.simulate.kernel import build, choose
from planner.simulate.routing import Routing
from planner.simulate.service import ServiceModel

CHUNK_S = 10.0
ARTICLE_RATES = (0.0, 16.083, 16.538, 16.992, 17.446, *[17.9] * 46)


@dataclass(frozen=True)
class Measured:
    mean_response_s: float
    response_error_s: float
    """One standard error from batch means."""
    shed: float
    shed_error: float
    total: Interval


def kernel(
    kind: str, service: ServiceModel, instances: int, bound: int | None, routing: Routing = "least_outstanding"
) -> Kernel:
    rng = np.random.default_rng(12345)
    return build(
        kind,
        service,
        instances=instances,
        bound=bound,
        routing=routing,
        bins=TtfabBins(3.0),
        rng=rng,  # type: ignore[arg-type]
    )


def measure(server: Kernel, arrival_rps: float, duration_s: float, seed: int = 1, warm_up_s: float = 100.0) -> Measured:
    """Little's law over 20 batches; arrivals are drawn here, not by the code under test."""
    rng = np.random.default_rng(seed)
    now_s, batches = 0.0, []
    batch_s = math.ceil(duration_s / 20 / CHUNK_S) * CHUNK_S
    for stretch_s in [warm_up_s, *[batch_s] * 20]:
        end_s, merged = now_s + stretch_s, None
        while now_s < end_s - 1e-9:
            times = now_s + np.sort(rng.random(rng.poisson(arrival_rps * CHUNK_S))) * CHUNK_S
            part = server.advance(now_s + CHUNK_S, times)
            merged = part if merged is None else merged.then(part)
            now_s += CHUNK_S
        batches.append(merged)
    kept = [b for b in batches[1:] if b is not None]
    responses = np.array([b.in_flight_s / (b.offered - b.shed) for b in kept])
    sheds = np.array([b.shed / b.offered for b in kept])
    total = kept[0]
    for b in kept[1:]:
        total = total.then(b)
    return Measured(
        mean_response_s=total.in_flight_s / (total.offered - total.shed),
        response_error_s=float(responses.std(ddof=1) / math.sqrt(len(responses))),
        shed=total.shed / total.offered,
        shed_error=float(sheds.std(ddof=1) / math.sqrt(len(sheds))),
        total=total,
    )


def close(seen: float, expected: float, standard_error: float) -> bool:
    """Within 2 % or 3 standard errors."""
    return abs(seen - expected) <= max(0.02 * expected, 3 * standard_error)


@pytest.mark.parametrize("rho", [0.3, 0.7, 0.85])
def test_exact_matches_m_m_1(rho: float) -> None:
    mu = 20.0
    found = measure(kernel("exact", ServiceModel((0.0, mu), cv=1.0), 1, None), rho * mu, 20_000)
    assert close(found.mean_response_s, 1 / (mu - rho * mu), found.response_error_s)
    assert found.shed == 0


def erlang_c(servers: int, offered: float) -> float:
    """P(wait) by Erlang's second formula."""
    terms = [offered**n / math.factorial(n) for n in range(servers)]
    last = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return last / (sum(terms) + last)


@pytest.mark.parametrize(("servers", "rho"), [(2, 0.8), (4, 0.7), (8, 0.9)])
def test_exact_matches_m_m_c(servers: int, rho: float) -> None:
    mu = 5.0
    arrival = rho * servers * mu
    rates = (0.0, *[n * mu for n in range(1, servers + 1)])
    found = measure(kernel("exact", ServiceModel(rates, cv=1.0), 1, None), arrival, 12_000)
    wait_s = erlang_c(servers, arrival / mu) / (servers * mu - arrival)
    assert close(found.mean_response_s, wait_s + 1 / mu, found.response_error_s)


@pytest.mark.parametrize("rho", [0.3, 0.7, 0.9])
def test_exact_matches_m_d_1(rho: float) -> None:
    mu = 20.0
    found = measure(kernel("exact", ServiceModel((0.0, mu), cv=0.0), 1, None), rho * mu, 20_000)
    wait_s = rho / (2 * mu * (1 - rho))
    assert close(found.mean_response_s, wait_s + 1 / mu, found.response_error_s)


@pytest.mark.parametrize("cv", [0.25, 0.5, 0.8])
def test_exact_matches_pollaczek_khinchine(cv: float) -> None:
    mu, rho = 20.0, 0.8
    found = measure(kernel("exact", ServiceModel((0.0, mu), cv=cv), 1, None), rho * mu, 20_000)
    wait_s = rho * (1 + cv**2) / (2 * mu * (1 - rho))
    assert close(found.mean_response_s, wait_s + 1 / mu, found.response_error_s)


@pytest.mark.parametrize(("kind", "duration_s"), [("exact", 20_000), ("batched", 1_500)])
@pytest.mark.parametrize("rho", [0.8, 1.0, 1.25])
def test_matches_m_m_1_k(kind: str, duration_s: float, rho: float) -> None:
    mu, bound = 20.0, 10
    found = measure(kernel(kind, ServiceModel((0.0, mu), cv=1.0), 1, bound), rho * mu, duration_s)
    weights = rho ** np.arange(bound + 1)
    share = weights / weights.sum()
    mean_response_s = share @ np.arange(bound + 1) / (rho * mu * (1 - share[-1]))
    assert close(found.shed, share[-1], found.shed_error)
    assert close(found.mean_response_s, mean_response_s, found.response_error_s)


def test_exact_matches_the_birth_death_chain_of_the_article() -> None:
    """p_n is proportional to the product of lambda / X(i), i = 1..n."""
    arrival, bound = 17.5, 50
    found = measure(kernel("exact", ServiceModel(ARTICLE_RATES, cv=1.0), 1, bound), arrival, 40_000)
    weights = np.concatenate([[1.0], np.cumprod(arrival / np.array(ARTICLE_RATES[1 : bound + 1]))])
    share = weights / weights.sum()
    mean_response_s = share @ np.arange(bound + 1) / (arrival * (1 - share[-1]))
    assert close(found.mean_response_s, mean_response_s, found.response_error_s)
    assert close(found.shed, share[-1], found.shed_error)


def test_random_routing_is_independent_m_m_1_queues() -> None:
    mu, rho, instances = 20.0, 0.7, 4
    server = kernel("exact", ServiceModel((0.0, mu), cv=1.0), instances, None, "random")
    found = measure(server, rho * mu * instances, 5_000)
    assert close(found.mean_response_s, 1 / (mu * (1 - rho)), found.response_error_s)


def test_least_outstanding_waits_less_than_random() -> None:
    service = ServiceModel((0.0, 20.0), cv=0.1)
    routed = [
        measure(kernel("exact", service, 5, 50, routing), 85, 1_000) for routing in ("least_outstanding", "random")
    ]
    assert routed[0].mean_response_s < 0.6 * routed[1].mean_response_s


@pytest.mark.parametrize(
    ("instances", "load", "cv", "rates", "routing", "duration_s"),
    [
        pytest.param(1, 0.8, 0.05, ARTICLE_RATES, "least_outstanding", 2_000, id="one, near-constant"),
        pytest.param(3, 0.9, 1.0, ARTICLE_RATES, "least_outstanding", 1_000, id="three, exponential"),
        pytest.param(20, 0.95, 0.05, ARTICLE_RATES, "least_outstanding", 500, id="twenty, near-constant"),
        pytest.param(20, 1.1, 0.05, ARTICLE_RATES, "least_outstanding", 400, id="twenty, overloaded"),
        pytest.param(60, 1.25, 0.05, ARTICLE_RATES, "least_outstanding", 200, id="sixty, surged"),
        pytest.param(5, 0.7, 0.05, ARTICLE_RATES, "random", 1_000, id="five, random routing"),
        pytest.param(
            3, 0.8, 1.0, (0.0, *[10.0 * min(n, 4) for n in range(1, 51)]), "least_outstanding", 1_000, id="four lanes"
        ),
    ],
)
def test_batched_agrees_with_exact(
    instances: int, load: float, cv: float, rates: tuple[float, ...], routing: Routing, duration_s: float
) -> None:
    service = ServiceModel(rates, cv)
    arrival = load * instances * max(rates)
    exact, batched = (
        measure(kernel(kind, service, instances, 50, routing), arrival, duration_s) for kind in ("exact", "batched")
    )
    error_s = math.hypot(exact.response_error_s, batched.response_error_s)
    assert abs(exact.mean_response_s - batched.mean_response_s) <= max(0.03 * exact.mean_response_s, 3 * error_s)
    assert exact.shed == pytest.approx(batched.shed, abs=0.005)
    assert exact.total.peak == pytest.approx(batched.total.peak, rel=0.15, abs=2)
    bins = TtfabBins(3.0)
    assert bins.within_slo(exact.total.ttfab_counts) / exact.total.offered == pytest.approx(
        bins.within_slo(batched.total.ttfab_counts) / batched.total.offered, abs=0.01
    )
    p95_s = [bins.quantile_s(found.total.ttfab_counts, 0.95) for found in (exact, batched)]
    assert p95_s[0] == pytest.approx(p95_s[1], rel=0.1)


@pytest.mark.parametrize("kind", ["exact", "batched"])
def test_every_request_is_accounted_for_while_the_fleet_changes(kind: str) -> None:
    server = kernel(kind, ServiceModel(ARTICLE_RATES, 0.05), 2, 50)
    rng = np.random.default_rng(3)
    parts = []
    for number in range(40):
        parts.append(server.advance(10.0 * (number + 1), 10.0 * number + np.sort(rng.random(350)) * 10))
        if number in (5, 9):
            server.add_instance()
        if number in (20, 25):
            server.retire_instance()
    parts.append(server.advance(1_000.0, np.empty(0)))
    offered, shed, completed = (sum(getattr(p, name) for p in parts) for name in ("offered", "shed", "completed"))
    assert offered == 40 * 350
    assert completed == offered - shed
    assert sum(p.ttfab_counts.sum() for p in parts) == pytest.approx(completed)
    assert server.instances == 2


@pytest.mark.parametrize("kind", ["exact", "batched"])
def test_an_idle_stretch_is_empty(kind: str) -> None:
    found = kernel(kind, ServiceModel(ARTICLE_RATES, 0.05), 2, 50).advance(10.0, np.empty(0))
    assert (found.offered, found.shed, found.completed, found.peak, found.in_flight_s) == (0, 0, 0, 0, 0)


def test_a_lone_request_takes_one_service_time() -> None:
    server = kernel("exact", ServiceModel((0.0, 4.0), 0.0), 1, 5)
    found = server.advance(10.0, np.array([2.0]))
    assert found.in_flight_s == pytest.approx(0.25)
    assert TtfabBins(3.0).quantile_s(found.ttfab_counts, 0.95) == pytest.approx(0.25, rel=0.012)


def test_work_in_progress_speeds_up_when_company_arrives() -> None:
    """Alone at 1 rps; with two inside at 2 rps: half done at 0.5 s, the rest in 0.25 s, the second in 1 s alone."""
    server = kernel("exact", ServiceModel((0.0, 1.0, 2.0), 0.0), 1, None)
    found = server.advance(10.0, np.array([0.0, 0.5]))
    assert found.in_flight_s == pytest.approx(0.75 + (0.25 + 1.0))


@pytest.mark.parametrize(
    ("arrivals", "span_s", "instances", "bound", "expected"),
    [
        (18_000_000, 3_600, 290, 50, "batched"),
        (4_320_000, 86_400, 4, 50, "exact"),
        (100_000, 600, 10, 50, "exact"),
        (18_000_000, 3_600, 290, None, "exact"),
    ],
)
def test_the_cheaper_kernel_is_chosen(
    arrivals: int, span_s: float, instances: int, bound: int | None, expected: str
) -> None:
    service = ServiceModel(ARTICLE_RATES, 0.05)
    assert choose(service, arrivals=arrivals, span_s=span_s, instances=instances, bound=bound) == expected
