"""validate_load against a rehearsal with live autoscaling: a plan that is right, one that is not, an interruption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest

from planner.artifacts.base import Provenance
from planner.artifacts.plan import Plan, Rule
from planner.artifacts.qmax import Method, Qmax, Quantiles, Rung
from planner.artifacts.ttotal import PolicyLag, Ttotal, TtotalRun
from planner.artifacts.validate import Validation
from planner.decision import Ask
from planner.measured import measured
from planner.planning import make_plan
from scripts.aws.endpoint import describe
from tests.scripts import ladder_artifact
from tests.scripts.e2e.conftest import ENDPOINT, RESOURCE, VARIANT, Rehearsed

pytestmark = pytest.mark.e2e

SERVICE_S, PATH_S, Q_MAX, SLO_MS, T_TOTAL_S = 0.060, 0.004, 20, 1250.0, 8.0
REPLAY = ["--env", f"REPLAY_SERVICE_MEAN_MS={SERVICE_S * 1e3:g}", "--env", f"MAX_QUEUE_DEPTH={Q_MAX}"]
STAGES = "provisioning=4,container_start=0.5,health_check=1,routing=0"
OF = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": RESOURCE,
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}


@pytest.fixture(scope="module")
def endpoint(rehearse: Callable[..., Rehearsed]) -> Rehearsed:
    return rehearse(STAGES, "framework_init=0.05,weights_ready=0.3,warmup_done=0.1", *REPLAY)


def origin(run_id: str) -> Provenance:
    return Provenance(
        tool_version="0",
        command=[],
        run_id=run_id,
        created_at=datetime.now(UTC),
        region="us-east-1",
        endpoint=ENDPOINT,
        variant=VARIANT,
        aws_endpoint_url=os.environ["AWS_ENDPOINT_URL"],
    )


def ladder(service_s: float) -> Qmax:
    """One request at a time: what an instance with this service time shows at every concurrency."""

    def rung(n: int) -> Rung:
        ms = (n * service_s + PATH_S) * 1e3
        times = Quantiles(n=1000, mean=ms, p50=ms, p90=ms * 1.01, p95=ms * 1.02, p99=ms * 1.03)
        verdict = "pass" if times.p95 <= SLO_MS else "fail"
        rate = min(n / (service_s + PATH_S), 1 / service_s)
        return Rung(
            concurrency=n,
            verdict=verdict,
            point_verdict=verdict,
            achieved_rps=rate,
            completed=1000,
            ok=1000,
            ttfab_ms=times,
            latency_ms=times,
            service_ms_cv=0.03,
            metric_ratio=1.0,
        )

    return Qmax(
        provenance=origin("ladder000001"),
        model="m",
        fingerprint=ladder_artifact.identity(describe(ENDPOINT, VARIANT)),
        method=Method(rungs=[1, 2, 5, 10, 20, 30], hold_s=240, measure_window_s=60, idle_s=30, slo_ms=SLO_MS),
        outcome="found",
        q_max=Q_MAX,
        bracketed=True,
        service_mean_s=service_s + PATH_S,
        service_p95_s=(service_s + PATH_S) * 1.02,
        ttfab_p95_at_1_ms=(service_s + PATH_S) * 1020,
        ladder=[rung(n) for n in (1, 2, 5, 10, 20, 30)],
    )


def deploy(out: Path, rule: Rule, service_s: float = SERVICE_S) -> list[str]:
    """Plan from a ladder with this service time, make its autoscaling live, and give validate_load's flags."""
    qmax = ladder(service_s)
    timing = Ttotal(
        provenance=origin("ttotal000001"),
        model="m",
        fingerprint=qmax.fingerprint,
        qmax_run_id="ladder000001",
        probe_concurrency=2,
        t_total_s=T_TOTAL_S,
        policy_lag=PolicyLag(bound_s=40, source="defaults", formula="3 x 10 + 10"),
        metric_scope="per_instance",
        runs=[TtotalRun(run=0, outcome="measured", from_instances=1, to_instances=2, t_total_s=T_TOTAL_S)],
    )
    ask = Ask(slo_ms=SLO_MS, surge_ratio=1.25, peak_rps=60, trough_rps=1, rule=rule)
    plan = make_plan(measured([qmax], [timing]), ask, command=[], now=datetime.now(UTC))
    folder = out / f"{rule}-{service_s:g}"
    qmax.save(folder / "qmax.json")
    plan.save(folder / "plan.json")
    _apply(plan)
    files = ["--plan", str(folder / "plan.json"), "--qmax", str(folder / "qmax.json")]
    return ["--model", "m", "--artifacts", str(folder), *files, "--terraform-dir", str(folder), "--force"]


def _apply(plan: Plan) -> None:
    derived, scaling = plan.derived, boto3.client("application-autoscaling")
    # Outside the run nothing may scale, or what a run must leave as it was would change by itself.
    held = {f"{name}Suspended": True for name in ("DynamicScalingIn", "DynamicScalingOut", "ScheduledScaling")}
    scaling.register_scalable_target(
        **OF, MinCapacity=derived.min_instances, MaxCapacity=derived.max_instances, SuspendedState=held
    )
    scaling.put_scaling_policy(
        **OF,
        PolicyName=f"{ENDPOINT}-scale-out",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": derived.scaling_target_value,
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"
            },
            "ScaleOutCooldown": derived.scale_out_cooldown_s,
            "DisableScaleIn": True,
        },
    )
    action = scaling.put_scaling_policy(
        **OF,
        PolicyName=f"{ENDPOINT}-scale-in",
        PolicyType="StepScaling",
        StepScalingPolicyConfiguration={
            "AdjustmentType": "ChangeInCapacity",
            "Cooldown": derived.scale_in_cooldown_s,
            "MetricAggregationType": "Maximum",
            "StepAdjustments": [{"MetricIntervalUpperBound": 0, "ScalingAdjustment": -1}],
        },
    )["PolicyARN"]
    boto3.client("cloudwatch").put_metric_alarm(
        AlarmName=f"{ENDPOINT}-scale-in",
        Namespace="AWS/SageMaker",
        MetricName="ConcurrentRequestsPerModel",
        Dimensions=[{"Name": "EndpointName", "Value": ENDPOINT}, {"Name": "VariantName", "Value": VARIANT}],
        Statistic="Maximum",
        Period=60,
        EvaluationPeriods=3,
        DatapointsToAlarm=3,
        Threshold=derived.scale_in_threshold,
        ComparisonOperator="LessThanThreshold",
        TreatMissingData="breaching",
        AlarmActions=[action],
    )


def verdicts(folder: str, source: str) -> dict[str, str]:
    found = Validation.load(Path(folder) / "validate-m.json")
    return {score.name: score.verdict for score in found.scores if score.source == source}


def folder_of(flags: list[str]) -> str:
    return flags[flags.index("--artifacts") + 1]


def conclusive(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """A machine that cannot keep the schedule rightly gives no verdict; that is no fault of the plan."""
    if done.returncode == 4 and "fell behind" in done.stdout:
        pytest.skip("this machine is too busy to send on time")
    return done


def test_a_plan_from_a_ladder_that_promises_twice_too_much_is_wrong(endpoint: Rehearsed) -> None:
    flags = deploy(endpoint.out, "drain", service_s=SERVICE_S / 2)
    before = endpoint.durable()
    done = conclusive(endpoint.run("validate_load", *flags, "--hold-s", "4", "--surge-s", "16", "--after-s", "0"))
    assert done.returncode == 3, done.stderr
    assert "the plan was WRONG" in done.stdout
    assert verdicts(folder_of(flags), "plan")["shed_fraction"] == "wrong"
    endpoint.settle()
    assert endpoint.durable() == before


def test_an_interrupted_run_restores(endpoint: Rehearsed) -> None:
    flags = deploy(endpoint.out, "headroom")
    before = endpoint.durable()
    process = endpoint.start("validate_load", *flags, "--hold-s", "2", "--surge-s", "60")
    assert process.stderr is not None
    assert any("surge begins" in line for line in process.stderr)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "as it was before" in errors
    assert endpoint.durable() == before


def test_refusals_change_nothing(endpoint: Rehearsed) -> None:
    flags = deploy(endpoint.out, "headroom")
    before: dict[str, Any] = endpoint.durable()
    for more, complaint in (
        (["--hold-s", "-1", "--max-usd", "0"], "--hold-s -1"),
        (["--instances", "99"], "above the target's maximum"),
        (["--qmax", "missing.json"], "no such file"),
    ):
        done = endpoint.run("validate_load", *flags, *more)
        assert done.returncode == 2, done.stderr
        assert complaint in done.stderr
    assert "nothing was changed" in endpoint.run("validate_load", *flags, "--dry-run").stdout
    assert endpoint.durable() == before


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["headroom", "drain"])
def test_an_honest_plan_is_right_and_the_simulator_agrees(endpoint: Rehearsed, rule: Rule) -> None:
    """headroom says it sheds and does; drain says it does not and does not. Within five points and one period."""
    flags = deploy(endpoint.out, rule)
    before = endpoint.durable()
    done = conclusive(endpoint.run("validate_load", *flags, "--hold-s", "20", "--after-s", "5", "--json"))
    assert done.returncode == 0, done.stderr + done.stdout
    found = json.loads(done.stdout)
    surge = next(part for part in found["stretches"] if part["name"] == "surge until new capacity")
    assert (surge["shed_fraction"] > 0.05) == (rule == "headroom")
    assert set(verdicts(folder_of(flags), "plan").values()) <= {"ok", "better"}
    assert "wrong" not in verdicts(folder_of(flags), "simulator").values()
    assert endpoint.durable() == before
