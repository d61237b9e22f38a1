"""Evaluates metric alarms as CloudWatch documents it: M of N datapoints, missing data, state changes, history."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, cast

from moto.cloudwatch.models import Alarm

from rehearsal.cloudwatch import query
from rehearsal.cloudwatch.alarm_book import AlarmBook
from rehearsal.cloudwatch.expression import ExpressionError
from rehearsal.cloudwatch.store import MetricStore, metric_id

State = Literal["OK", "ALARM", "INSUFFICIENT_DATA"]
Point = float | None
"""None is a period without data, never zero."""

LAG_S = 1.0
"""After a period's end its datapoints take this long to be there."""
EXTRA_PERIODS = 2
"""CloudWatch looks at more periods than it needs, so that late data does not count as missing; AWS's examples show
five for three."""
HISTORY_KEPT = 500
TYPE_OF_STATE = "StateUpdate"
TYPE_OF_ACTION = "Action"

_BREACHES: dict[str, Callable[[float, float], bool]] = {
    "GreaterThanThreshold": lambda value, threshold: value > threshold,
    "GreaterThanOrEqualToThreshold": lambda value, threshold: value >= threshold,
    "LessThanThreshold": lambda value, threshold: value < threshold,
    "LessThanOrEqualToThreshold": lambda value, threshold: value <= threshold,
}


def decide(
    points: Sequence[Point], breaches: Callable[[float], bool], *, needed: int, of: int, missing: str, now: State
) -> State:
    """The state after looking at ``points``, oldest first. Rules and order are CloudWatch's."""
    present = [point for point in points if point is not None]
    if len(present) >= of:
        return "ALARM" if sum(map(breaches, present[-of:])) >= needed else "OK"
    breaching = sum(map(breaches, present))
    absent = of - len(present)
    if missing == "breaching":
        return "ALARM" if breaching + absent >= needed else "OK"
    if missing == "notBreaching":
        return "ALARM" if breaching >= needed else "OK"
    if not present:
        return now if missing == "ignore" else "INSUFFICIENT_DATA"
    if breaching >= needed:
        return "ALARM"
    if breaching < len(present):
        return "OK"
    return "ALARM" if missing == "missing" and _oldest_age(points) >= needed else now


def _oldest_age(points: Sequence[Point]) -> int:
    """Periods since the oldest datapoint: a breach that just began must not alarm only because data is missing."""
    return len(points) - next(index for index, point in enumerate(points) if point is not None)


@dataclass(frozen=True, slots=True)
class Firing:
    """An alarm that calls its actions, with the newest datapoint it saw."""

    alarm: Alarm
    value: Point
    actions: tuple[str, ...]


class Evaluator:
    """Looks at each alarm when its next period is complete."""

    def __init__(self, store: MetricStore, book: AlarmBook) -> None:
        self._store = store
        self._book = book
        self._looked: dict[str, float] = {}
        self._called_s: dict[str, float] = {}

    def step(self, now_s: float) -> list[Firing]:
        """Every alarm that is due; returns those whose actions are to be called."""
        fired = [self._look(alarm, now_s) for alarm in self._book.all() if self._due(alarm, now_s)]
        return [firing for firing in fired if firing]

    def _due(self, alarm: Alarm, now_s: float) -> bool:
        every_s = min(period_s(alarm), 60)
        tick = math.floor((now_s - LAG_S) / every_s)
        if self._looked.get(alarm.alarm_arn) == tick:
            return False
        self._looked[alarm.alarm_arn] = tick
        return True

    def _look(self, alarm: Alarm, now_s: float) -> Firing | None:
        points = self._points(alarm, now_s)
        threshold = float(alarm.threshold)
        of = int(alarm.evaluation_periods)
        before = cast(State, alarm.state_value)
        after = decide(
            points,
            lambda value: _BREACHES[alarm.comparison_operator](value, threshold),
            needed=int(alarm.datapoints_to_alarm or of),
            of=of,
            missing=alarm.treat_missing_data or "missing",
            now=before,
        )
        newest = next((point for point in reversed(points) if point is not None), None)
        if after != before:
            _change(alarm, after, points, now_s)
        return self._fire(alarm, changed=after != before, value=newest, now_s=now_s)

    def _fire(self, alarm: Alarm, *, changed: bool, value: Point, now_s: float) -> Firing | None:
        """Actions are called on a change; those that scale, for as long as the state lasts."""
        if not alarm.actions_enabled:
            return None
        actions = {
            "ALARM": alarm.alarm_actions,
            "OK": alarm.ok_actions,
            "INSUFFICIENT_DATA": alarm.insufficient_data_actions,
        }[alarm.state_value]
        if not changed:
            again_s = min(period_s(alarm), 60)
            due = now_s - self._called_s.get(alarm.alarm_arn, -math.inf) >= again_s - 1
            actions = [action for action in actions or [] if due and ":scalingPolicy:" in action]
        if not actions:
            return None
        self._called_s[alarm.alarm_arn] = now_s
        return Firing(alarm, value, tuple(actions))

    def _points(self, alarm: Alarm, now_s: float) -> list[Point]:
        """The complete periods of the evaluation range, oldest first."""
        step_s = period_s(alarm)
        end_s = math.floor((now_s - LAG_S) / step_s) * step_s
        count = int(alarm.evaluation_periods) + EXTRA_PERIODS
        start_s = end_s - count * step_s
        series = self._series(alarm, start_s, end_s)
        return [series.get(start_s + index * step_s) for index in range(count)]

    def _series(self, alarm: Alarm, start_s: float, end_s: float) -> dict[float, float]:
        if alarm.metric_name:
            metric = metric_id(alarm.namespace, alarm.metric_name, _dimensions(alarm.dimensions))
            statistic = alarm.extended_statistic or alarm.statistic
            return self._store.statistic(metric, statistic, period_s(alarm), start_s, end_s, alarm.unit)
        asked = [_query(item) for item in alarm.metric_data_queries]
        watched = next(item.id for item in asked if item.returned)
        try:
            series = query.run(self._store, asked, start_s, end_s)[watched]
        except ExpressionError:
            return {}
        return {at: value for at, value in series.items() if not math.isnan(value)}


def period_s(alarm: Alarm) -> int:
    """Of the metric; of the queries when the alarm watches an expression."""
    if alarm.period:
        return int(alarm.period)
    periods = [
        int(item.metric_stat.period if item.metric_stat else item.period or 0) for item in alarm.metric_data_queries
    ]
    return max(periods, default=60) or 60


def note_action(alarm: Alarm, action: str, summary: str, now_s: float) -> None:
    """An action was called."""
    _remember(alarm, TYPE_OF_ACTION, summary, {"actionState": "Succeeded", "notificationResource": action}, now_s)


def _change(alarm: Alarm, after: State, points: Sequence[Point], now_s: float) -> None:
    before = alarm.state_value
    reason = _reason(alarm, after, points)
    data = {
        "version": "1.0",
        "queryDate": datetime.fromtimestamp(now_s, UTC).isoformat(),
        "period": period_s(alarm),
        "recentDatapoints": [point for point in points if point is not None],
        "threshold": float(alarm.threshold),
    }
    alarm.state_value = after
    alarm.state_reason = reason
    alarm.state_reason_data = json.dumps(data)
    alarm.state_updated_timestamp = datetime.fromtimestamp(now_s, UTC).replace(tzinfo=None)
    detail = {
        "version": "1.0",
        "oldState": {"stateValue": before},
        "newState": {"stateValue": after, "stateReason": reason, "stateReasonData": data},
    }
    _remember(alarm, TYPE_OF_STATE, f"Alarm updated from {before} to {after}", detail, now_s)


def _reason(alarm: Alarm, after: State, points: Sequence[Point]) -> str:
    present = [point for point in points if point is not None][-int(alarm.evaluation_periods) :]
    if after == "INSUFFICIENT_DATA" or not present:
        return f"Insufficient Data: {alarm.evaluation_periods} datapoints were unknown."
    shown = ", ".join(f"{point:g}" for point in present)
    return f"Threshold Crossed: datapoints [{shown}] against {alarm.comparison_operator} {float(alarm.threshold):g}."


def _remember(alarm: Alarm, kind: str, summary: str, detail: dict[str, Any], now_s: float) -> None:
    alarm.history.append(
        {
            "AlarmName": alarm.name,
            "AlarmType": "MetricAlarm",
            "Timestamp": datetime.fromtimestamp(now_s, UTC),
            "HistoryItemType": kind,
            "HistorySummary": summary,
            "HistoryData": json.dumps(detail),
        }
    )
    del alarm.history[:-HISTORY_KEPT]


def _dimensions(given: Any) -> list[dict[str, str]]:
    return [{"Name": each.name, "Value": each.value} for each in given or []]


def _query(item: Any) -> query.Query:
    """From moto's form of a metric data query."""
    returned = item.return_data in (None, True, "true")
    if item.metric_stat is None:
        return query.Query(item.id, expression=item.expression, returned=returned)
    metric = item.metric_stat.metric
    return query.Query(
        item.id,
        metric_id(metric.namespace, metric.metric_name, _dimensions(metric.dimensions)),
        item.metric_stat.stat,
        int(item.metric_stat.period),
        item.metric_stat.unit,
        returned=returned,
    )
