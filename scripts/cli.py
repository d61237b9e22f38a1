"""What every verb shares on the command line: the target flags, run ids, provenance, output."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import sys
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from planner.artifacts.base import Provenance
from scripts.aws.clients import aws_endpoint_url, region


def parser(verb: str, description: str) -> argparse.ArgumentParser:
    """A parser that prints defaults and knows the target."""
    made = argparse.ArgumentParser(
        prog=f"python -m scripts.{verb}",
        description=description,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("--endpoint", required=True, help="endpoint name")
    made.add_argument("--variant", required=True, help="production variant")
    return made


def new_run_id() -> str:
    """Twelve hex digits."""
    return uuid.uuid4().hex[:12]


def provenance(verb: str, argv: Sequence[str] | None, run_id: str, endpoint: str, variant: str) -> Provenance:
    """Where an artifact of this command comes from."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    return Provenance(
        tool_version=importlib.metadata.version("headroom"),
        command=["python", "-m", f"scripts.{verb}", *arguments],
        run_id=run_id,
        created_at=datetime.now(UTC),
        region=region(),
        endpoint=endpoint,
        variant=variant,
        aws_endpoint_url=aws_endpoint_url(),
    )


def print_json(value: Any) -> None:
    """One JSON document on stdout."""
    print(json.dumps(value, indent=2, default=str))


def colour(text: str, code: str) -> str:
    """``text`` in colour on a terminal that wants it."""
    wanted = sys.stdout.isatty() and "NO_COLOR" not in os.environ
    return f"\x1b[{code}m{text}\x1b[0m" if wanted else text
