"""From the facts of a rung to its verdict, and from the verdicts of a ladder to Q_max."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from loadtest.stats import lower_rank, nearest_rank, upper_rank
from loadtest.steadiness import NOT_TESTED, Steadiness
from planner.artifacts.qmax import Verdict

SLO_QUANTILE = 0.95
IN_FLIGHT_SHARE = 0.95
"""Below this share of N on average the rung did not measure N."""
FAILED_SHARE = 0.01
"""Up to here failures count as missed deadlines; beyond it the endpoint was ill and no latency describes it."""

Outcome = Literal["found", "lower_bound", "none_meets_slo", "undecided"]


@dataclass(frozen=True)
class RungFacts:
    """What a window showed, in the units of the SLO."""

    concurrency: int
    slo_ms: float
    values_ms: Sequence[float]
    """Of requests that ended well; the SLO metric."""
    rejected: int = 0
    failed: int = 0
    """Ended any other way, or stalled when the window closed."""
    in_flight_mean: float | None = None
    steadiness: Steadiness = NOT_TESTED
    voids: Sequence[str] = ()
    """Reasons found while the rung ran: lost worker, changed endpoint, client-bound."""


@dataclass(frozen=True)
class Judgement:
    """``reasons`` say in words what made the verdict anything but a plain pass or fail."""

    verdict: Verdict
    point: Literal["pass", "fail"] | None
    reasons: list[str] = field(default_factory=list)


def judge(facts: RungFacts) -> Judgement:
    """Point verdict by the published rule; verdict by the confidence bound and the rung's validity."""
    ordered = sorted(facts.values_ms) + [math.inf] * facts.failed
    if not facts.values_ms:
        return Judgement("invalid", None, [*_faults(facts), "no request ended well in the window"])
    point: Literal["pass", "fail"] = "pass" if nearest_rank(ordered, SLO_QUANTILE) <= facts.slo_ms else "fail"
    faults = _faults(facts)
    if faults:
        return Judgement("invalid", point, faults)
    return _bounded(ordered, facts.slo_ms, point)


def _bounded(ordered: Sequence[float], slo_ms: float, point: Literal["pass", "fail"]) -> Judgement:
    n = len(ordered)
    rank = upper_rank(n, SLO_QUANTILE) if point == "pass" else lower_rank(n, SLO_QUANTILE)
    if rank is None:
        return Judgement("undecided", point, [f"{n} completions, a bound on the p95 needs 59: hold longer"])
    bound = ordered[rank - 1]
    if (point == "pass") == (bound <= slo_ms):
        return Judgement(point, point)
    side = "upper" if point == "pass" else "lower"
    return Judgement("undecided", point, [f"{side} 95 % bound of the p95 is {bound:.0f} ms, across the SLO"])


def _faults(facts: RungFacts) -> list[str]:
    faults = list(facts.voids)
    completed = len(facts.values_ms) + facts.rejected + facts.failed
    if facts.in_flight_mean is not None and facts.in_flight_mean < IN_FLIGHT_SHARE * facts.concurrency:
        faults.append(f"{facts.in_flight_mean:.1f} requests in flight on average instead of {facts.concurrency}")
    if facts.rejected:
        faults.append(f"{facts.rejected} of {completed} requests rejected: the admission bound is below the rung")
    if facts.failed > FAILED_SHARE * completed:
        faults.append(f"{facts.failed} of {completed} requests failed")
    if facts.steadiness.steady is False:
        faults.append(facts.steadiness.reason)
    return faults


@dataclass(frozen=True)
class ClientLoad:
    """How busy the load generator was, worst process."""

    dispatch_gap_p95_ms: float | None
    loop_lag_p95_ms: float | None
    cpu_share: float | None


CLIENT_CPU_SHARE = 0.9
"""Of one core: above it answers queue inside the client."""
CLIENT_DELAY_FLOOR_MS = 10.0
"""A late event loop below this hides in any first byte worth an SLO."""
CLIENT_DELAY_SHARE = 0.05


def client_bound(load: ClientLoad, typical_ms: float | None) -> str:
    """Why the client may have been the limit, or an empty string; ``typical_ms`` is the median measured."""
    allowed = max(CLIENT_DELAY_FLOOR_MS, CLIENT_DELAY_SHARE * (typical_ms or 0.0))
    if load.cpu_share is not None and load.cpu_share > CLIENT_CPU_SHARE:
        return f"client-bound: a load process used {load.cpu_share:.0%} of a core"
    if load.loop_lag_p95_ms is not None and load.loop_lag_p95_ms > allowed:
        return f"client-bound: its event loop ran {load.loop_lag_p95_ms:.0f} ms late at p95"
    if load.dispatch_gap_p95_ms is not None and load.dispatch_gap_p95_ms > allowed:
        return f"client-bound: {load.dispatch_gap_p95_ms:.0f} ms between answer and next request at p95"
    return ""


@dataclass(frozen=True)
class Answer:
    """What one ladder says."""

    outcome: Outcome
    q_max: int | None
    notes: list[str] = field(default_factory=list)
    non_monotone: frozenset[int] = frozenset()
    """Rungs that passed above one that failed; they are excluded."""

    @property
    def bracketed(self) -> bool:
        """A valid rung above really missed."""
        return self.outcome == "found"


def conclude(verdicts: Sequence[tuple[int, Verdict]]) -> Answer:
    """Q_max of one ladder: the largest passing rung below the first valid miss."""
    rungs = dict(sorted(verdicts))
    passes = [n for n, verdict in rungs.items() if verdict == "pass"]
    fails = [n for n, verdict in rungs.items() if verdict == "fail"]
    first_fail = min(fails, default=None)
    flukes = frozenset(n for n in passes if first_fail is not None and n > first_fail)
    notes = [f"not monotone: N={n} passes although N={first_fail} fails; excluded" for n in sorted(flukes)]
    q_max = max((n for n in passes if n not in flukes), default=None)
    open_rungs = [n for n, verdict in rungs.items() if verdict in ("undecided", "invalid") and n > (q_max or 0)]
    if q_max is None:
        if first_fail is not None and first_fail == min(rungs):
            return Answer("none_meets_slo", None, notes, flukes)
        return Answer("undecided", None, notes, flukes)
    between = [n for n in open_rungs if first_fail is None or n < first_fail]
    if between:
        notes.append(f"no verdict at N={', '.join(map(str, between))}: Q_max may be higher")
    if first_fail is None:
        notes.append(f"no rung missed the SLO: {q_max} is a lower bound")
        return Answer("lower_bound", q_max, notes, flukes)
    return Answer("found", q_max, notes, flukes)


def worst(answers: Sequence[Answer]) -> Answer:
    """The answer of several runs is the worst of them; one that could not tell leaves the whole undecided."""
    notes = list(dict.fromkeys(note for answer in answers for note in answer.notes))
    outcomes = {answer.outcome for answer in answers}
    if "undecided" in outcomes:
        return Answer("undecided", None, notes)
    if "none_meets_slo" in outcomes:
        return Answer("none_meets_slo", None, notes)
    lowest = min(answers, key=lambda answer: (answer.q_max or 0, answer.outcome))
    return Answer(lowest.outcome, lowest.q_max, notes)


SATURATED_SHARE = 0.95


def saturation(throughput: Sequence[tuple[int, float]]) -> int | None:
    """The smallest N that already carries 95 % of the best throughput; None while the top rung still gains."""
    if len(throughput) < 2:
        return None
    ordered = sorted(throughput)
    best = max(rps for _, rps in ordered)
    knee = next(n for n, rps in ordered if rps >= SATURATED_SHARE * best)
    return knee if knee < ordered[-1][0] else None


def bisect(q_max: int, first_fail: int, tried: Sequence[int]) -> int | None:
    """The next rung between the last pass and the first miss; None when nothing untried is left there."""
    middle = (q_max + first_fail) // 2
    return None if middle in tried or middle in (q_max, first_fail) else middle
