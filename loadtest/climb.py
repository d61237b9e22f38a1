"""Which rung comes next: up the ladder, then bisection, then the next run."""

from __future__ import annotations

from collections.abc import Sequence

from loadtest.settings import Ladder
from loadtest.verdict import bisect, conclude
from planner.artifacts.qmax import Rung, Verdict


def next_rung(settings: Ladder, done: Sequence[Rung]) -> tuple[int, int] | None:
    """(run, concurrency), or None when every run is complete."""
    for run in range(settings.runs):
        climbed = [(rung.concurrency, rung.verdict) for rung in done if rung.run == run]
        concurrency = _next_of_run(settings, climbed)
        if concurrency is not None:
            return run, concurrency
    return None


def _next_of_run(settings: Ladder, climbed: list[tuple[int, Verdict]]) -> int | None:
    lowest = settings.rungs[0]
    if (lowest, "fail") in climbed:
        return None
    tried = [concurrency for concurrency, _ in climbed]
    for concurrency in settings.rungs:
        if concurrency not in tried:
            return concurrency
    answer = conclude(climbed)
    if not settings.refine or answer.q_max is None or not answer.bracketed:
        return None
    first_fail = min(n for n, verdict in climbed if verdict == "fail")
    return bisect(answer.q_max, first_fail, tried)
