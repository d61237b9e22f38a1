"""Fixtures of the scripts' tests: a fake account and a clock that does not wait."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest

from scripts.aws.clients import control
from scripts.aws.waiting import Clock
from tests.scripts.fake_aws import FakeAws


class FastClock(Clock):
    """Sleeping moves the time and takes none."""

    def __init__(self) -> None:
        self.slept_s = 0.0
        start = datetime(2026, 8, 4, 14, 0, tzinfo=UTC)
        super().__init__(
            now=lambda: start + timedelta(seconds=self.slept_s),
            monotonic=lambda: self.slept_s,
            sleep=self._advance,
        )

    def _advance(self, seconds: float) -> None:
        self.slept_s += seconds


@pytest.fixture
def clock() -> FastClock:
    return FastClock()


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakeAws]:
    """``account(desired=..)`` makes the fake account of this test and points boto3 at it."""

    def make(**changes: Any) -> FakeAws:
        fake = FakeAws(tmp_path / "aws.json", **changes)
        monkeypatch.setattr(boto3, "client", fake.client)
        return fake

    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    monkeypatch.setenv("HEADROOM_STATE_DIR", str(tmp_path / "state"))
    control.cache_clear()
    yield make
    control.cache_clear()
