"""Run Terraform for the root module: finds the binary and a provider mirror, keeps one state for each AWS address.

    python -m scripts.terraform test        # init, then `terraform test`
    python -m scripts.terraform output

A rehearsal's state must never meet the real account's: with AWS_ENDPOINT_URL set, a workspace named after it is used.
An interrupt is passed to Terraform once, as SIGINT, and waited for: SIGTERM during apply would lose the state.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any
from urllib.parse import urlparse

from planner.errors import AwsError, Interrupted, UsageError, exit_status
from scripts.aws.clients import aws_endpoint_url
from scripts.deployment import mirror
from scripts.guard.intent import TERRAFORM_DIR

_TAIL_LINES = 25


@dataclass(frozen=True)
class Terraform:
    """One root module."""

    binary: str
    directory: Path

    def init(self, *, backend: bool = True) -> None:
        """Providers and modules; offline when a mirror is found."""
        found = mirror.find(os.environ, Path.home(), self.directory)
        arguments = ["init", "-input=false", "-no-color"]
        if found is not None:
            arguments.append(f"-plugin-dir={found}")
        if not backend:
            arguments.append("-backend=false")
        result = self._captured(arguments)
        if result.returncode:
            raise UsageError(
                f"terraform init failed: {_last_words(result.stderr or result.stdout)}",
                "offline? set TF_PLUGIN_MIRROR to a provider mirror directory",
            )

    def select_workspace(self) -> None:
        """The default workspace for AWS itself, another for each AWS_ENDPOINT_URL."""
        wanted = workspace()
        if self._captured(["workspace", "show"]).stdout.strip() != wanted:
            result = self._captured(["workspace", "select", "-or-create", wanted])
            if result.returncode:
                raise UsageError(f"terraform workspace {wanted}: {_last_words(result.stderr)}", "check the backend")

    def plan(self, variables: dict[str, Any]) -> None:
        """Show what apply would do."""
        self._streamed("plan", ["plan", "-input=false"], variables)

    def apply(self, variables: dict[str, Any], *more: str) -> None:
        """Apply without asking; the variables win over every tfvars file."""
        self._streamed("apply", ["apply", "-input=false", "-auto-approve", *more], variables)

    def destroy(self, variables: dict[str, Any]) -> None:
        """Destroy everything in the state."""
        self._streamed("destroy", ["destroy", "-input=false", "-auto-approve"], variables)

    def untaint(self, address: str) -> None:
        """Tell Terraform that a resource is well."""
        self._captured(["untaint", address])

    def outputs(self) -> dict[str, Any]:
        """The root module's outputs; empty before the first apply."""
        result = self._captured(["output", "-json"])
        if result.returncode:
            raise UsageError(f"terraform output failed: {_last_words(result.stderr)}", "make deploy")
        return {name: item["value"] for name, item in json.loads(result.stdout or "{}").items()}

    def peek_outputs(self) -> dict[str, Any] | None:
        """The outputs without touching anything, workspace selection included; None when they cannot be read."""
        result = self._captured(["output", "-json"], TF_WORKSPACE=workspace())
        if result.returncode:
            return None
        return {name: item["value"] for name, item in json.loads(result.stdout or "{}").items()}

    def resources(self) -> dict[str, bool]:
        """Managed resources in the state by address; the value says whether it is tainted."""
        return dict(_addresses(self._state()))

    def deposed_names(self) -> set[str]:
        """Names of what a replacement that did not finish has left to be deleted."""
        return {
            str(instance["attributes"]["name"])
            for resource in self._state().get("resources", [])
            for instance in resource["instances"]
            if "deposed" in instance and "name" in instance["attributes"]
        }

    def planned_outputs(self, variables: dict[str, Any]) -> dict[str, Any]:
        """The outputs after an apply, as far as a plan knows them; empty when it is refused, as apply will be."""
        with tempfile.TemporaryDirectory() as folder:
            file, plan = Path(folder) / "given.tfvars.json", Path(folder) / "plan"
            file.write_text(json.dumps(variables), encoding="utf-8")
            arguments = ["plan", "-input=false", "-no-color", "-lock=false", f"-var-file={file}", f"-out={plan}"]
            if self._captured(arguments).returncode:
                return {}
            planned = json.loads(self._captured(["show", "-json", str(plan)]).stdout)["planned_values"]
        return {name: item["value"] for name, item in planned.get("outputs", {}).items() if "value" in item}

    def passthrough(self, arguments: Sequence[str]) -> int:
        """Any other Terraform command, its output as it is."""
        return self._supervise([self.binary, f"-chdir={self.directory}", *arguments], None)

    def _state(self) -> dict[str, Any]:
        result = self._captured(["state", "pull"])
        return dict(json.loads(result.stdout)) if not result.returncode and result.stdout.strip() else {}

    def _captured(self, arguments: Sequence[str], **more: str) -> subprocess.CompletedProcess[str]:
        command = [self.binary, f"-chdir={self.directory}", *arguments]
        return subprocess.run(command, env=_environment() | more, capture_output=True, text=True, check=False)

    def _streamed(self, what: str, arguments: Sequence[str], variables: dict[str, Any]) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".tfvars.json", encoding="utf-8") as file:
            json.dump(variables, file)
            file.flush()
            colour = [] if sys.stderr.isatty() else ["-no-color"]
            command = [self.binary, f"-chdir={self.directory}", *arguments, *colour, f"-var-file={file.name}"]
            tail: list[str] = []
            status = self._supervise(command, tail)
        if status and any("Invalid value for variable" in line for line in tail):
            raise UsageError(f"terraform {what}: {_last_words(''.join(tail))}", "give another value, run again")
        if status:
            raise AwsError(f"terraform {what} failed: {_last_words(''.join(tail))}", "read the output above, run again")

    def _supervise(self, command: Sequence[str], tail: list[str] | None) -> int:
        """Own session, so that a terminal's Ctrl-C does not reach Terraform twice."""
        piped = subprocess.PIPE if tail is not None else None
        process = subprocess.Popen(
            command, env=_environment(), stdout=piped, stderr=subprocess.STDOUT if piped else None,
            text=True, start_new_session=True,
        )  # fmt: skip
        caught: list[int] = []

        def forward(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
            if not caught:
                print("stopping terraform: it finishes what it has begun and keeps its state", file=sys.stderr)
                process.send_signal(signal.SIGINT)
            caught.append(number)

        previous = {number: signal.signal(number, forward) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
        try:
            if tail is not None and process.stdout is not None:
                for line in process.stdout:
                    sys.stderr.write(line)
                    tail[:] = [*tail, line][-_TAIL_LINES:]
            status = process.wait()
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
        if caught:
            raise Interrupted("terraform was interrupted; its state is saved", "run the same command again to go on")
        return status


def find(directory: Path = TERRAFORM_DIR) -> Terraform:
    """The installed binary and the root module; says what is missing."""
    binary = shutil.which("terraform")
    if binary is None:
        raise UsageError(
            "terraform is not installed", "https://developer.hashicorp.com/terraform/install (1.9 or later)"
        )
    if not (directory / "main.tf").exists():
        raise UsageError(f"{directory}/main.tf does not exist", "run from the repository's root, or --terraform-dir")
    return Terraform(binary, directory)


def peek_outputs(directory: Path) -> dict[str, Any] | None:
    """Outputs of an initialised root module; None without Terraform, without init, or when they cannot be read."""
    if shutil.which("terraform") is None or not (directory / ".terraform").is_dir():
        return None
    return find(directory).peek_outputs()


def ready(directory: Path = TERRAFORM_DIR) -> Terraform:
    """Found, initialised, on the right state."""
    terraform = find(directory)
    terraform.init()
    terraform.select_workspace()
    return terraform


def workspace() -> str:
    """``default``, or a name made of AWS_ENDPOINT_URL's host and port."""
    url = aws_endpoint_url()
    return "default" if url is None else f"at-{urlparse(url).netloc.replace(':', '-').replace('.', '-')}"


def _environment() -> dict[str, str]:
    found = dict(os.environ)
    found.setdefault("CHECKPOINT_DISABLE", "1")
    found.setdefault("TF_IN_AUTOMATION", "1")
    if aws_endpoint_url() is not None:
        found.setdefault("AWS_MAX_ATTEMPTS", "3")
    return found


def _addresses(state: dict[str, Any]) -> list[tuple[str, bool]]:
    found = []
    for resource in state.get("resources", []):
        if resource["mode"] != "managed":
            continue
        for instance in resource["instances"]:
            parts = [resource.get("module", ""), f"{resource['type']}.{resource['name']}"]
            key = instance.get("index_key")
            suffix = "" if key is None else f"[{json.dumps(key)}]"
            found.append((".".join(part for part in parts if part) + suffix, instance.get("status") == "tainted"))
    return found


def _last_words(text: str) -> str:
    """Terraform's own error line, without its frame."""
    lines = [line.strip(" │╷╵\n") for line in text.splitlines()]
    lines = [line for line in lines if line]
    starts = [index for index, line in enumerate(lines) if line.startswith("Error:")]
    return " ".join(lines[starts[-1] : starts[-1] + 6] if starts else lines[-3:]) or "no output"


def main(argv: Sequence[str] | None = None) -> int:
    """Pass a command through, after init."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments:
        raise UsageError("no terraform command given", "python -m scripts.terraform plan")
    terraform = find()
    if arguments[0] == "test":
        terraform.init(backend=False)
        return terraform.passthrough(arguments)
    terraform.init()
    terraform.select_workspace()
    return terraform.passthrough(arguments)


if __name__ == "__main__":
    sys.exit(exit_status(main))
