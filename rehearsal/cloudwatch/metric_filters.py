"""Metric filters of log groups: each line that is written may add to a metric."""

from __future__ import annotations

import json
import logging
from typing import Any

from moto.logs.models import logs_backends

from rehearsal.cloudwatch.log_pattern import PatternError, matches, value_at
from rehearsal.cloudwatch.store import Datapoint, MetricStore, metric_id
from rehearsal.settings import ACCOUNT

log = logging.getLogger(__name__)


class MetricFilters:
    """Looks up moto's filters and publishes what they find."""

    def __init__(self, region: str, store: MetricStore) -> None:
        self._region = region
        self._store = store

    def see(self, group: str, line: str, at_s: float) -> None:
        """A line was written to a group."""
        for found in logs_backends[ACCOUNT][self._region].filters.metric_filters:
            if found["logGroupName"] == group:
                self._apply(found, line, at_s)

    def _apply(self, found: dict[str, Any], line: str, at_s: float) -> None:
        try:
            counted = matches(found["filterPattern"], line)
        except PatternError as error:
            log.warning("metric filter %s: %s", found["filterName"], error)
            return
        for transformation in found["metricTransformations"]:
            value = _value(transformation, line) if counted else transformation.get("defaultValue")
            if value is not None:
                metric = metric_id(transformation["metricNamespace"], transformation["metricName"], [])
                self._store.put(metric, Datapoint.of(at_s, {float(value): 1.0}))


def _value(transformation: dict[str, Any], line: str) -> Any:
    """A number, or the field of the line that holds one."""
    text = transformation["metricValue"]
    return value_at(json.loads(line), text) if text.startswith("$") else float(text)
