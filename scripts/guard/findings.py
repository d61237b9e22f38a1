"""What drift and validate report: one finding a fact, with the command that fixes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from planner.errors import ExitCode
from scripts.cli import colour

Severity = Literal["ok", "info", "warn", "error"]
_COLOURS = {"ok": "32", "info": "0", "warn": "33", "error": "31"}


@dataclass(frozen=True)
class Finding:
    """One fact about the deployment."""

    severity: Severity
    resource: str
    detail: str
    fix: str = ""


def failed(findings: Sequence[Finding]) -> bool:
    """At least one error."""
    return any(finding.severity == "error" for finding in findings)


def exit_code(findings: Sequence[Finding]) -> int:
    """3 when something is wrong, else 0."""
    return int(ExitCode.FACT_FAILS if failed(findings) else ExitCode.DONE)


def text(findings: Sequence[Finding]) -> str:
    """One line a finding, its fix below."""
    lines = []
    for finding in findings:
        lines.append(
            f"{colour(f'{finding.severity:5}', _COLOURS[finding.severity])} {finding.resource}: {finding.detail}"
        )
        if finding.fix:
            lines.append(f"      fix: {finding.fix}")
    return "\n".join(lines)


def document(status: str, findings: Sequence[Finding], following: str) -> dict[str, Any]:
    """The same for machines."""
    return {"status": status, "findings": [asdict(finding) for finding in findings], "next": following}
