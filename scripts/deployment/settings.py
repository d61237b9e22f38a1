"""What a deployment decided, kept beside the root module so that a plain ``terraform apply`` means the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from planner.artifacts.base import read_json, write_atomically
from planner.errors import UsageError

FILE = "deployment.auto.tfvars.json"


def load(directory: Path) -> dict[str, Any]:
    """The settings of the last deployment; empty before the first."""
    path = directory / FILE
    if not path.exists():
        return {}
    found = read_json(path)
    if not isinstance(found, dict):
        raise UsageError(f"{path}: not a JSON object", f"remove {path} and run make deploy")
    return found


def save(directory: Path, settings: dict[str, Any]) -> None:
    """Replace the settings."""
    write_atomically(directory / FILE, json.dumps(settings, indent=2) + "\n")


def remove(directory: Path) -> None:
    """Nothing is deployed any more."""
    (directory / FILE).unlink(missing_ok=True)
