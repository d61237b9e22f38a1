"""A rehearsal of one's own for the end-to-end tests: fast stages, scripted service time, a registered target."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest

from scripts.aws.clients import control
from scripts.aws.endpoint import describe
from tests.scripts import ladder_artifact

ROOT = Path(__file__).parents[3]
ENDPOINT, VARIANT = "e", "v"
TARGET = ["--endpoint", ENDPOINT, "--variant", VARIANT]
RESOURCE = f"endpoint/{ENDPOINT}/variant/{VARIANT}"
LADDER_P95_MS = {1: 66.0, 5: 290.0, 10: 570.0}
FAST_STAGES = "provisioning=1,container_start=0.2,health_check=0.3,routing=0"
FAST_CONTAINER = "framework_init=0.01,weights_ready=0.2,warmup_done=0.1"


@dataclass
class Rehearsed:
    """A running rehearsal, its environment and a place for artifacts."""

    environment: dict[str, str]
    out: Path

    def start(self, verb: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", f"scripts.{verb}", *TARGET, *arguments]
        env = self.environment | environment
        return subprocess.Popen(
            command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )

    def run(self, verb: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        process = self.start(verb, *arguments, **environment)
        out, err = process.communicate(timeout=200)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def ttotal_flags(self, **changes: str) -> list[str]:
        flags = {"baseline-s": "2", "hold-s": "3", "poll-s": "0.5", "metric-wait-s": "0", "max-wait-s": "60"} | changes
        pairs = [part for name, value in flags.items() for part in (f"--{name}", value)]
        return ["--model", "m", "--out", str(self.out), "--force", *pairs]

    def admin(self, path: str, method: str = "GET", body: dict[str, str] | None = None) -> Any:
        url = f"{self.environment['AWS_ENDPOINT_URL']}/_rehearsal/{path}"
        data = json.dumps(body or {}).encode() if method == "PUT" else None
        request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def fault(self, name: str, **parameters: str) -> None:
        self.admin(f"faults/{name}", "PUT", parameters)

    def clear(self) -> None:
        self.admin("faults", "DELETE")

    def durable(self) -> dict[str, Any]:
        """Everything a run must leave as it was."""
        scaling = control("application-autoscaling")
        of = {"ServiceNamespace": "sagemaker"}
        endpoint = control("sagemaker").describe_endpoint(EndpointName=ENDPOINT)
        variant = endpoint["ProductionVariants"][0]
        return {
            "targets": scaling.describe_scalable_targets(**of)["ScalableTargets"],
            "policies": scaling.describe_scaling_policies(**of)["ScalingPolicies"],
            "tags": control("sagemaker").list_tags(ResourceArn=endpoint["EndpointArn"])["Tags"],
            "config": endpoint["EndpointConfigName"],
            "status": endpoint["EndpointStatus"],
            "counts": (variant["DesiredInstanceCount"], variant["CurrentInstanceCount"]),
        }

    def settle(self) -> None:
        """Wait until the endpoint is InService."""
        for _ in range(100):
            if control("sagemaker").describe_endpoint(EndpointName=ENDPOINT)["EndpointStatus"] == "InService":
                return
            time.sleep(0.1)
        raise AssertionError("the endpoint did not settle")


@pytest.fixture(scope="module")
def rehearse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Rehearsed]]:
    """``rehearse(stages=..)`` starts one; all are stopped with the module."""
    patch = pytest.MonkeyPatch()
    started: list[dict[str, str]] = []

    def make(stages: str = FAST_STAGES, container: str = FAST_CONTAINER, *more: str) -> Rehearsed:
        home = tmp_path_factory.mktemp("rehearsal")
        clean = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        base = clean | {"HEADROOM_REHEARSAL_DIR": str(home / "state"), "HEADROOM_STATE_DIR": str(home / "journals")}
        up = [sys.executable, "-m", "rehearsal", "up", "--seed", "--endpoint", ENDPOINT, "--variant", VARIANT]
        up += ["--engine", "replay", "--env", f"REPLAY_STAGES_S={container}", "--stages", stages, *more]
        started.append(base)
        subprocess.run(up, cwd=ROOT, env=base, check=True, capture_output=True, timeout=60)
        shown = subprocess.run(
            [sys.executable, "-m", "rehearsal", "env"], cwd=ROOT, env=base, check=True, capture_output=True, text=True
        ).stdout
        exported = dict(line.removeprefix("export ").split("=", 1) for line in shown.splitlines() if "=" in line)
        for key, value in exported.items():
            patch.setenv(key, value.strip("'\""))
        patch.setenv("HEADROOM_STATE_DIR", base["HEADROOM_STATE_DIR"])
        control.cache_clear()
        rehearsed = Rehearsed(dict(os.environ) | base | {k: os.environ[k] for k in exported}, home / "artifacts")
        _register_target()
        ladder_artifact.write(describe(ENDPOINT, VARIANT), rehearsed.out, LADDER_P95_MS)
        return rehearsed

    yield make
    for environment in started:
        subprocess.run([sys.executable, "-m", "rehearsal", "down"], cwd=ROOT, env=environment, check=False, timeout=60)
    patch.undo()
    control.cache_clear()


def _register_target() -> None:
    scaling = boto3.client("application-autoscaling", region_name=os.environ["AWS_REGION"])
    of = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": RESOURCE,
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    state = {
        "DynamicScalingInSuspended": True,
        "DynamicScalingOutSuspended": False,
        "ScheduledScalingSuspended": False,
    }
    scaling.register_scalable_target(**of, MinCapacity=1, MaxCapacity=3, SuspendedState=state)
    scaling.put_scaling_policy(
        **of,
        PolicyName="e-scale-out",
        PolicyType="TargetTrackingScaling",
        TargetTrackingScalingPolicyConfiguration={
            "TargetValue": 40.0,
            "ScaleOutCooldown": 30,
            "DisableScaleIn": True,
            "PredefinedMetricSpecification": {
                "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"
            },
        },
    )
