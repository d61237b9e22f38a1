"""The containers' log streams: which instances log, and the stage markers they print while starting."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from botocore.exceptions import ClientError

from scripts.aws.clients import aws_errors, control, error_code
from scripts.aws.endpoint import log_group

_MARKER = re.compile(r"=== STAGE (?P<name>\w+) t=(?P<t>\d+) elapsed_s=(?P<elapsed>[\d.]+) ===")


@dataclass(frozen=True)
class LogLine:
    """One event of one stream."""

    stream: str
    at: datetime
    message: str


@dataclass(frozen=True)
class Marker:
    """A stage the container says it reached, by the container's own clock."""

    name: str
    at: datetime
    elapsed_s: float


def parse_marker(message: str) -> Marker | None:
    """The marker in a log line, or None."""
    match = _MARKER.search(message)
    if match is None:
        return None
    at = datetime.fromtimestamp(int(match["t"]) / 1000, UTC)
    return Marker(match["name"], at, float(match["elapsed"]))


def streams(endpoint: str, variant: str) -> set[str]:
    """Names of the variant's log streams; empty while the group does not exist."""
    found: set[str] = set()
    with aws_errors(f"listing log streams of {endpoint}"):
        try:
            pages = (
                control("logs")
                .get_paginator("describe_log_streams")
                .paginate(logGroupName=log_group(endpoint), logStreamNamePrefix=f"{variant}/")
            )
            for page in pages:
                found.update(stream["logStreamName"] for stream in page["logStreams"])
        except ClientError as error:
            if error_code(error) != "ResourceNotFoundException":
                raise
    return found


class Tail:
    """Reads streams from their beginning, each line once, however late it is delivered."""

    def __init__(self, endpoint: str, variant: str, known: set[str] | None = None) -> None:
        self._endpoint = endpoint
        self._variant = variant
        self._known = known or set()
        self._tokens: dict[str, str | None] = {}

    @property
    def new_streams(self) -> list[str]:
        """Streams that were not known when the tail was made."""
        return sorted(self._tokens)

    def poll(self) -> list[LogLine]:
        """Lines that arrived in new streams since the last poll."""
        for name in streams(self._endpoint, self._variant) - self._known:
            self._tokens.setdefault(name, None)
        lines: list[LogLine] = []
        for name in self.new_streams:
            lines.extend(self._read(name))
        return lines

    def _read(self, stream: str) -> list[LogLine]:
        lines: list[LogLine] = []
        while True:
            token = self._tokens[stream]
            request = {"logGroupName": log_group(self._endpoint), "logStreamName": stream, "startFromHead": True}
            if token is not None:
                request["nextToken"] = token
            with aws_errors(f"reading log stream {stream}"):
                page = control("logs").get_log_events(**request)
            events = page["events"]
            lines.extend(
                LogLine(stream, datetime.fromtimestamp(e["timestamp"] / 1000, UTC), e["message"]) for e in events
            )
            self._tokens[stream] = page["nextForwardToken"]
            if not events or page["nextForwardToken"] == token:
                return lines
