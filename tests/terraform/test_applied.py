"""The module's own tests, and the module applied, replanned and destroyed in the rehearsal.

The provider alone waits 55 s for the bucket's lifecycle rules, so the foundation is applied while the module's own
tests run.
"""

from __future__ import annotations

import concurrent.futures
import io
import itertools
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest

from scripts.deployment.names import with_free_names
from scripts.terraform import find

from .conftest import MODULE, REPOSITORY, Workdir, one_provider, said
from .iam_calls import of_provider_log, refused

pytestmark = [pytest.mark.terraform, pytest.mark.e2e, pytest.mark.timeout(400)]

ENDPOINT = "tf-applied"
ENVIRONMENT = {"ENGINE": "replay", "REPLAY_STAGES_S": "framework_init=0.01,weights_ready=0.01,warmup_done=0.01"}
FOUNDATION = {
    "project_name": "applied",
    "endpoint_name": ENDPOINT,
    "container_environment": ENVIRONMENT,
    "force_destroy": True,
}
UNCHANGED = 0


@dataclass
class Account:
    """The rehearsal, one applied module and what a test left for the next."""

    workdir: Workdir
    rehearsal: Callable[..., str]
    variables: dict[str, Any]
    foundation: concurrent.futures.Future[subprocess.CompletedProcess[str]] = field(
        default_factory=concurrent.futures.Future
    )
    foundation_s: float = 0.0

    def client(self, service: str) -> Any:
        env = self.workdir.environment
        return boto3.client(
            service, endpoint_url=env["AWS_ENDPOINT_URL"], region_name=env["AWS_REGION"],
            aws_access_key_id=env["AWS_ACCESS_KEY_ID"], aws_secret_access_key=env["AWS_SECRET_ACCESS_KEY"],
        )  # fmt: skip

    def run(self, command: str, *more: str, **variables: Any) -> subprocess.CompletedProcess[str]:
        file = self.workdir.path.parent / "given.tfvars.json"
        file.write_text(json.dumps(self.variables | variables))
        return self.workdir(command, "-input=false", "-no-color", f"-var-file={file}", *more)

    def apply(self, **variables: Any) -> None:
        result = self.run("apply", "-auto-approve", **variables)
        assert result.returncode == 0, said(result)[-3000:]
        self.variables |= variables

    def apply_foundation(self) -> subprocess.CompletedProcess[str]:
        started = time.monotonic()
        result = self.run("apply", "-auto-approve")
        self.foundation_s = time.monotonic() - started
        return result

    def plan(self, **variables: Any) -> subprocess.CompletedProcess[str]:
        return self.run("plan", "-detailed-exitcode", **variables)

    def refusal(self, **variables: Any) -> str:
        """The error of a plan that must not pass, on one line."""
        result = self.plan(**variables)
        assert result.returncode == 1, said(result)[-3000:]
        return said(result)

    def outputs(self) -> dict[str, Any]:
        answer = json.loads(self.workdir("output", "-json").stdout)
        return {name: item["value"] for name, item in answer.items()}

    def variant(self) -> dict[str, Any]:
        described = self.client("sagemaker").describe_endpoint(EndpointName=ENDPOINT)
        return dict(described["ProductionVariants"][0], config=described["EndpointConfigName"])


@pytest.fixture(scope="module")
def account(make_workdir: Callable[..., Workdir], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    state = {**os.environ, "HEADROOM_REHEARSAL_DIR": str(tmp_path_factory.mktemp("rehearsal"))}

    def rehearsal(*arguments: str) -> str:
        command = [sys.executable, "-m", "rehearsal", *arguments]
        return subprocess.run(command, env=state, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout

    rehearsal("up", "--time-scale", "20")
    try:
        pairs = re.findall(r"^export (\w+)=(\S+)$", rehearsal("env"), re.MULTILINE)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            log = str(tmp_path_factory.mktemp("provider-log") / "provider.log")
            environment = dict(pairs) | {"TF_LOG_PROVIDER": "DEBUG", "TF_LOG_PATH": log}
            found = Account(make_workdir("applied", **environment), rehearsal, dict(FOUNDATION))
            found.foundation = pool.submit(found.apply_foundation)
            yield found
    finally:
        rehearsal("down")


@pytest.fixture(scope="module")
def own_tests(make_workdir: Callable[..., Workdir]) -> Iterator[Workdir]:
    with one_provider(make_workdir("own-tests")) as workdir:
        yield workdir


@pytest.mark.usefixtures("account")
def test_the_modules_own_tests_pass(own_tests: Workdir) -> None:
    """Two processes, about as long each; every file of the folder."""
    files = sorted(path.name for path in (MODULE / "tests").glob("*.tftest.hcl"))
    first = {"names.tftest.hcl", "gates.tftest.hcl", "plan_gate.tftest.hcl"}
    halves = [[name for name in files if (name in first) is half] for half in (True, False)]

    def tested(names: list[str]) -> subprocess.CompletedProcess[str]:
        return own_tests("test", "-no-color", *(f"-filter=tests/{name}" for name in names), timeout_s=300)

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(tested, halves))
    for result in results:
        assert result.returncode == 0, said(result)[-3000:]
    runs = sum((MODULE / "tests" / name).read_text().count("\nrun ") for name in files)
    passed = [int(re.findall(r"(\d+) passed, 0 failed", result.stdout)[0]) for result in results]
    assert sum(passed) == runs


@pytest.mark.parametrize("name", ["minimal", "complete"])
def test_examples_plan(own_tests: Workdir, name: str) -> None:
    values = f"-var-file=examples/{name}/terraform.tfvars"
    result = own_tests("test", "-no-color", "-filter=tests/examples.tftest.hcl", values)
    assert result.returncode == 0, said(result)[-3000:]
    assert "1 passed, 0 failed" in result.stdout


def test_the_planners_own_files_pass_the_gate(own_tests: Workdir, tmp_path: Path) -> None:
    """The published measurements are of the image, type and environment that this run deploys."""
    article = REPOSITORY / "examples" / "article"
    command = [
        sys.executable, "-m", "planner", "plan", "--qmax", str(article / "qmax.json"),
        "--ttotal", str(article / "ttotal.json"), "--peak-rps", "100", "--trough-rps", "10", "--out", str(tmp_path),
    ]  # fmt: skip
    subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=True)
    result = own_tests(
        "test", "-no-color", "-filter=tests/examples.tftest.hcl", f"-var-file={tmp_path / 'plan.auto.tfvars'}"
    )
    assert "1 passed, 0 failed" in result.stdout, said(result)[-3000:]


def test_foundation_first(account: Account) -> None:
    result = account.foundation.result()
    assert result.returncode == 0, said(result)[-3000:]
    assert account.client("sagemaker").list_endpoints()["Endpoints"] == []


def upload(account: Account, sources: dict[str, str]) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        for path, text in sources.items():
            made.writestr(path, text)
    outputs = account.outputs()
    account.client("s3").put_object(Bucket=outputs["bucket"], Key=outputs["source_key"], Body=archive.getvalue())


def built(account: Account, project: str, **variables: str) -> dict[str, str]:
    codebuild = account.client("codebuild")
    overrides = [{"name": name, "value": value, "type": "PLAINTEXT"} for name, value in variables.items()]
    build = codebuild.start_build(projectName=project, environmentVariablesOverride=overrides)["build"]
    limit = time.monotonic() + 60
    while build["buildStatus"] == "IN_PROGRESS" and time.monotonic() < limit:
        time.sleep(0.1)
        build = codebuild.batch_get_builds(ids=[build["id"]])["builds"][0]
    assert build["buildStatus"] == "SUCCEEDED", build
    return {item["name"]: item["value"] for item in build.get("exportedEnvironmentVariables", [])}


def test_a_missing_image_and_missing_weights_are_refused_by_the_plan(account: Account) -> None:
    refusal = account.refusal(image_digest="sha256:" + "0" * 64)
    assert "couldn't find resource" in refusal
    assert "data.aws_ecr_image.image_digest_in_repository" in refusal
    assert f"There is no SHA256SUMS under {account.outputs()['model_data_uri']}" in refusal


def test_the_endpoint(account: Account) -> None:
    outputs = account.outputs()
    upload(account, {"container/Dockerfile": "FROM scratch"})
    digest = built(account, outputs["image_project"], IMAGE_TAG="first")["IMAGE_DIGEST"]
    built(account, outputs["weights_project"])
    started = time.monotonic()
    account.apply(image_digest=digest)
    print(f"everything applied in {account.foundation_s + time.monotonic() - started:.0f} s")
    assert account.variant()["config"] == account.outputs()["endpoint_config_name"]
    assert account.plan().returncode == UNCHANGED, "the second plan is empty"


def test_an_update_that_was_rolled_back_fails_the_apply(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    before = account.variant()["config"]
    account.rehearsal("fault", "rollback", "reason=the ping health check failed")
    result = account.run("apply", "-auto-approve", container_environment={**ENVIRONMENT, "SCHEDULER": "fifo"})
    account.rehearsal("fault", "rollback", "--clear")
    assert result.returncode == 1
    assert f"SageMaker runs {before}, intended was" in said(result)
    assert account.variant()["config"] == before
    for name, value in account.workdir.environment.items():
        monkeypatch.setenv(name, value)
    account.apply(**with_free_names(find(account.workdir.path), account.variables))
    assert account.variant()["config"] not in (before, "")
    remaining = account.client("sagemaker").list_models()["Models"]
    assert [model["ModelName"] for model in remaining] == [account.outputs()["sagemaker_model_name"]]


def test_roles_name_their_resources(account: Account) -> None:
    iam = account.client("iam")
    roles = [role["RoleName"] for role in iam.list_roles()["Roles"]]
    assert sorted(roles) == ["applied-image-build", "applied-weights-build", f"{ENDPOINT}-endpoint"]
    for role in roles:
        assert iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"] == []
        (name,) = iam.list_role_policies(RoleName=role)["PolicyNames"]
        document = iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"]
        for statement in document["Statement"]:
            if statement["Resource"] == "*":
                assert statement["Action"] in ("ecr:GetAuthorizationToken", "cloudwatch:PutMetricData")


def planned(account: Account, name: str, **derived: Any) -> str:
    """The valid fixture for what is deployed."""
    document = json.loads((MODULE / "tests" / "fixtures" / "valid.json").read_text())
    document["fingerprint"] |= {
        "image_digest": account.variables["image_digest"],
        "container_env": ENVIRONMENT,
        "model_data_url": account.outputs()["model_data_uri"],
    }
    document["derived"] |= derived
    path = account.workdir.path.parent / f"{name}.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_a_plan_for_something_else_is_refused_with_every_fault(account: Account) -> None:
    plan = str(MODULE / "tests" / "fixtures" / "valid.json")
    refusal = account.refusal(plan_json=plan, instance_type="ml.g5.2xlarge")
    assert "measured on instance_type ml.g5.xlarge, this deploys ml.g5.2xlarge" in refusal
    assert f"this deploys {account.variables['image_digest']}" in refusal
    assert 'measured with ENGINE unset, container_environment has "replay"' in refusal


def test_a_plan_creates_autoscaling(account: Account) -> None:
    account.apply(plan_json=planned(account, "plan"))
    scaling = account.client("application-autoscaling")
    resource = f"endpoint/{ENDPOINT}/variant/primary"
    (target,) = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    assert (target["ResourceId"], target["MinCapacity"], target["MaxCapacity"]) == (resource, 1, 9)
    found = scaling.describe_scaling_policies(ServiceNamespace="sagemaker")["ScalingPolicies"]
    policies = {policy["PolicyName"]: policy for policy in found}
    assert set(policies) == {f"{ENDPOINT}-scale-out", f"{ENDPOINT}-scale-in"}
    (alarm,) = account.client("cloudwatch").describe_alarms(AlarmNames=[f"{ENDPOINT}-scale-in"])["MetricAlarms"]
    assert alarm["AlarmActions"] == [policies[f"{ENDPOINT}-scale-in"]["PolicyARN"]]
    assert alarm["TreatMissingData"] == "breaching"
    config = account.client("sagemaker").describe_endpoint_config(EndpointConfigName=account.variant()["config"])
    model = account.client("sagemaker").describe_model(ModelName=config["ProductionVariants"][0]["ModelName"])
    assert model["PrimaryContainer"]["Environment"] == ENVIRONMENT | {"MAX_QUEUE_DEPTH": "50"}


def test_a_scaled_fleet_is_no_difference(account: Account) -> None:
    sagemaker = account.client("sagemaker")
    sagemaker.update_endpoint_weights_and_capacities(
        EndpointName=ENDPOINT,
        DesiredWeightsAndCapacities=[{"VariantName": "primary", "DesiredInstanceCount": 2}],
    )
    in_service(account)
    assert account.variant()["CurrentInstanceCount"] == 2
    assert account.plan(initial_instance_count=2).returncode == UNCHANGED


def in_service(account: Account) -> None:
    limit = time.monotonic() + 60
    while account.client("sagemaker").describe_endpoint(EndpointName=ENDPOINT)["EndpointStatus"] != "InService":
        assert time.monotonic() < limit
        time.sleep(0.1)


def policy_arns(account: Account) -> list[str]:
    found = account.client("application-autoscaling").describe_scaling_policies(ServiceNamespace="sagemaker")
    return sorted(policy["PolicyARN"] for policy in found["ScalingPolicies"])


def test_an_update_keeps_the_live_count_it_is_given(account: Account) -> None:
    before, policies = account.variant()["config"], policy_arns(account)
    plan = planned(account, "replanned", queue_max_depth=48, max_instances=7)
    shown = said(account.plan(plan_json=plan, initial_instance_count=2))
    assert '+/- resource "aws_sagemaker_endpoint_configuration" "this"' in shown, "create replacement and then destroy"
    assert "aws_sagemaker_endpoint.this will be updated in-place" in shown
    account.apply(plan_json=plan, initial_instance_count=2)
    after = account.variant()
    assert after["config"] != before
    assert (after["DesiredInstanceCount"], after["CurrentInstanceCount"]) == (2, 2)
    remaining = account.client("sagemaker").list_endpoint_configs()["EndpointConfigs"]
    assert [config["EndpointConfigName"] for config in remaining] == [after["config"]]
    assert policy_arns(account) == policies
    assert account.plan().returncode == UNCHANGED


def test_another_image_is_refused_until_it_is_measured(account: Account) -> None:
    upload(account, {"container/Dockerfile": "FROM scratch", "container/more.py": ""})
    digest = built(account, account.outputs()["image_project"], IMAGE_TAG="second")["IMAGE_DIGEST"]
    assert digest != account.variables["image_digest"]
    refusal = account.refusal(image_digest=digest)
    assert f"measured on image_digest {account.variables['image_digest']}, this deploys {digest}" in refusal


def test_destroy_needs_no_plan_file_and_leaves_nothing(account: Account) -> None:
    Path(account.variables["plan_json"]).unlink()
    assert "cannot be read" in account.refusal()
    result = account.run("destroy", "-auto-approve")
    assert result.returncode == 0, said(result)[-3000:]
    assert account.workdir("state", "list").stdout.strip() == ""
    assert left(account) == []


def test_the_operator_policy_allows_every_call(account: Account) -> None:
    found = of_provider_log(Path(account.workdir.environment["TF_LOG_PATH"]).read_text(encoding="utf-8"))
    assert {"sagemaker:UpdateEndpoint", "application-autoscaling:DeregisterScalableTarget"} <= found
    assert refused(found) == []


def test_destroy_takes_policies_then_target_then_endpoint(account: Account) -> None:
    log = Path(account.workdir.environment["TF_LOG_PATH"]).read_text(encoding="utf-8")
    calls = re.findall(r"rpc\.method=(Delete(?:ScalingPolicy|Endpoint)|DeregisterScalableTarget)\b", log)
    order = [call for call, _ in itertools.groupby(calls)]
    assert order == ["DeleteScalingPolicy", "DeregisterScalableTarget", "DeleteEndpoint"]


def left(account: Account) -> list[str]:
    """Names of whatever still exists."""
    sagemaker, logs = account.client("sagemaker"), account.client("logs")
    scaling, cloudwatch = account.client("application-autoscaling"), account.client("cloudwatch")
    targets = scaling.describe_scalable_targets(ServiceNamespace="sagemaker")["ScalableTargets"]
    return [
        *(item["EndpointName"] for item in sagemaker.list_endpoints()["Endpoints"]),
        *(item["EndpointConfigName"] for item in sagemaker.list_endpoint_configs()["EndpointConfigs"]),
        *(item["ModelName"] for item in sagemaker.list_models()["Models"]),
        *(item["ResourceId"] for item in targets),
        *(item["AlarmName"] for item in cloudwatch.describe_alarms()["MetricAlarms"]),
        *(item["DashboardName"] for item in cloudwatch.list_dashboards()["DashboardEntries"]),
        *(item["Name"] for item in account.client("s3").list_buckets()["Buckets"]),
        *(item["repositoryName"] for item in account.client("ecr").describe_repositories()["repositories"]),
        *account.client("codebuild").list_projects()["projects"],
        *(item["RoleName"] for item in account.client("iam").list_roles()["Roles"]),
        *(item["logGroupName"] for item in logs.describe_log_groups()["logGroups"]),
    ]
