"""GetMetricData: metric queries and expressions over the store."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rehearsal.cloudwatch.expression import ExpressionError, Scope, Series, evaluate, names
from rehearsal.cloudwatch.store import MetricId, MetricStore


@dataclass(frozen=True, slots=True)
class Query:
    """Either a metric with its statistic, or an expression over other queries."""

    id: str
    metric: MetricId | None = None
    statistic: str = ""
    period_s: int = 60
    unit: str | None = None
    expression: str = ""
    label: str = ""
    returned: bool = True


def run(store: MetricStore, queries: Sequence[Query], start_s: float, end_s: float) -> dict[str, Series]:
    """Every query's series, by id."""
    period_s = min((query.period_s for query in queries if query.metric), default=60)
    periods = _periods(start_s, end_s, period_s)
    series = {
        query.id: store.statistic(query.metric, query.statistic, query.period_s, start_s, end_s, query.unit)
        for query in queries
        if query.metric
    }
    waiting = [query for query in queries if query.expression]
    while waiting:
        ready = [query for query in waiting if names(query.expression) <= series.keys()]
        if not ready:
            raise ExpressionError(f"Expression refers to an unknown id: {waiting[0].expression}")
        for query in ready:
            series[query.id] = evaluate(query.expression, Scope(dict(series), periods, period_s))
            waiting.remove(query)
    return series


def results(queries: Sequence[Query], series: dict[str, Series], newest_first: bool) -> list[dict[str, Any]]:
    """The answer's MetricDataResults; timestamps as epoch seconds. What is not a number is no data."""
    answer = []
    for query in queries:
        if query.returned:
            points = sorted(series[query.id].items(), reverse=newest_first)
            points = [(at, value) for at, value in points if not math.isnan(value)]
            label = query.label or (query.metric.name if query.metric else query.id)
            answer.append({"Id": query.id, "Label": label, "points": points})
    return answer


def _periods(start_s: float, end_s: float, period_s: int) -> tuple[float, ...]:
    first = math.floor(start_s / period_s)
    return tuple(float(index * period_s) for index in range(first, math.ceil(end_s / period_s)))
