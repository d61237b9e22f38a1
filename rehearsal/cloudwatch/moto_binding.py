"""CloudWatch's protocols are moto's; its metrics are ours. These methods take the place of moto's."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from moto.cloudwatch.exceptions import InvalidParameterCombination, InvalidParameterValue, ValidationError
from moto.cloudwatch.models import Alarm, CloudWatchBackend
from moto.cloudwatch.responses import CloudWatchResponse
from moto.core.responses import ActionResult

from rehearsal.cloudwatch import query
from rehearsal.cloudwatch.expression import ExpressionError
from rehearsal.cloudwatch.store import Datapoint, MetricId, MetricStore, metric_id

_STATISTIC_SET = ("Minimum", "Maximum", "Sum", "SampleCount")
_MOTO_PUT_METRIC_ALARM = CloudWatchBackend.put_metric_alarm
_ALARM_STATE = ("state_value", "state_reason", "state_reason_data", "state_updated_timestamp", "history")


def bind(store: MetricStore) -> None:
    """From now on moto's CloudWatch reads and writes ``store``."""
    reads = Reads(store)
    backend: Any = CloudWatchBackend
    response: Any = CloudWatchResponse
    backend.put_metric_data = lambda self, *asked: put(store, self, *asked)
    backend.get_metric_data = lambda _, **asked: reads.metric_data(**asked)
    backend.list_metrics = lambda _, *asked: reads.list_metrics(*asked)
    backend.put_metric_alarm = _put_metric_alarm
    response.get_metric_statistics = lambda self: reads.statistics(self)
    response.describe_alarm_history = describe_alarm_history


def put(store: MetricStore, backend: CloudWatchBackend, namespace: str, metric_data: list[dict[str, Any]]) -> None:
    """PutMetricData."""
    for number, datum in enumerate(metric_data, 1):
        backend._validate_parameters_put_metric_data(datum, number)
        metric = metric_id(namespace, datum["MetricName"], datum.get("Dimensions") or [])
        at = datum.get("Timestamp") or datetime.now(UTC)
        extra: dict[str, Any] = {"high_resolution": datum.get("StorageResolution") == 1, "unit": datum.get("Unit")}
        if statistics := datum.get("StatisticValues"):
            low, high, total, samples = (float(statistics[key]) for key in _STATISTIC_SET)
            point = Datapoint(_seconds(at), low=low, high=high, total=total, samples=samples, **extra)
            store.put(metric, point)
        else:
            values = [float(value) for value in datum.get("Values") or [datum.get("Value", 0.0)]]
            counts = [float(count) for count in datum.get("Counts") or [1.0] * len(values)]
            store.put(metric, Datapoint.of(_seconds(at), dict(zip(values, counts, strict=True)), **extra))


class Reads:
    """The reading operations, with moto's parameters."""

    def __init__(self, store: MetricStore) -> None:
        self._store = store

    def metric_data(
        self, queries: list[dict[str, Any]], start_time: datetime, end_time: datetime, scan_by: str
    ) -> list[dict[str, Any]]:
        """GetMetricData."""
        asked = [_query(item) for item in queries]
        try:
            series = query.run(self._store, asked, _seconds(start_time), _seconds(end_time))
        except ExpressionError as error:
            raise ValidationError(str(error)) from None
        return [
            {
                "Id": item["Id"],
                "Label": item["Label"],
                "Timestamps": [datetime.fromtimestamp(at, UTC) for at, _ in item["points"]],
                "Values": [value for _, value in item["points"]],
                "StatusCode": "Complete",
            }
            for item in query.results(asked, series, scan_by != "TimestampAscending")
        ]

    def statistics(self, response: CloudWatchResponse) -> ActionResult:
        """GetMetricStatistics."""
        plain = response._get_param("Statistics", [])
        extended = response._get_param("ExtendedStatistics", [])
        if not plain and not extended:
            raise InvalidParameterCombination("Must specify either Statistics or ExtendedStatistics")
        name = response._get_param("MetricName")
        metric = metric_id(response._get_param("Namespace"), name, response._get_param("Dimensions", []))
        start_s, end_s = (_seconds(response._get_param(key)) for key in ("StartTime", "EndTime"))
        if start_s >= end_s:
            raise InvalidParameterValue("The parameter StartTime must be less than the parameter EndTime.")
        period_s, unit = response._get_int_param("Period"), response._get_param("Unit")
        points: dict[float, dict[str, Any]] = {}
        for statistic in (*plain, *extended):
            for at, value in self._store.statistic(metric, statistic, period_s, start_s, end_s, unit).items():
                point = points.setdefault(at, {"Timestamp": datetime.fromtimestamp(at, UTC), "Unit": unit or "None"})
                if statistic in extended:
                    point.setdefault("ExtendedStatistics", {})[statistic] = value
                else:
                    point[statistic] = value
        return ActionResult({"Label": name, "Datapoints": list(points.values())})

    def list_metrics(
        self, _token: str | None, namespace: str | None, name: str | None, dimensions: list[dict[str, str]]
    ) -> tuple[None, list[dict[str, Any]]]:
        """ListMetrics; a dimension without a value matches any."""
        found = [metric for metric in self._store.metrics() if _listed(metric, namespace, name, dimensions)]
        return None, [
            {
                "Namespace": metric.namespace,
                "MetricName": metric.name,
                "Dimensions": [{"Name": key, "Value": value} for key, value in metric.dimensions],
            }
            for metric in found
        ]


def describe_alarm_history(response: CloudWatchResponse) -> ActionResult:
    """DescribeAlarmHistory, which moto lacks; newest first."""
    name, kind = response._get_param("AlarmName"), response._get_param("HistoryItemType")
    start, end = response._get_param("StartDate"), response._get_param("EndDate")
    items = [
        item
        for alarm in response.cloudwatch_backend.alarms.values()
        if name in (None, alarm.name)
        for item in alarm.history
        if isinstance(item, dict)
        and kind in (None, item["HistoryItemType"])
        and (start is None or _seconds(start) <= _seconds(item["Timestamp"]))
        and (end is None or _seconds(item["Timestamp"]) <= _seconds(end))
    ]
    newest_first = response._get_param("ScanBy") != "TimestampAscending"
    items.sort(key=lambda item: item["Timestamp"], reverse=newest_first)
    return ActionResult({"AlarmHistoryItems": items[: response._get_param("MaxRecords") or 100]})


def _put_metric_alarm(backend: CloudWatchBackend, **asked: Any) -> Alarm:
    """A new alarm knows nothing yet, where moto calls it OK; a changed one keeps its state."""
    known = backend.alarms.get(asked["name"])
    alarm = _MOTO_PUT_METRIC_ALARM(backend, **asked)
    if known is None:
        alarm.state_value = "INSUFFICIENT_DATA"
    else:
        for name in _ALARM_STATE:
            setattr(alarm, name, getattr(known, name))
    return alarm


def _query(item: dict[str, Any]) -> query.Query:
    shared: dict[str, Any] = {
        "label": item.get("Label") or "",
        "returned": item.get("ReturnData", True) in (True, "true"),
    }
    stat = item.get("MetricStat")
    if stat is None:
        return query.Query(item["Id"], expression=item["Expression"], **shared)
    metric = stat["Metric"]
    return query.Query(
        item["Id"],
        metric_id(metric["Namespace"], metric["MetricName"], metric.get("Dimensions") or []),
        stat["Stat"],
        int(stat["Period"]),
        stat.get("Unit"),
        **shared,
    )


def _listed(metric: MetricId, namespace: str | None, name: str | None, dimensions: list[dict[str, str]]) -> bool:
    if namespace not in (None, metric.namespace) or name not in (None, metric.name):
        return False
    have = dict(metric.dimensions)
    return all(item["Name"] in have and item.get("Value") in (None, have[item["Name"]]) for item in dimensions)


def _seconds(at: datetime) -> float:
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
