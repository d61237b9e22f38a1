"""What instances print, in CloudWatch Logs: group /aws/sagemaker/Endpoints/NAME, stream VARIANT/INSTANCE."""

from __future__ import annotations

import asyncio
import time

from moto.logs.models import LogsBackend, logs_backends

from rehearsal.cloudwatch.metric_filters import MetricFilters
from rehearsal.faults import Faults
from rehearsal.settings import ACCOUNT

KEPT_LINES = 50_000
"""A stream."""


def log_group(endpoint: str) -> str:
    """Where SageMaker writes an endpoint's logs."""
    return f"/aws/sagemaker/Endpoints/{endpoint}"


class LogSink:
    """Writes into moto's store; the late-logs fault holds lines back but keeps their timestamps."""

    def __init__(self, region: str, faults: Faults, filters: MetricFilters) -> None:
        self._region = region
        self._faults = faults
        self._filters = filters

    def write(self, group: str, stream: str, line: str) -> None:
        """One line, stamped now."""
        now = time.time()
        event = {"timestamp": int(now * 1000), "message": line}
        self._filters.see(group, line, now)
        if self._faults.on("late-logs"):
            delay_s = self._faults.number("late-logs", "delay_s")
            asyncio.get_running_loop().call_later(delay_s, self._put, group, stream, event)
        else:
            self._put(group, stream, event)

    def _put(self, group: str, stream: str, event: dict[str, object]) -> None:
        backend: LogsBackend = logs_backends[ACCOUNT][self._region]
        backend.ensure_log_group(group)
        if stream not in backend.groups[group].streams:
            backend.create_log_stream(group, stream)
        backend.put_log_events(group, stream, [event])
        del backend.groups[group].streams[stream].events[:-KEPT_LINES]
