"""Drift and validate against a fake account that holds the plan, and against every way it can differ."""

from __future__ import annotations

import copy
import json
from datetime import timedelta

import pytest

from planner.errors import UsageError
from scripts import drift, validate
from scripts.aws import journal as journals
from scripts.aws.endpoint import describe
from scripts.aws.scaling import read_target
from scripts.guard import live as facts
from scripts.guard.findings import failed
from scripts.guard.intent import Intent, find, tfvars_plan
from tests.scripts import ladder_artifact, plan_artifact

SCALE_OUT = {
    "PolicyName": "e-scale-out",
    "PolicyType": "TargetTrackingScaling",
    "TargetTrackingScalingPolicyConfiguration": {
        "TargetValue": 37.5,
        "ScaleOutCooldown": 30,
        "DisableScaleIn": True,
        "PredefinedMetricSpecification": {
            "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"
        },
    },
    "Alarms": [{"AlarmName": "managed-high"}],
}
SCALE_IN = {
    "PolicyName": "e-scale-in",
    "PolicyType": "StepScaling",
    "PolicyARN": "arn:scale-in",
    "StepScalingPolicyConfiguration": {
        "AdjustmentType": "ChangeInCapacity",
        "MetricAggregationType": "Maximum",
        "Cooldown": 960,
        "StepAdjustments": [{"MetricIntervalUpperBound": 0.0, "ScalingAdjustment": -1}],
    },
}
ALARMS = [
    {
        "AlarmName": "e-scale-in",
        "Threshold": 25.0,
        "MetricName": "ConcurrentRequestsPerModel",
        "Dimensions": [{"Name": "EndpointName", "Value": "e"}, {"Name": "VariantName", "Value": "v"}],
        "Statistic": "Maximum",
        "Period": 60,
        "EvaluationPeriods": 3,
        "DatapointsToAlarm": 3,
        "ComparisonOperator": "LessThanThreshold",
        "TreatMissingData": "breaching",
        "ActionsEnabled": True,
        "AlarmActions": ["arn:scale-in"],
        "StateValue": "OK",
    },
    {
        "AlarmName": "managed-high",
        "ComparisonOperator": "GreaterThanThreshold",
        "Period": 10,
        "EvaluationPeriods": 3,
        "StateValue": "OK",
    },
]


def deployed(**changes):
    state = {
        "policies": copy.deepcopy([SCALE_OUT, SCALE_IN]),
        "alarms": copy.deepcopy(ALARMS),
        "environment": {"MAX_QUEUE_DEPTH": "50"},
    }
    return state | changes


@pytest.fixture
def plan(account):
    account(**deployed())
    return plan_artifact.plan(ladder_artifact.identity(describe("e", "v")))


def drifted(plan, clock, *, handed=True):
    return drift.look(describe("e", "v"), Intent(plan, None, handed), clock)


def test_as_planned_is_clean(account, clock, plan):
    account()
    findings = drifted(plan, clock)
    assert not failed(findings)
    assert any("are as in" in finding.detail for finding in findings)


TARGET = "target endpoint/e/variant/v"
OUT, IN, ALARM = "policy e-scale-out", "policy e-scale-in", "alarm e-scale-in"


def tracking(state):
    return state["policies"][0]["TargetTrackingScalingPolicyConfiguration"]


def step(state):
    return state["policies"][1]["StepScalingPolicyConfiguration"]


@pytest.mark.parametrize(
    ("change", "resource", "word"),
    [
        (lambda s: s["target"].update(min=2), TARGET, "min_instances is 2, planned 1"),
        (lambda s: s["target"].update(max=9), TARGET, "max_instances is 9, planned 4"),
        (lambda s: tracking(s).update(TargetValue=40.0), OUT, "target value is 40.0, planned 37.5"),
        (lambda s: tracking(s).update(ScaleOutCooldown=300), OUT, "cooldown (s) is 300, planned 30"),
        (lambda s: tracking(s).update(DisableScaleIn=False), OUT, "scale-in disabled is False"),
        (lambda s: tracking(s)["PredefinedMetricSpecification"].update(PredefinedMetricType="X"), OUT, "metric is X"),
        (lambda s: step(s).update(Cooldown=60), IN, "cooldown (s) is 60, planned 960"),
        (lambda s: step(s)["StepAdjustments"][0].update(ScalingAdjustment=-2), IN, "-2"),
        (lambda s: step(s).update(MetricAggregationType="Average"), IN, "Average"),
        (lambda s: s["alarms"][0].update(Threshold=5.0), ALARM, "threshold is 5.0, planned 25.0"),
        (lambda s: s["alarms"][0].update(Statistic="Average"), ALARM, "statistic is Average"),
        (lambda s: s["alarms"][0].update(Period=10), ALARM, "period (s) is 10"),
        (lambda s: s["alarms"][0].update(TreatMissingData="missing"), ALARM, "missing data is missing"),
        (lambda s: s["alarms"][0].update(ActionsEnabled=False), ALARM, "actions enabled is False"),
        (lambda s: s["alarms"][0].update(AlarmActions=[]), ALARM, "action is []"),
        (lambda s: s["alarms"][0]["Dimensions"][1].update(Value="other"), ALARM, "other"),
        (lambda s: s["policies"].pop(0), OUT, "does not exist"),
        (lambda s: s["policies"].pop(1), IN, "does not exist"),
        (lambda s: s["alarms"].pop(0), ALARM, "does not exist"),
        (lambda s: s["environment"].update(MAX_QUEUE_DEPTH="10"), "endpoint e", "MAX_QUEUE_DEPTH is 10"),
        (lambda s: s["environment"].clear(), "endpoint e", "not set"),
        (lambda s: s.update(instance_type="ml.g4dn.xlarge"), "endpoint e", "ml.g4dn.xlarge"),
        (lambda s: s.update(image="r@sha256:" + "0" * 64), "endpoint e", "runs image sha256:0000"),
        (lambda s: s["target"].update(suspended=[False, True, False]), TARGET, "suspended: scale-out"),
        (lambda s: s["endpoint"].update(desired=7, current=7), TARGET, "7 instances, outside 1 to 4"),
        (lambda s: s["endpoint"].update(status="Failed", reason="boom"), "endpoint e", "boom"),
    ],
)
def test_every_difference_is_an_error_with_a_fix(account, clock, plan, change, resource, word):
    fake = account()
    with fake.edit() as state:
        change(state)
    errors = [finding for finding in drifted(plan, clock) if finding.severity == "error"]
    matching = [finding for finding in errors if finding.resource == resource and word in finding.detail]
    assert matching, errors
    assert all(finding.fix for finding in errors)


def test_a_freeze_left_behind_is_an_error_that_names_thaw(account, clock, plan):
    account()
    live = describe("e", "v")
    journal = journals.new_journal(live, read_target("e", "v"), "dead", clock.now(), clock.now() + timedelta(hours=1))
    journals.write_file(journal)
    journals.write_tag(live, journal)
    found = [finding for finding in drifted(plan, clock) if "frozen by run dead" in finding.detail]
    assert [(finding.severity, finding.fix) for finding in found] == [("error", "make thaw")]


def test_a_target_nobody_planned_comes_with_both_commands(account, clock):
    account(**deployed())
    findings = drift.look(describe("e", "v"), Intent(None, None, False), clock)
    (left,) = [finding for finding in findings if finding.severity == "error"]
    assert "deregister-scalable-target" in left.fix
    assert "--resource-id endpoint/e/variant/v" in left.fix
    assert "terraform -chdir=terraform import" in left.fix


def test_a_left_over_target_comes_with_both_commands_even_with_a_plan(account):
    account(**deployed())
    live, target = describe("e", "v"), read_target("e", "v")
    (left,) = facts.unmanaged_target(live, target, {"endpoint_name": "e"})
    assert left.severity == "error"
    assert "deregister-scalable-target" in left.fix
    assert "terraform -chdir=terraform import" in left.fix
    for managed in (
        {"endpoint_name": "e", "scaling_resource_id": "endpoint/e/variant/v"},
        {"endpoint_name": "x"},
        None,
    ):
        assert list(facts.unmanaged_target(live, target, managed)) == []
    assert list(facts.unmanaged_target(live, None, {"endpoint_name": "e"})) == []


def test_a_plan_not_applied_yet_is_no_error(account, clock, plan):
    fake = account()
    with fake.edit() as state:
        state.update(target=None, policies=[], alarms=[], environment={})
    findings = drifted(plan, clock)
    assert not failed(findings)
    assert [finding.fix for finding in findings if finding.severity == "warn"] == ["make apply-plan"]


def test_no_plan_and_no_autoscaling_is_clean(account, capsys, tmp_path):
    account(target=None)
    arguments = ["--endpoint", "e", "--variant", "v", "--model", "m"]
    places = ["--artifacts", str(tmp_path), "--terraform-dir", str(tmp_path)]
    assert drift.main([*arguments, *places, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["status"], shown["next"]) == ("preflight-ok", "make qmax")


@pytest.mark.parametrize(
    ("settings", "outputs", "word"),
    [
        ({"image_digest": "sha256:old"}, None, "deployed was sha256:old"),
        ({"instance_type": "ml.g6.xlarge"}, None, "deployed was ml.g6.xlarge"),
        ({}, {"endpoint_name": "e", "endpoint_config_name": "e-new"}, "runs configuration e-cfg, Terraform left e-new"),
    ],
)
def test_what_terraform_was_told_is_compared(account, settings, outputs, word):
    account()
    live = describe("e", "v")
    (finding,) = facts.against_terraform(live, {"endpoint_name": "e"} | settings, outputs)
    assert (finding.severity, finding.fix) == ("error", "make deploy")
    assert word in finding.detail


def test_another_deployments_settings_say_nothing_here(account):
    account()
    outputs = {"endpoint_name": "other", "endpoint_config_name": "x"}
    settings = {"endpoint_name": "other", "image_digest": "sha256:x"}
    assert list(facts.against_terraform(describe("e", "v"), settings, outputs)) == []


def readings(clock):
    return {"ConcurrentRequestsPerModel": [((clock.now() - timedelta(seconds=30)).isoformat(), 0.0)]}


def test_validate_is_clean_when_everything_lives(account, clock, plan):
    fake = account()
    with fake.edit() as state:
        state["metrics"] = readings(clock)
    assert not failed(validate.look(describe("e", "v"), plan, clock))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda s: s["metrics"].clear(), "no reading in 15 min"),
        (lambda s: s["alarms"][1].update(StateValue="INSUFFICIENT_DATA"), "INSUFFICIENT_DATA"),
        (lambda s: s["policies"][0].update(Alarms=[]), "has no alarm"),
        (lambda s: tracking(s).update(TargetValue=1.0), "target value is 1.0"),
    ],
)
def test_validate_finds_what_would_never_scale(account, clock, plan, change, word):
    fake = account()
    with fake.edit() as state:
        state["metrics"] = readings(clock)
        change(state)
    errors = [f.detail for f in validate.look(describe("e", "v"), plan, clock) if f.severity == "error"]
    assert any(word in detail for detail in errors), errors


def test_the_plan_terraform_was_given_is_found(tmp_path, account):
    account()
    path = tmp_path / "plan-m.json"
    plan_artifact.plan(None).save(path)
    plan_artifact.hand_over(tmp_path, path)
    found = find(tmp_path / "nowhere", "m", None, tmp_path)
    assert found.path == path
    assert found.handed_to_terraform


def test_a_tfvars_without_a_plan_is_named(tmp_path):
    (tmp_path / "plan.auto.tfvars").write_text("other = 1\n")
    with pytest.raises(UsageError, match="plan_json"):
        tfvars_plan(tmp_path)
