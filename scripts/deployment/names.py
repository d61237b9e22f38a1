"""New names for content whose old names are still taken.

A model's and a configuration's name carry a hash of their content. An update that SageMaker rolled back leaves the old
pair in place until the next apply has finished, so going back to exactly that content would create what already exists.
"""

from __future__ import annotations

import sys
from typing import Any

from scripts.cli import new_run_id
from scripts.terraform import Terraform

NAMES = ("sagemaker_model_name", "endpoint_config_name")


def with_free_names(tool: Terraform, chosen: dict[str, Any]) -> dict[str, Any]:
    """``chosen``, with another ``name_salt`` when it would create a name that a rolled back update left taken."""
    left = tool.deposed_names()
    if not left:
        return chosen
    planned = tool.planned_outputs(chosen)
    taken = sorted(left & {str(planned[name]) for name in NAMES if name in planned})
    if not taken:
        return chosen
    salt = new_run_id()
    print(
        f"== {', '.join(taken)} left by an update that was rolled back: the same content gets other names "
        f"(name_salt = {salt})",
        file=sys.stderr,
        flush=True,
    )
    return chosen | {"name_salt": salt}
