"""`python -m planner VERB`: plan, simulate, report, sweep. Each verb is imported only when asked for."""

from __future__ import annotations

import importlib
import sys

from planner.errors import UsageError, exit_status

VERBS = {
    "plan": ("planner.cli", "numbers from the two measurements, each with its formula"),
    "simulate": ("planner.simulate.cli", "replay traffic against scaling policies"),
    "report": ("planner.report.cli", "one HTML file from whatever was measured"),
    "sweep": ("planner.sweep", "many what-if plans as a table"),
}


def usage() -> str:
    """The list of verbs."""
    verbs = "\n".join(f"  {verb:10} {what}" for verb, (_, what) in VERBS.items())
    return f"usage: python -m planner VERB [options]\n\n{verbs}\n\n`python -m planner VERB --help` lists its options."


def main(argv: list[str] | None = None) -> int:
    """Hand the rest of the command line to the verb."""
    arguments = sys.argv[1:] if argv is None else argv
    if not arguments or arguments[0] in ("-h", "--help"):
        print(usage())
        return 0 if arguments else 2
    verb, *rest = arguments
    if verb not in VERBS:
        raise UsageError(f"unknown verb {verb!r}", f"use one of: {', '.join(VERBS)}")
    return int(importlib.import_module(VERBS[verb][0]).main(rest))


if __name__ == "__main__":
    sys.exit(exit_status(main))
