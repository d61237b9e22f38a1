"""Ways to reach an endpoint; every one yields the same records."""

from loadtest.transports.base import Failure, Stream, Target, Transport

__all__ = ["Failure", "Stream", "Target", "Transport"]
