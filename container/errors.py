"""The refusals a caller can meet; every one becomes a JSON body of one shape, on HTTP and on WebSocket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from container.engine.base import EngineDead, EngineError
from container.logs import log


class RequestError(Exception):
    """A request that gets no (more) audio: HTTP status, machine-readable code, sentence, and details."""

    def __init__(
        self, status: int, code: str, message: str, *, retry_after_s: int | None = None, **details: Any
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after_s = retry_after_s
        self.details = details

    def body(self) -> dict[str, Any]:
        retry = {} if self.retry_after_s is None else {"retry_after_s": self.retry_after_s}
        return {"error": self.code, "message": self.message, **retry, **self.details}

    def headers(self) -> Mapping[str, str]:
        return {} if self.retry_after_s is None else {"Retry-After": str(self.retry_after_s)}


def invalid(code: str, message: str, **details: Any) -> RequestError:
    return RequestError(400, code, message, **details)


def unavailable(code: str, message: str, retry_after_s: int = 1) -> RequestError:
    return RequestError(503, code, message, retry_after_s=retry_after_s)


def as_refusal(error: BaseException) -> RequestError:
    """What a caller is told about ``error``."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, EngineError):
        return RequestError(400, "unspeakable_text", str(error))
    if isinstance(error, EngineDead):
        return RequestError(503, "engine_dead", "the speech engine has failed", retry_after_s=5)
    if isinstance(error, TimeoutError):
        return RequestError(504, "deadline_exceeded", "no time left to speak this text", retry_after_s=1)
    log.error("unhandled", exc_info=error)
    return RequestError(500, "internal_error", "this request met a defect of the server")
