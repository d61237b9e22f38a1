"""What makes an endpoint another one than is being measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import boto3
import pytest

from loadtest import observe
from scripts.aws.clients import control
from scripts.aws.endpoint import describe
from tests.scripts.fake_aws import FakeAws


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({}, None),
        ({"status": "Updating"}, "the endpoint is Updating"),
        ({"current": 2, "desired": 2}, "the instance count changed from 1 to 2 (desired 2)"),
        ({"desired": 2}, "the instance count changed from 1 to 1 (desired 2)"),
    ],
)
def test_a_change(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: dict[str, Any], reason: str | None) -> None:
    fake = FakeAws(tmp_path / "aws.json")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setattr(boto3, "client", fake.client)
    control.cache_clear()
    live = describe("e", "v")
    with fake.edit() as state:
        state["endpoint"].update(change)
    assert observe.change(live) == reason
    control.cache_clear()
