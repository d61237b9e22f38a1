"""plan.auto.tfvars: one line that points Terraform at the plan, from which it reads everything else."""

from __future__ import annotations

from pathlib import Path


def tfvars(plan: Path) -> str:
    """The file's text; the same path gives the same bytes."""
    return f"plan_json = {quoted(str(plan.resolve()))}\n"


def quoted(text: str) -> str:
    """An HCL string literal: quotes, backslashes, control characters and template markers are inert."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    escaped = escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return f'"{escaped.replace("${", "$${").replace("%{", "%%{")}"'
