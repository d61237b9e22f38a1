"""Reads an endpoint's log streams back through the AWS API."""

from __future__ import annotations

from collections.abc import Iterator

import boto3

from rehearsal.fleet.logs import log_group
from rehearsal.settings import ACCESS_KEY, SECRET_KEY


def log_lines(url: str, region: str, endpoint: str) -> Iterator[str]:
    """``stream line`` in order of time."""
    logs = boto3.client(
        "logs",
        endpoint_url=url,
        region_name=region,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=log_group(endpoint))
    for page in pages:
        for event in page["events"]:
            yield f"{event['logStreamName']} {event['message']}"
