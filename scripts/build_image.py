"""Build the container image with CodeBuild from the sources here, and print its digest."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner.errors import UsageError, exit_status
from scripts import terraform
from scripts.cli import parser, print_json
from scripts.deployment import image, source
from scripts.guard.intent import TERRAFORM_DIR


def main(argv: Sequence[str] | None = None) -> int:
    """Upload, build, follow, print the digest."""
    flags = parser("build_image", __doc__ or "")
    flags.add_argument("--root", default=".", help="repository root, holds container/Dockerfile")
    flags.add_argument("--terraform-dir", default=str(TERRAFORM_DIR), help="root module")
    flags.add_argument("--rebuild", action="store_true", help="even if the registry has an image of these sources")
    flags.add_argument("--dry-run", action="store_true", help="say what would happen; change nothing")
    flags.add_argument("--json", action="store_true", help="print the result as JSON")
    args = flags.parse_args(argv)
    outputs = foundation(Path(args.terraform_dir))
    if args.dry_run:
        tag = source.tag(source.archive(Path(args.root)))
        known = image.find(outputs["repository_name"], tag)
        print(f"{outputs['repository_url']}:{tag} " + (f"exists: {known}" if known else "would be built"))
        return 0
    made = build(Path(args.root), outputs, rebuild=args.rebuild)
    if args.json:
        print_json({"digest": made.digest, "tag": made.tag, "built": made.built})
    else:
        print(made.digest)
    return 0


def build(root: Path, outputs: dict[str, Any], *, rebuild: bool = False) -> image.Image:
    """The image of ``root``'s sources, as the foundation's outputs say where."""
    return image.ensure(
        root,
        repository=outputs["repository_name"],
        bucket=outputs["bucket"],
        key=outputs["source_key"],
        project=outputs["image_project"],
        rebuild=rebuild,
    )


def foundation(directory: Path) -> dict[str, Any]:
    """The outputs of the foundation, which must exist."""
    found = terraform.ready(directory).outputs()
    if "image_project" not in found:
        raise UsageError("the foundation (bucket, registry, builders) is not deployed", "make deploy")
    return found


if __name__ == "__main__":
    sys.exit(exit_status(main))
