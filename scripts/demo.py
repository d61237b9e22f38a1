"""Run the whole chain on this machine, without an AWS account, and leave a report (`make demo`)."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner.artifacts.base import require_writable, write_atomically
from planner.errors import ExitCode, HeadroomError, Interrupted, UsageError, exit_status
from scripts.demonstration.steps import Step, Target, python, seeded, with_terraform
from scripts.demonstration.summary import sentence

STATE = "demo.json"
MARKER = ".headroom-demo"
"""Only a folder with this file in it is ever emptied."""
LOG_TAIL_LINES = 15


class StepFailed(HeadroomError):
    """A command of the chain failed; the demo ends with that command's exit code."""

    def __init__(self, step: Step, code: int, log: Path) -> None:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:])
        super().__init__(f"step {step.name} ended with {code}\n{tail}", f"the whole output is in {log}")
        self.exit_code = ExitCode(code) if code in set(ExitCode) else ExitCode.BUG


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parse(argv)
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.default_int_handler)
    target = Target(arguments.endpoint, arguments.variant, arguments.model, arguments.out.resolve())
    os.environ["HEADROOM_REHEARSAL_DIR"] = str(target.rehearsal_dir)
    if arguments.discard:
        _take_down(target)
        return ExitCode.DONE
    terraform = shutil.which("terraform") is not None
    if not terraform:
        print("terraform is not installed (https://developer.hashicorp.com/terraform/install): without the gated part")
    steps = with_terraform(target) if terraform else seeded(target)
    done = _prepare(target, terraform)
    started = time.monotonic()
    for number, step in enumerate(steps, 1):
        if step.name not in done:
            _run(step, target, f"[{number}/{len(steps)}]")
            done.append(step.name)
            _remember(target, done)
    print(f"\n{sentence(target.artifacts, target.model)}")
    print(f"report: {target.out / f'report-{target.model}.html'}  ({(time.monotonic() - started) / 60:.0f} min)")
    _take_down(target)
    return ExitCode.DONE


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m scripts.demo", description=__doc__, allow_abbrev=False)
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--variant", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", type=Path, default=Path("artifacts/demo"), help="everything the demo writes")
    parser.add_argument("--discard", action="store_true", help="take down what an interrupted demo left running")
    return parser.parse_args(argv)


def _prepare(target: Target, terraform: bool) -> list[str]:
    """Steps an interrupted demo already did; a clean start when its rehearsal is gone."""
    state = _state(target)
    if state and state["terraform"] == terraform and _rehearsal_url() == state["url"]:
        print(f"going on after {state['done'][-1]}")
        return list(state["done"])
    require_writable(target.out)
    if any(target.out.iterdir()) and not (target.out / MARKER).exists():
        raise UsageError(f"{target.out} holds something else than a demo", "choose another --out")
    _take_down(target)
    shutil.rmtree(target.out, ignore_errors=True)
    (target.out / "logs").mkdir(parents=True)
    (target.out / MARKER).touch()
    if terraform:
        ignore = shutil.ignore_patterns(".terraform*", "*.tfstate*", "*.auto.tfvars*", "tests", "examples")
        shutil.copytree("terraform", target.terraform_dir, ignore=ignore)
    _remember(target, [], terraform)
    return []


def _state(target: Target) -> dict[str, Any] | None:
    try:
        state = json.loads((target.out / STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return dict(state) if state.get("done") else None


def _remember(target: Target, done: list[str], terraform: bool | None = None) -> None:
    if terraform is None:
        terraform = json.loads((target.out / STATE).read_text(encoding="utf-8"))["terraform"]
    state = {"done": done, "terraform": terraform, "url": _rehearsal_url() if done else None}
    write_atomically(target.out / STATE, json.dumps(state) + "\n")


def _environment() -> dict[str, str]:
    """What `python -m rehearsal env` would set in a shell, or nothing while none runs."""
    printed = subprocess.run(python("rehearsal env"), capture_output=True, text=True, check=False).stdout
    exports = (line.removeprefix("export ") for line in printed.splitlines() if line.startswith("export "))
    kept = {key: value for key, value in os.environ.items() if key not in ("AWS_PROFILE", "AWS_SESSION_TOKEN")}
    return kept | dict(line.split("=", 1) for line in exports)


def _rehearsal_url() -> str | None:
    up = subprocess.run(python("rehearsal status"), capture_output=True, check=False).returncode == 0
    return _environment().get("AWS_ENDPOINT_URL") if up else None


def _run(step: Step, target: Target, label: str) -> None:
    log = target.out / "logs" / f"{step.name}.log"
    code = _once(step, label, log)
    for _ in range(step.tries - 1):
        if code != ExitCode.UNDECIDED:
            break
        code = _once(step, f"{label} undecided, once more:", log)
    if code not in step.accepts:
        raise StepFailed(step, code, log)


def _once(step: Step, label: str, log: Path) -> int:
    print(f"{label} {step.name:<10} {step.says} ...", end=" ", flush=True)
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as stream:
        # A session of its own: the terminal's Ctrl-C reaches the demo alone, which passes it on exactly once.
        process = subprocess.Popen(
            step.command, stdout=stream, stderr=subprocess.STDOUT, env=_environment(), start_new_session=True
        )
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            print("stopping: the command puts back what it changed ...", end=" ", flush=True)
            process.wait()
            print("stopped")
            raise Interrupted(
                f"interrupted in step {step.name}; the rehearsal still runs",
                "the same command goes on from here; --discard takes everything down",
            ) from None
    print(f"{time.monotonic() - began:.0f} s" + ("" if code == 0 else f" (exit {code})"), flush=True)
    return code


def _take_down(target: Target) -> None:
    if target.rehearsal_dir.exists():
        subprocess.run(python("rehearsal down"), capture_output=True, check=False)
    (target.out / STATE).unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(exit_status(main))
