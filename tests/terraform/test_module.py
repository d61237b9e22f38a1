"""The module's files: what every variable carries, which names others rely on, what roles may do."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from planner.artifacts.plan import Plan
from planner.errors import FactFails
from planner.prices import PRICE_DATE, usd_per_h
from planner.tfvars import tfvars
from scripts import terraform_docs

from .blocks import clean, labelled, load, typed
from .conftest import MODULE, REPOSITORY

MODULES = sorted(path for path in (MODULE / "modules").iterdir() if path.is_dir())
FILES = sorted([*MODULE.glob("*.tf"), *MODULE.glob("modules/*/*.tf")])
FIXTURES = MODULE / "tests" / "fixtures"

# Read by scripts/, loadtest/ and the operator's own automation.
PROMISED_OUTPUTS = {
    "region", "endpoint_name", "variant_name", "endpoint_config_name", "instance_type", "image_digest", "bucket",
    "source_key", "model_data_uri", "repository_name", "repository_url", "image_project", "weights_project",
    "scaling_resource_id", "scaling_policy_names", "scale_in_alarm_name", "alarm_names",
}  # fmt: skip
SETTABLE = {
    "endpoint_name", "variant_name", "model_name", "instance_type", "image_digest", "initial_instance_count",
    "container_environment", "plan_json", "mount_model_data", "force_destroy",
}  # fmt: skip


def roots_and_modules() -> list[Path]:
    return [MODULE, *MODULES]


@pytest.mark.parametrize("folder", roots_and_modules(), ids=lambda path: path.name)
def test_every_variable_is_typed_and_described(folder: Path) -> None:
    for name, body in labelled(folder / "variables.tf", "variable").items():
        assert body.get("description"), name
        assert "type" in body, name
        order = [key for key in body if key in ("description", "type", "default", "nullable", "validation")]
        assert order == sorted(order, key=["description", "type", "default", "nullable", "validation"].index), name


@pytest.mark.parametrize("folder", roots_and_modules(), ids=lambda path: path.name)
def test_every_output_is_described(folder: Path) -> None:
    for name, body in labelled(folder / "outputs.tf", "output").items():
        assert body.get("description"), name


def test_every_validation_names_the_value_it_found() -> None:
    for name, body in labelled(MODULE / "variables.tf", "variable").items():
        for rule in body.get("validation", []):
            assert f"var.{name}" in rule["error_message"] or re.search(r"\bis set\b", rule["error_message"]), name


def test_every_validation_and_fault_has_a_refusal_in_the_tests() -> None:
    """As many refusals of a variable as it has rules, at least."""
    written = (MODULE / "tests" / "validations.tftest.hcl").read_text()
    for name, body in labelled(MODULE / "variables.tf", "variable").items():
        rules = len(body.get("validation", []))
        assert written.count(f"    var.{name},\n") >= rules, name


def test_promised_names_exist() -> None:
    assert set(labelled(MODULE / "outputs.tf", "output")) >= PROMISED_OUTPUTS
    assert set(labelled(MODULE / "variables.tf", "variable")) >= SETTABLE


def test_the_planner_sets_a_variable_that_exists(tmp_path: Path) -> None:
    file = tmp_path / "plan.auto.tfvars"
    file.write_text(tfvars(tmp_path / "plan.json"))
    assert set(load(file)) == {"plan_json"} <= set(labelled(MODULE / "variables.tf", "variable"))


@pytest.mark.parametrize(
    ("make_variable", "name"), [("ENDPOINT", "endpoint_name"), ("VARIANT", "variant_name"), ("MODEL", "model_name")]
)
def test_make_and_the_module_default_to_the_same_names(make_variable: str, name: str) -> None:
    makefile = (REPOSITORY / "Makefile").read_text()
    (given,) = re.findall(rf"^{make_variable}\s*\?=\s*(\S+)", makefile, re.MULTILINE)
    assert labelled(MODULE / "variables.tf", "variable")[name]["default"] == given


def test_documents_name_variables_that_exist() -> None:
    known = set(labelled(MODULE / "variables.tf", "variable"))
    documents = [REPOSITORY / "README.md", *(REPOSITORY / "docs").glob("*.md"), *MODULE.glob("examples/*/README.md")]
    named = {name for file in documents for name in re.findall(r"-var[ =]'?(\w+)=", file.read_text(encoding="utf-8"))}
    assert named
    assert named <= known


@pytest.mark.parametrize("name", ["minimal", "complete"])
def test_examples_set_only_variables_that_exist(name: str) -> None:
    known = set(labelled(MODULE / "variables.tf", "variable"))
    assert set(load(MODULE / "examples" / name / "terraform.tfvars")) <= known


def test_the_complete_example_sets_every_optional_feature() -> None:
    given = set(load(MODULE / "examples" / "complete" / "terraform.tfvars"))
    assert given >= {"kms_key_arn", "vpc_config", "inference_ami_version", "scheduled_actions", "alarm_topic_arns"}


@pytest.mark.parametrize(("name", "instance_type"), [("minimal", "ml.g5.xlarge"), ("complete", "ml.g5.2xlarge")])
def test_examples_quote_the_price_table(name: str, instance_type: str) -> None:
    text = (MODULE / "examples" / name / "README.md").read_text()
    assert f"{usd_per_h(instance_type):g}" in text
    assert PRICE_DATE in text


def test_documented_tables_are_current(tmp_path: Path) -> None:
    document = REPOSITORY / "docs" / "terraform.md"
    assert terraform_docs.main(["--check", "--docs", str(document), "--terraform-dir", str(MODULE)]) == 0
    stale = tmp_path / "terraform.md"
    stale.write_text(document.read_text().replace("| `region` |", "| `area` |"))
    with pytest.raises(FactFails):
        terraform_docs.main(["--check", "--docs", str(stale), "--terraform-dir", str(MODULE)])


################################################################################
# Order
################################################################################


def resources(module: str, type_: str) -> dict[str, Any]:
    """Bodies by name."""
    found = typed([MODULE / "modules" / module / "main.tf"], "resource")
    return {name: body for kind, name, body in found if kind == type_}


def test_a_new_target_takes_new_policies() -> None:
    """Deregistering a target deletes its policies at AWS."""
    policies = resources("autoscaling", "aws_appautoscaling_policy")
    assert set(policies) == {"scale_out", "scale_in"}
    for name, body in policies.items():
        assert body["lifecycle"][0].get("replace_triggered_by") == ["${aws_appautoscaling_target.this.arn}"], name


def test_a_model_waits_for_its_roles_permissions() -> None:
    """SageMaker reads image and weights with the role."""
    (model,) = resources("endpoint", "aws_sagemaker_model").values()
    assert "${aws_iam_role_policy.this}" in model.get("depends_on", [])


################################################################################
# Permissions
################################################################################

NO_RESOURCE_AT_AWS = {"ecr:GetAuthorizationToken", "cloudwatch:PutMetricData"}


def statements() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for type_, name, body in typed(FILES, "data"):
        if type_ == "aws_iam_policy_document":
            found += [(name, statement) for statement in body.get("statement", [])]
            for block in body.get("dynamic", []):
                found += [(name, content) for dynamic in block.values() for content in dynamic["content"]]
    return found


def names_star(resources: list[str] | str) -> bool:
    """Of a list, or of the text of an expression that makes one."""
    return '"*"' in resources if isinstance(resources, str) else "*" in resources


def test_there_are_statements_to_judge() -> None:
    assert len(statements()) >= 20


def test_star_stands_only_where_aws_has_no_resource() -> None:
    for name, statement in statements():
        if names_star(statement.get("resources", [])):
            actions = set(statement["actions"])
            assert actions <= NO_RESOURCE_AT_AWS or all(re.match("ec2:Describe", action) for action in actions), name


def test_actions_are_named() -> None:
    for name, statement in statements():
        if statement.get("effect") != "Deny":
            assert not [action for action in statement["actions"] if "*" in action], name


def test_no_managed_policy_is_attached() -> None:
    assert "FullAccess" not in "".join(file.read_text() for file in FILES)
    assert not [type_ for type_, _, _ in typed(FILES, "resource") if type_ == "aws_iam_role_policy_attachment"]


def test_metrics_are_limited_to_sagemakers_namespaces() -> None:
    (metrics,) = [statement for _, statement in statements() if "cloudwatch:PutMetricData" in statement["actions"]]
    assert metrics["condition"][0]["values"] == ["AWS/SageMaker", "/aws/sagemaker/Endpoints"]


################################################################################
# Versions, fixtures, format
################################################################################

REMOVED_IN_6 = (
    "aws_opsworks", "aws_simpledb", "aws_worklink", "aws_elastic_transcoder", "aws_redshift_service_account",
    "inference_accelerator", "aws_media_store",
)  # fmt: skip


def test_the_provider_has_a_floor_and_a_ceiling() -> None:
    block = load(MODULE / "versions.tf")["terraform"][0]
    assert clean(block["required_providers"][0]["aws"])["version"] == ">= 5.100.0, < 7.0.0"
    assert block["required_version"].startswith(">= 1.9")


def test_nothing_that_version_6_removed_or_renamed() -> None:
    text = "".join(file.read_text() for file in FILES)
    assert not [name for name in REMOVED_IN_6 if name in text]
    assert "aws_region.this.name" not in text, "renamed in 6.0; id is the same in both"


def test_no_backend_and_no_machine_path() -> None:
    text = "".join(file.read_text() for file in FILES)
    assert "backend" not in text
    assert "plugin-dir" not in text


def test_the_valid_fixture_is_a_plan() -> None:
    plan = Plan.load(FIXTURES / "valid.json")
    assert plan.feasible
    assert plan.derived.scaling_target_value == 37.5


def leaves(value: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {prefix: value}
    return {path: leaf for key, item in value.items() for path, leaf in leaves(item, f"{prefix}.{key}").items()}


NO_PLAN = {"empty", "empty-object", "malformed", "list"}
WHOLE_CASES = {"valid", "no-fingerprint", "q-max-one", "infeasible"}


@pytest.mark.parametrize(
    "file",
    [file for file in sorted(FIXTURES.glob("*.json")) if file.stem not in NO_PLAN | WHOLE_CASES],
    ids=lambda path: path.stem,
)
def test_a_fixture_differs_from_the_valid_plan_in_one_thing(file: Path) -> None:
    valid, other = leaves(json.loads((FIXTURES / "valid.json").read_text())), leaves(json.loads(file.read_text()))
    changed = {path for path in valid.keys() | other.keys() if valid.get(path) != other.get(path)}
    related = {"unconverted": 4, "max-below-min": 2, "cooldowns-swapped": 2}
    assert len(changed) == related.get(file.stem, 1), changed


@pytest.mark.parametrize("file", sorted(FIXTURES.glob("*.json")), ids=lambda path: path.stem)
def test_every_fixture_is_used(file: Path) -> None:
    tests = "".join(path.read_text() for path in (MODULE / "tests").glob("*.tftest.hcl"))
    assert f"fixtures/{file.name}" in tests


@pytest.mark.terraform
def test_formatted() -> None:
    if shutil.which("terraform") is None:
        pytest.skip("terraform is not installed")
    result = subprocess.run(
        ["terraform", "fmt", "-check", "-recursive", str(MODULE)], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout
