"""Score the forecast: each number predicted against observed with its tolerance, then one verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from loadtest.openloop import LATE_MS
from planner.artifacts.validate import ForecastScore, ScoreVerdict, StretchResult
from scripts.loadproof.forecast import Forecast

SHARE_TOLERANCE = 0.05
"""Five points of shed or attainment: the model's own accuracy against live runs."""
PERIOD_S = 10.0
"""Detection is seen in whole metric periods."""
T_TOTAL_TOLERANCE = 0.25
"""Starts of an instance spread by as much from run to run."""
SCALE_IN_PERIOD_S = 60.0
SCALE_IN_BOUND_S = 4 * SCALE_IN_PERIOD_S
"""Three whole one-minute periods, and the one in which the load fell."""
LATE_SHARE = 0.1
"""Of the SLO: a client later than this by p99 is measuring itself."""
LEAST_REQUESTS = 200
"""Fewer in the surge and five points are within two standard errors."""
FAULTS_LIMIT = 0.01
"""More requests than this that were neither answered nor shed: something else was wrong."""


@dataclass(frozen=True)
class Observed:
    """What the run found."""

    surge: StretchResult
    exposed: StretchResult
    """From the surge's start until new capacity served, or the surge's end: what the plan's forecast speaks of."""
    detection_s: float | None
    scale_out_s: float | None
    scale_in_s: float | None
    """Quiet begun to the first scale-in."""
    surge_lasted_s: float
    """How long the surge was watched; shorter than planned when a budget stopped it."""
    quiet_lasted_s: float
    slo_ms: float
    late_p99_ms: float | None
    stopped_by: str | None


@dataclass(frozen=True)
class Judgement:
    """Scores and what follows."""

    verdict: Literal["right", "wrong", "undecided"]
    reasons: list[str]
    scores: list[ForecastScore]


def judge(forecast: Forecast, observed: Observed) -> Judgement:
    """wrong beats undecided only when the measurement itself is sound."""
    scores = [
        _as_known(score, observed)
        for score in (*plan_scores(forecast, observed), *simulator_scores(forecast, observed))
    ]
    doubts = unsound(observed)
    wrong = [
        f"{score.name}: forecast {_shown(score.predicted, score.unit)}, seen {_shown(score.observed, score.unit)}"
        for score in scores
        if score.source == "plan" and score.verdict == "wrong"
    ]
    if doubts:
        return Judgement("undecided", doubts, scores)
    return Judgement("wrong" if wrong else "right", wrong, scores)


def plan_scores(forecast: Forecast, observed: Observed) -> list[ForecastScore]:
    """The plan's promises."""
    exposed = observed.exposed
    start_tolerance_s = max(T_TOTAL_TOLERANCE * forecast.t_total_s, PERIOD_S)
    scores = [
        at_most("shed_fraction", forecast.shed_fraction, exposed.shed_fraction, SHARE_TOLERANCE, "share"),
        at_least("slo_attainment", forecast.slo_attainment, exposed.slo_attainment, SHARE_TOLERANCE, "share"),
        _detection(forecast, observed),
        at_most("t_total_s", forecast.t_total_s, observed.scale_out_s, start_tolerance_s, "s"),
    ]
    if observed.quiet_lasted_s:
        scores.append(_scale_in(observed))
    return scores


def simulator_scores(forecast: Forecast, observed: Observed) -> list[ForecastScore]:
    """How near the simulator came on the same arrivals; both sides count."""
    simulated = forecast.simulated
    surge = observed.surge if observed.stopped_by is None else None
    shed = surge.shed_fraction if surge else None
    kept = surge.slo_attainment if surge else None
    return [
        _either("shed_fraction", simulated.surge_shed_fraction, shed, SHARE_TOLERANCE, "share"),
        _either("slo_attainment", simulated.surge_slo_attainment, kept, SHARE_TOLERANCE, "share"),
        _either("detection_s", simulated.detection_s, observed.detection_s, PERIOD_S, "s"),
    ]


def unsound(observed: Observed) -> list[str]:
    """Why nothing can be concluded, if so."""
    surge, doubts = observed.surge, []
    if observed.stopped_by is not None:
        doubts.append(f"stopped by {observed.stopped_by} before the surge was over")
    if surge.offered < LEAST_REQUESTS:
        doubts.append(f"only {surge.offered} requests in the surge, {LEAST_REQUESTS} are needed")
    elif (exposed := observed.exposed.offered) < LEAST_REQUESTS:
        doubts.append(f"only {exposed} requests until new capacity served, {LEAST_REQUESTS} are needed")
    if observed.late_p99_ms is not None and observed.late_p99_ms > max(LATE_MS, LATE_SHARE * observed.slo_ms):
        doubts.append(f"the client fell behind its schedule (p99 {observed.late_p99_ms:.0f} ms late)")
    faults = sum(surge.other.values())
    if surge.offered and faults / surge.offered > FAULTS_LIMIT:
        named = ", ".join(f"{count} {name}" for name, count in surge.other.items())
        doubts.append(f"requests failed for other reasons than admission: {named}")
    return doubts


def _as_known(score: ForecastScore, observed: Observed) -> ForecastScore:
    """A share of too few requests says nothing, whatever its value."""
    offered = observed.exposed.offered if score.source == "plan" else observed.surge.offered
    if score.unit != "share" or score.verdict == "not_run" or offered >= LEAST_REQUESTS:
        return score
    return score.model_copy(update={"verdict": "undecided"})


def _detection(forecast: Forecast, observed: Observed) -> ForecastScore:
    bound_s, lasted_s = forecast.detection_bound_s, observed.surge_lasted_s
    expected = forecast.simulated.detection_s is not None
    if observed.detection_s is None and expected and lasted_s > bound_s + 2 * PERIOD_S:
        detail = f"nothing scaled out in {lasted_s:.0f} s of surge"
        return _score("detection_s", "plan", bound_s, None, PERIOD_S, "s", "wrong", detail)
    return _bounded("detection_s", bound_s, observed.detection_s, PERIOD_S)


def _scale_in(observed: Observed) -> ForecastScore:
    if observed.scale_in_s is None and observed.quiet_lasted_s > SCALE_IN_BOUND_S + SCALE_IN_PERIOD_S:
        detail = f"nothing scaled in during {observed.quiet_lasted_s:.0f} quiet seconds"
        return _score("scale_in_s", "plan", SCALE_IN_BOUND_S, None, SCALE_IN_PERIOD_S, "s", "wrong", detail)
    return _bounded("scale_in_s", SCALE_IN_BOUND_S, observed.scale_in_s, SCALE_IN_PERIOD_S)


def at_most(name: str, predicted: float, seen: float | None, tolerance: float, unit: str) -> ForecastScore:
    """More than the plan forecast is wrong, less is better."""
    verdict: ScoreVerdict = "not_run"
    if seen is not None:
        verdict = "wrong" if seen > predicted + tolerance else "better" if seen < predicted - tolerance else "ok"
    return _score(name, "plan", predicted, seen, tolerance, unit, verdict)


def at_least(name: str, predicted: float, seen: float | None, tolerance: float, unit: str) -> ForecastScore:
    """Less than the plan forecast is wrong, more is better."""
    verdict: ScoreVerdict = "not_run"
    if seen is not None:
        verdict = "wrong" if seen < predicted - tolerance else "better" if seen > predicted + tolerance else "ok"
    return _score(name, "plan", predicted, seen, tolerance, unit, verdict)


def _bounded(name: str, bound_s: float, seen_s: float | None, tolerance_s: float) -> ForecastScore:
    """A bound is kept or not; staying far below it is no surprise."""
    verdict: ScoreVerdict = "not_run" if seen_s is None else "ok" if seen_s <= bound_s + tolerance_s else "wrong"
    return _score(name, "plan", bound_s, seen_s, tolerance_s, "s", verdict)


def _either(name: str, predicted: float | None, seen: float | None, tolerance: float, unit: str) -> ForecastScore:
    verdict: ScoreVerdict = "not_run"
    if predicted is not None and seen is not None:
        verdict = "ok" if abs(seen - predicted) <= tolerance else "wrong"
    return _score(name, "simulator", predicted, seen, tolerance, unit, verdict)


def _score(
    name: str,
    source: Literal["plan", "simulator"],
    predicted: float | None,
    seen: float | None,
    tolerance: float,
    unit: str,
    verdict: ScoreVerdict,
    detail: str = "",
) -> ForecastScore:
    return ForecastScore(
        name=name,
        source=source,
        predicted=predicted,
        observed=seen,
        tolerance=tolerance,
        unit=unit,
        verdict=verdict,
        detail=detail,
    )


def _shown(value: float | None, unit: str) -> str:
    if value is None:
        return "nothing"
    return f"{value:.1%}" if unit == "share" else f"{value:.0f} {unit}"


def text(scores: Sequence[ForecastScore]) -> str:
    """A table of the scores."""
    rows = [("forecast", "by", "predicted", "seen", "tolerance", "verdict")]
    rows += [
        (
            score.name,
            score.source,
            _shown(score.predicted, score.unit),
            _shown(score.observed, score.unit),
            _shown(score.tolerance, score.unit),
            score.verdict + (f" ({score.detail})" if score.detail else ""),
        )
        for score in scores
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    return "\n".join("  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), row[5]]) for row in rows)
