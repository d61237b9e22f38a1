"""One JSON object a line on stderr; what callers want spoken never appears in it."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any

from aiohttp.http_exceptions import HttpProcessingError

log = logging.getLogger("container")


class JsonLines(logging.Formatter):
    """``event`` is the message, ``fields`` the rest."""

    def format(self, record: logging.LogRecord) -> str:
        entry: dict[str, Any] = {
            "t": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.name != log.name:
            entry["logger"] = record.name
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)


def configure() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    log.setLevel(logging.INFO)


def wire_log() -> logging.Logger:
    """For aiohttp, which takes clients that leave or speak broken HTTP for defects of ours."""
    logger = logging.getLogger("container.wire")
    if not logger.filters:
        logger.addFilter(_without_blame)
    return logger


def _without_blame(record: logging.LogRecord) -> bool:
    if record.exc_info and isinstance(record.exc_info[1], ConnectionError):
        return False  # accounted for as disconnected
    if record.exc_info and isinstance(record.exc_info[1], HttpProcessingError):
        record.levelno, record.levelname = logging.INFO, "INFO"
        record.msg, record.args, record.exc_info = "malformed_http", (), None
    return True


def event(name: str, **fields: Any) -> None:
    log.info(name, extra={"fields": fields})
