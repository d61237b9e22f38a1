"""`python -m planner report`: one HTML file from whatever artifacts exist."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from planner.artifacts.base import write_atomically
from planner.report.collect import Evidence, collect
from planner.report.html import page
from planner.report.sections import everything


def main(argv: Sequence[str] | None = None) -> int:
    """Write ``report-<model>.html`` and print its path."""
    p = argparse.ArgumentParser(prog="python -m planner report", description=__doc__)
    p.add_argument("--model", required=True, help="whose artifacts")
    p.add_argument("--artifacts", action="append", metavar="DIR", help="repeatable; default artifacts")
    p.add_argument("--out", metavar="DIR", help="default: the first --artifacts")
    args = p.parse_args(sys.argv[2:] if argv is None else argv)
    directories = [Path(name) for name in args.artifacts or ["artifacts"]]
    path = Path(args.out or directories[0]) / f"report-{args.model}.html"
    write_atomically(path, render(collect(args.model, directories)))
    print(path)
    return 0


def render(evidence: Evidence) -> str:
    """The document."""
    return page(f"Capacity report: {evidence.model}", everything(evidence))
