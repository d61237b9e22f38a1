"""Put back what an interrupted run left frozen: from the journal, or from the endpoint's tag on another machine."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict

from planner.errors import UsageError, exit_status
from scripts.aws.freeze import Thawed, thaw
from scripts.cli import parser, print_json


def main(argv: Sequence[str] | None = None) -> int:
    """Thaw one variant and say what was done."""
    flags = parser("thaw", __doc__ or "")
    flags.add_argument("--desired", type=int, help="instance count to put back, instead of the remembered one")
    flags.add_argument("--json", action="store_true", help="print the result as JSON")
    args = flags.parse_args(argv)
    if args.desired is not None and args.desired < 1:
        raise UsageError(
            f"--desired {args.desired} is no instance count", "a real-time variant has at least 1 instance"
        )
    result = thaw(args.endpoint, args.variant, args.desired)
    if args.json:
        print_json(asdict(result))
    else:
        print(summary(args.endpoint, result))
    return 0


def summary(endpoint: str, result: Thawed) -> str:
    """What was found and what is now."""
    now = f"{result.desired_instances} instances, suspended: {result.suspended_after}"
    if result.source is not None:
        return f"{endpoint}: restored what run {result.run_id} left frozen (from {result.source}): {now}"
    if result.suspended_before == result.suspended_after and not result.restored_count:
        return f"{endpoint}: nothing is frozen: {now}"
    lines = [
        f"{endpoint}: no journal and no tag; scaling un-suspended (was suspended: {result.suspended_before}): {now}"
    ]
    if not result.restored_count:
        lines.append("the instance count before the freeze is unknown; pass --desired N to set it")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(exit_status(main))
