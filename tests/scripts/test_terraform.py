"""The Terraform driver with a stand-in binary: arguments, workspace, interrupts, last words."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from planner.errors import AwsError, UsageError
from scripts import deploy, terraform
from scripts.deployment import names, settings

ROOT = Path(__file__).parents[2]
BINARY = """#!{python}
import json, os, signal, sys, time
home = os.environ["FAKE_HOME"]
with open(home + "/calls", "a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\\n")
verb = sys.argv[2]
if verb == "workspace" and sys.argv[3] == "show":
    print("default")
if verb == "output":
    print(json.dumps({{"bucket": {{"value": "b"}}}}))
if verb == "state":
    print(open(home + "/state").read())
if verb == "show":
    print(open(home + "/planned").read())
if verb == "apply" and os.path.exists(home + "/fail"):
    print("noise\\n╷\\n│ Error: creating the thing\\n│\\n│ because of that\\n╵")
    sys.exit(1)
if verb == "apply" and os.path.exists(home + "/refuse"):
    print("│ Error: Invalid value for variable\\n│\\n│ image_digest is \\"x\\"\\n╵")
    sys.exit(1)
if verb == "apply" and os.path.exists(home + "/slow"):
    seen = []
    signal.signal(signal.SIGINT, lambda n, f: seen.append("SIGINT"))
    signal.signal(signal.SIGTERM, lambda n, f: seen.append("SIGTERM"))
    print("applying", flush=True)
    open(home + "/applying", "w").close()
    while not seen:
        time.sleep(0.01)
    time.sleep(0.1)
    open(home + "/signals", "w").write(",".join(seen))
    sys.exit(1)
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    binary = tmp_path / "bin/terraform"
    binary.parent.mkdir()
    binary.write_text(BINARY.format(python=sys.executable))
    binary.chmod(0o755)
    (tmp_path / "tf").mkdir()
    (tmp_path / "tf/main.tf").touch()
    monkeypatch.setenv("PATH", f"{binary.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("FAKE_HOME", str(tmp_path))
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    return tmp_path


def calls(home: Path) -> list[list[str]]:
    return [json.loads(line)[1:] for line in (home / "calls").read_text().splitlines()]


def test_a_mirror_is_passed_to_init(home, monkeypatch):
    mirror = home / "mirror"
    (mirror / "registry.terraform.io/hashicorp/aws").mkdir(parents=True)
    monkeypatch.setenv("TF_PLUGIN_MIRROR", str(mirror))
    terraform.find(home / "tf").init()
    assert calls(home) == [["init", "-input=false", "-no-color", f"-plugin-dir={mirror}"]]


def test_the_account_uses_the_default_workspace_a_rehearsal_its_own(home, monkeypatch):
    tool = terraform.find(home / "tf")
    tool.select_workspace()
    assert [call[:2] for call in calls(home)] == [["workspace", "show"]]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:4566")
    tool.select_workspace()
    assert calls(home)[-1] == ["workspace", "select", "-or-create", "at-127-0-0-1-4566"]


def test_variables_go_through_a_file_that_is_gone_afterwards(home):
    terraform.find(home / "tf").apply({"image_digest": None}, "-target=module.x")
    (call,) = calls(home)
    assert call[:4] == ["apply", "-input=false", "-auto-approve", "-target=module.x"]
    (file,) = [part.removeprefix("-var-file=") for part in call if part.startswith("-var-file=")]
    assert not Path(file).exists()


def test_a_failure_carries_terraforms_own_words(home):
    (home / "fail").touch()
    with pytest.raises(AwsError, match="Error: creating the thing because of that"):
        terraform.find(home / "tf").apply({})


def test_a_refused_value_is_the_users_error(home):
    (home / "refuse").touch()
    with pytest.raises(UsageError, match='Invalid value for variable image_digest is "x"'):
        terraform.find(home / "tf").apply({})


def test_deploy_forgets_values_that_terraform_refused(home, monkeypatch):
    (home / "refuse").touch()
    monkeypatch.setattr(deploy.preflight, "require", lambda _: None)
    monkeypatch.setattr(deploy.preflight, "slot", lambda *_: None)
    settings.save(home / "tf", {"image_digest": "good"})
    with pytest.raises(UsageError):
        deploy._endpoint(terraform.find(home / "tf"), argparse.Namespace(endpoint="e"), {"image_digest": "x"}, None)
    assert settings.load(home / "tf") == {"image_digest": "good"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupt_reaches_terraform_once_as_sigint_and_is_waited_for(home, number):
    (home / "slow").touch()
    command = [sys.executable, "-m", "scripts.terraform", "apply"]
    code = (
        "import sys; from pathlib import Path; from scripts import terraform; from planner.errors import exit_status;"
        f"sys.exit(exit_status(lambda: terraform.find(Path({str(home / 'tf')!r})).apply({{}})))"
    )
    process = subprocess.Popen([command[0], "-c", code], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 20
    while not (home / "applying").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(number)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert (home / "signals").read_text() == "SIGINT"


def test_the_state_lists_addresses_and_taints(home):
    state = {
        "resources": [
            {"mode": "data", "type": "d", "name": "x", "instances": [{}]},
            {
                "mode": "managed",
                "module": "module.endpoint[0]",
                "type": "aws_sagemaker_endpoint",
                "name": "this",
                "instances": [{"status": "tainted"}],
            },
            {"mode": "managed", "type": "t", "name": "n", "instances": [{"index_key": "k"}]},
        ]
    }
    (home / "state").write_text(json.dumps(state))
    assert terraform.find(home / "tf").resources() == {
        "module.endpoint[0].aws_sagemaker_endpoint.this": True,
        't.n["k"]': False,
    }


def model(name: str, **more: str) -> dict[str, object]:
    return {"attributes": {"name": name}, **more}


@pytest.mark.parametrize(
    ("planned", "salted"),
    [("e-old", True), ("e-new", False), ("e-newest", False)],
    ids=["back to what was rolled back from", "the refused one again", "forward"],
)
def test_names_that_a_rolled_back_update_left_taken_are_not_created_again(home, capsys, planned, salted):
    state = {"resources": [{"mode": "managed", "instances": [model("e-new"), model("e-old", deposed="1f")]}]}
    (home / "state").write_text(json.dumps(state))
    outputs = {"sagemaker_model_name": {"value": planned}, "endpoint_config_name": {}}
    (home / "planned").write_text(json.dumps({"planned_values": {"outputs": outputs}}))
    chosen = {"image_digest": "x", "name_salt": "before"}
    found = names.with_free_names(terraform.find(home / "tf"), chosen)
    assert (found["name_salt"] != "before") is salted
    assert {key: value for key, value in found.items() if key != "name_salt"} == {"image_digest": "x"}
    assert ("e-old left by an update" in capsys.readouterr().err) is salted


def test_without_a_rolled_back_update_nothing_is_planned(home):
    (home / "state").write_text(json.dumps({"resources": [{"mode": "managed", "instances": [model("e-old")]}]}))
    assert names.with_free_names(terraform.find(home / "tf"), {"a": 1}) == {"a": 1}
    assert [call[0] for call in calls(home)] == ["state"]


def test_outputs(home):
    assert terraform.find(home / "tf").outputs() == {"bucket": "b"}


def test_without_terraform_it_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="not installed"):
        terraform.find()


def test_without_a_root_module_it_says_so(home):
    with pytest.raises(UsageError, match=r"main\.tf does not exist"):
        terraform.find(home)
