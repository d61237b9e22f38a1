"""Copy the model's weights into the S3 cache with CodeBuild, checksums verified."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from planner.errors import exit_status
from scripts.build_image import foundation
from scripts.cli import parser, print_json
from scripts.deployment import weights
from scripts.guard.intent import TERRAFORM_DIR


def main(argv: Sequence[str] | None = None) -> int:
    """Copy unless the cache is complete, follow the build."""
    flags = parser("sync_weights", __doc__ or "")
    flags.add_argument("--terraform-dir", default=str(TERRAFORM_DIR), help="root module")
    flags.add_argument("--again", action="store_true", help="even if the cache is complete")
    flags.add_argument("--dry-run", action="store_true", help="say what would happen; change nothing")
    flags.add_argument("--json", action="store_true", help="print the result as JSON")
    args = flags.parse_args(argv)
    outputs = foundation(Path(args.terraform_dir))
    uri = outputs["model_data_uri"]
    if args.dry_run:
        print(f"{uri} " + ("is complete" if weights.complete(uri) else "would be copied"))
        return 0
    copied = weights.ensure(uri, outputs["weights_project"], again=args.again)
    if args.json:
        print_json({"uri": uri, "copied": copied})
    else:
        print(f"{uri} {'copied' if copied else 'was complete'}")
    return 0


if __name__ == "__main__":
    sys.exit(exit_status(main))
