"""What deploy, apply-plan and destroy check around Terraform."""

from __future__ import annotations

from datetime import timedelta

import pytest

from planner.artifacts.plan import Finding
from planner.errors import AwsError, FactFails, UsageError
from scripts import apply_plan
from scripts.aws import journal as journals
from scripts.aws.endpoint import describe
from scripts.deployment import guards, settings
from tests.scripts import ladder_artifact, plan_artifact


class Tool:
    """Notes what Terraform was told."""

    def __init__(self) -> None:
        self.untainted: list[str] = []

    def untaint(self, address: str) -> None:
        self.untainted.append(address)


def test_a_rollback_is_an_error_although_terraform_said_done(account):
    account(endpoint={"status": "InService", "desired": 1, "current": 1, "config": "old", "reason": "ping", "polls": 0})
    with pytest.raises(AwsError, match="runs configuration old, intended was new: SageMaker rolled back") as raised:
        guards.require_live("e", "v", "new")
    assert "ping" in raised.value.message
    assert "/aws/sagemaker/Endpoints/e" in raised.value.hint


def test_the_intended_configuration_passes(account):
    account()
    assert guards.require_live("e", "v", "e-cfg").config_name == "e-cfg"


def test_a_failed_apply_carries_sagemakers_reason(account):
    account(endpoint={"status": "Failed", "desired": 1, "current": 0, "config": "c", "reason": "no ping", "polls": 0})
    error = guards.explain_failed_apply(AwsError("terraform apply failed", "x"), "e", "v")
    assert "endpoint e is Failed: no ping" in error.message


@pytest.mark.parametrize(("status", "tainted", "expected"), [("InService", True, 1), ("InService", False, 0)])
def test_a_healthy_endpoint_is_not_replaced_for_a_wait_that_ran_out(account, status, tainted, expected):
    account(endpoint={"status": status, "desired": 1, "current": 1, "config": "c", "reason": None, "polls": 0})
    tool = Tool()
    guards.untaint_healthy(tool, describe("e", "v"), {guards.ENDPOINT_ADDRESS: tainted})  # type: ignore[arg-type]
    assert len(tool.untainted) == expected


def test_somebody_elses_endpoint_is_refused(account):
    account()
    with pytest.raises(UsageError, match="does not manage it") as raised:
        guards.refuse_foreign(describe("e", "v"), {})
    assert "terraform -chdir=terraform import" in raised.value.hint


def test_a_frozen_endpoint_is_refused(account, clock):
    account()
    live = describe("e", "v")
    journal = journals.new_journal(live, None, "r1", clock.now(), clock.now() + timedelta(hours=1))
    journals.write_tag(live, journal)
    with pytest.raises(UsageError, match="frozen by run r1") as raised:
        guards.refuse_frozen(live)
    assert raised.value.hint == "make thaw"


def test_a_left_over_target_stops_the_plan_before_it_starts(account):
    account()
    with pytest.raises(UsageError, match="scalable target endpoint/e/variant/v exists") as raised:
        apply_plan.refuse_left_over(describe("e", "v"), {})
    assert "deregister-scalable-target" in raised.value.hint
    apply_plan.refuse_left_over(describe("e", "v"), {guards.TARGET_ADDRESS: False})


def test_a_plan_that_says_stop_is_not_applied(account, tmp_path):
    account()
    stop = Finding(name="surge_survival", verdict="stop", detail="sheds 18 %", recommendation="more headroom")
    plan = plan_artifact.plan(ladder_artifact.identity(describe("e", "v")), verdict="stop", findings=[stop])
    with pytest.raises(FactFails, match="surge_survival: sheds 18 %") as raised:
        apply_plan.refuse_unfit(plan, tmp_path / "p")
    assert raised.value.hint == "more headroom"


SILENT = {"PolicyName": "e-scale-out", "PolicyType": "TargetTrackingScaling", "Alarms": []}


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"target": None}, "policy e-scale-out does not exist"),
        ({"policies": [SILENT]}, "policy e-scale-out has no alarm: it would never fire"),
    ],
)
def test_applied_but_not_there_is_an_error(account, changes, fault):
    account(**changes)
    plan = plan_artifact.plan(ladder_artifact.identity(describe("e", "v")))
    with pytest.raises(AwsError, match=fault):
        apply_plan.verify("e", "v", plan)


@pytest.mark.parametrize(("quota", "verdict"), [(3.0, "fail"), (4.0, "ok")])
def test_a_quota_below_the_plans_maximum_is_found_before_apply(account, quota, verdict):
    account(quota=quota)
    plan = plan_artifact.plan(ladder_artifact.identity(describe("e", "v")))
    check = apply_plan._room(describe("e", "v"), plan)
    assert check.verdict == verdict
    assert f"is {quota:.0f}, 1 in use, 3 more needed" in check.detail


def test_settings_survive_and_go(tmp_path):
    assert settings.load(tmp_path) == {}
    settings.save(tmp_path, {"image_digest": "sha256:1"})
    assert settings.load(tmp_path) == {"image_digest": "sha256:1"}
    settings.remove(tmp_path)
    assert settings.load(tmp_path) == {}
