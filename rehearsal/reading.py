"""Reads an endpoint's log streams back through the AWS API."""

from __future__ import annotations

from collections.abc import Iterator

from rehearsal.client import client
from rehearsal.fleet.logs import log_group


def log_lines(url: str, region: str, endpoint: str) -> Iterator[str]:
    """``stream line`` in order of time."""
    logs = client(url, region, "logs")
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=log_group(endpoint))
    for page in pages:
        for event in page["events"]:
            yield f"{event['logStreamName']} {event['message']}"
