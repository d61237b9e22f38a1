"""What was intended: the plan, and whether it has been handed to Terraform."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from planner.artifacts.plan import Plan
from planner.errors import UsageError

TERRAFORM_DIR = Path("terraform")
TFVARS = "plan.auto.tfvars"
_PLAN_JSON = re.compile(r'^\s*plan_json\s*=\s*"(?P<path>(?:[^"\\]|\\.)*)"\s*$', re.MULTILINE)


@dataclass(frozen=True)
class Intent:
    """The plan and where it came from; no plan = no autoscaling was intended."""

    plan: Plan | None
    path: Path | None
    handed_to_terraform: bool


def find(artifacts: Path, model: str, plan: str | None, terraform_dir: Path = TERRAFORM_DIR) -> Intent:
    """``--plan``, else the plan Terraform was given, else the newest of the artifacts."""
    given = tfvars_plan(terraform_dir)
    if plan is not None:
        return Intent(Plan.load(plan), Path(plan), given is not None and given.resolve() == Path(plan).resolve())
    if given is not None:
        return Intent(Plan.load(given), given, True)
    path = artifacts / f"plan-{model}.json"
    return Intent(Plan.load(path), path, False) if path.exists() else Intent(None, None, False)


def tfvars_plan(terraform_dir: Path) -> Path | None:
    """The path in plan.auto.tfvars; None without that file."""
    path = terraform_dir / TFVARS
    if not path.exists():
        return None
    match = _PLAN_JSON.search(path.read_text(encoding="utf-8", errors="replace"))
    if match is None:
        raise UsageError(f'{path}: has no line plan_json = "..."', "make plan writes it; or remove the file")
    return Path(match["path"])
