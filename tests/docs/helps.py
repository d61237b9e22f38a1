"""What every command's --help says, asked in one child process: importing Locust here would patch sockets."""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

COMMANDS = (
    *(f"planner {verb}" for verb in ("plan", "simulate", "sweep", "report")),
    *(f"rehearsal {verb}" for verb in ("up", "env", "status", "logs", "fault", "down", "null")),
    *(f"loadtest.{name}" for name in ("ladder", "surge")),
    *(f"scripts.{name}" for name in ("ttotal", "drift", "validate", "validate_load", "thaw", "deploy", "apply_plan")),
    *(f"scripts.{name}" for name in ("destroy", "demo", "build_image", "sync_weights", "terraform_docs")),
    *(f"bench.{name}" for name in ("engine", "container", "harness", "peers", "planner", "quality")),
    *(f"bench.{name}" for name in ("rehearse_article", "schedulers")),
    "container.weights",
)
WITHOUT_FLAGS = ("container.server", "scripts.terraform")
"""One takes what the platform gives it, one hands everything to Terraform."""

ASK = """
import contextlib, importlib, io, json, sys
said = {}
for command in json.loads(sys.argv[1]):
    module, *verb = command.split()
    name = {"rehearsal": "rehearsal.cli"}.get(module, module)
    name += ".__main__" if module in ("planner", "container.weights", "bench.peers") else ""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        importlib.import_module(name).main([*verb, "--help"])
    said[command] = out.getvalue()
json.dump(said, sys.stdout)
"""


@functools.cache
def flags() -> dict[str, frozenset[str]]:
    """Each command's flags."""
    asked = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ASK, json.dumps(COMMANDS)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    said = json.loads(asked.stdout)
    return {command: frozenset(re.findall(r"--[a-z][a-z0-9-]*", text)) for command, text in said.items()}


def command_of(words: list[str]) -> str:
    """``planner plan`` of ["planner", "plan", "--qmax", ...]."""
    return " ".join(words[:2]) if words[0] in ("planner", "rehearsal") else words[0]
