"""Keep the variable and output tables of docs/terraform.md true.

python -m scripts.terraform_docs            # rewrite the tables
python -m scripts.terraform_docs --check    # exit 3 when they are stale
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import hcl2

from planner.artifacts.base import write_atomically
from planner.errors import FactFails, UsageError, exit_status

DOCS = Path("docs/terraform.md")
ROOT_MODULE = Path("terraform")


def declared(file: Path, kind: str) -> dict[str, dict[str, Any]]:
    """Name to body of every ``variable`` or ``output`` block, in the file's order."""
    with file.open(encoding="utf-8") as stream:
        blocks = hcl2.load(stream).get(kind, [])
    return {unquoted(name): body for block in blocks for name, body in block.items() if not name.startswith("__")}


def unquoted(text: str) -> str:
    """A literal's text, as the parser leaves the quotes on."""
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def variables_table(file: Path) -> str:
    """One row a variable."""
    rows = (
        (f"`{name}`", f"`{shape(body['type'])}`", default(body), cell(unquoted(body["description"])))
        for name, body in declared(file, "variable").items()
    )
    return table(("Variable", "Type", "Default", "Meaning"), rows)


def outputs_table(file: Path) -> str:
    """One row an output."""
    rows = ((f"`{name}`", cell(unquoted(body["description"]))) for name, body in declared(file, "output").items())
    return table(("Output", "Meaning"), rows)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def shape(declared_type: str) -> str:
    """The type without an object's fields."""
    text = declared_type.removeprefix("${").removesuffix("}").strip()
    return text.split("object(", 1)[0] + "object" + ")" * text.count("map(") if "object(" in text else text


def default(body: dict[str, Any]) -> str:
    """As one would write it, short."""
    if "default" not in body:
        return "required"
    value = body["default"]
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if value is None:
        return "`null`"
    if isinstance(value, list):
        return f"`[{', '.join(str(item) for item in value)}]`"
    if isinstance(value, dict):
        keys = [unquoted(key) for key in value if not key.startswith("__")]
        return f"checksum of {', '.join(f'`{key}`' for key in keys)}" if keys else "`{}`"
    return f"`{unquoted(str(value))}`"


def cell(text: str) -> str:
    """Text that stays in its cell and shows angle brackets."""
    return text.replace("|", "\\|").replace("<", "&lt;")


def rendered(text: str, module: Path) -> str:
    """``text`` with both tables between their markers renewed."""
    for name, content in (
        ("variables", variables_table(module / "variables.tf")),
        ("outputs", outputs_table(module / "outputs.tf")),
    ):
        begin, end = f"<!-- begin {name} -->\n", f"<!-- end {name} -->"
        if begin not in text or end not in text:
            raise UsageError(f"the document has no {begin.strip()} ... {end}", "put both markers where the table goes")
        before, rest = text.split(begin, 1)
        text = before + begin + content + end + rest.split(end, 1)[1]
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """Write, or only check."""
    flags = argparse.ArgumentParser(prog="terraform_docs", description="Variable and output tables of the root module.")
    flags.add_argument("--check", action="store_true", help="change nothing; exit 3 when the tables are stale")
    flags.add_argument("--docs", type=Path, default=DOCS)
    flags.add_argument("--terraform-dir", type=Path, default=ROOT_MODULE)
    args = flags.parse_args(argv)
    if not args.docs.exists():
        raise UsageError(f"{args.docs} does not exist", "run from the repository's root, or --docs")
    before = args.docs.read_text(encoding="utf-8")
    after = rendered(before, args.terraform_dir)
    if before == after:
        return 0
    if args.check:
        raise FactFails(f"{args.docs}: the tables are stale", "python -m scripts.terraform_docs")
    write_atomically(args.docs, after)
    print(f"wrote {args.docs}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))
