"""The shared checks."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from planner.errors import AwsError, UsageError
from scripts.aws import preflight
from scripts.aws.endpoint import describe
from scripts.aws.lock import locked
from scripts.aws.waiting import Clock


def test_all_is_well(account):
    account()
    checks = preflight.run(describe("e", "v"), extra_instances=1)
    assert {check.name: check.verdict for check in checks} == {
        "lock": "ok",
        "endpoint": "ok",
        "quota": "ok",
        "traffic": "ok",
        "clock": "ok",
    }


@pytest.mark.parametrize(("quota", "extra", "verdict"), [(1.0, 1, "fail"), (2.0, 1, "ok"), (None, 1, "warn")])
def test_quota(account, quota, extra, verdict):
    account(quota=quota)
    check = preflight.slot("ml.g5.xlarge", extra)
    assert check.verdict == verdict
    if verdict == "fail":
        assert "ml.g5.xlarge for endpoint usage (L-1928E07B) is 1, 1 in use, 1 more needed" in check.detail
        assert "--desired-value 2" in check.fix


def test_a_quota_alone_is_awss_refusal(account):
    account(quota=1.0)
    with pytest.raises(AwsError, match="quota"):
        preflight.require([preflight.slot("ml.g5.xlarge", 1)])


def test_every_failure_is_told_at_once():
    checks = [preflight.Check(name, "fail", f"{name} is bad", f"mend {name}") for name in ("quota", "traffic")]
    with pytest.raises(UsageError) as raised:
        preflight.require([*checks, preflight.Check("x", "warn", "hm")])
    assert raised.value.message == "quota: quota is bad; traffic: traffic is bad"
    assert raised.value.hint == "mend quota; mend traffic"


def test_another_run_holds_the_lock(account):
    account()
    live = describe("e", "v")
    with locked("e", "v", "other"):
        check = preflight.unlocked(live)
    assert check.verdict == "fail"
    assert "other" in check.detail


def test_a_clock_that_is_off(account):
    account()
    clock = Clock(now=lambda: datetime(2001, 1, 1, tzinfo=UTC))
    assert preflight.skew(clock).verdict == "fail"
    assert preflight.skew(Clock()).verdict == "ok"
