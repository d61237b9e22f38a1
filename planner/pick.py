"""Which measurements to plan from when no file was named: the newest pair that agrees, or a refusal that lists them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from planner.artifacts.fingerprint import mismatches
from planner.artifacts.qmax import OpenLoop, Qmax
from planner.artifacts.ttotal import Ttotal
from planner.errors import UsageError

A = TypeVar("A", Qmax, Ttotal, OpenLoop)


def current(directory: Path, kind: type[A], model: str) -> list[tuple[Path, A]]:
    """The model's files of one kind, newest first; files kept aside from earlier runs are left out."""
    pattern = f"{kind.kind_name}-{model}-*.json"
    loaded = [(path, kind.load(path)) for path in sorted(directory.glob(pattern)) if _is_current(path, model)]
    own = [(path, artifact) for path, artifact in loaded if artifact.model == model]
    return sorted(own, key=lambda item: item[1].provenance.created_at, reverse=True)


def pair(
    directory: Path, model: str, qmaxes: Sequence[Qmax], ttotals: Sequence[Ttotal], *, allow_mismatch: bool = False
) -> tuple[Sequence[Qmax], Sequence[Ttotal], tuple[str, str]]:
    """Fill in whichever of the two was not named, so that both describe the same deployment; says which files."""
    qmax_files = [] if qmaxes else current(directory, Qmax, model)
    ttotal_files = [] if ttotals else current(directory, Ttotal, model)
    if not qmaxes and not qmax_files:
        raise UsageError(f"{directory}: no qmax-{model}-*.json", "`make qmax` measures one, or name a file with --qmax")
    if not ttotals and not ttotal_files:
        raise UsageError(
            f"{directory}: no ttotal-{model}-*.json", "`make ttotal` measures one, or name it with --ttotal"
        )
    left = [(str(path), artifact) for path, artifact in qmax_files] or [("--qmax", qmaxes[0])]
    right = [(str(path), artifact) for path, artifact in ttotal_files] or [("--ttotal", ttotals[0])]
    pairs = [(q, t) for q in left for t in right if _agree(q[1], t[1])]
    if not pairs and allow_mismatch:
        return qmaxes or [left[0][1]], ttotals or [right[0][1]], (left[0][0], right[0][0])
    if not pairs:
        raise UsageError(
            f"no qmax and ttotal of {model} describe the same deployment:{_listed(left[0], right[0])}",
            "measure both on one deployment, or name the files with --qmax and --ttotal",
        )
    newest = (left[0], right[0])
    if len(pairs) > 1 and newest not in pairs:
        options = "".join(f"\n  - --qmax {q[0]} --ttotal {t[0]}" for q, t in pairs)
        raise UsageError(f"several pairs of {model} agree and none is the newest of both:{options}", "name one of them")
    q, t = newest if newest in pairs else pairs[0]
    return qmaxes or [q[1]], ttotals or [t[1]], (q[0], t[0])


def open_loops(directory: Path, model: str, qmax: Qmax) -> list[OpenLoop]:
    """The newest open-loop ladder of the same deployment, if there is one."""
    agreeing = [artifact for _, artifact in current(directory, OpenLoop, model) if _agree(qmax, artifact)]
    return agreeing[:1]


def _agree(first: Qmax, second: Ttotal | OpenLoop) -> bool:
    same_world = (first.provenance.aws_endpoint_url is None) == (second.provenance.aws_endpoint_url is None)
    return same_world and not mismatches(first.fingerprint, second.fingerprint)


def _listed(q: tuple[str, Qmax], t: tuple[str, Ttotal]) -> str:
    differing = [str(mismatch) for mismatch in mismatches(q[1].fingerprint, t[1].fingerprint)]
    worlds = [artifact.provenance.aws_endpoint_url or "AWS" for artifact in (q[1], t[1])]
    if (q[1].provenance.aws_endpoint_url is None) != (t[1].provenance.aws_endpoint_url is None):
        differing.append(f"measured at: {worlds[0]} against {worlds[1]}")
    return f"\n  newest {q[0]} and {t[0]} differ in" + "".join(f"\n  - {line}" for line in differing)


def _is_current(path: Path, model: str) -> bool:
    """A file moved aside carries its run id before the suffix: ``<stem>.<run id>.json``."""
    return "." not in path.stem.removeprefix(path.stem.split("-", 1)[0] + "-" + model)


def load_all(paths: Sequence[str], kind: type[A]) -> list[A]:
    """Load every named file; all faults are reported together."""
    loaded: list[A] = []
    faults: list[UsageError] = []
    for path in paths:
        try:
            loaded.append(kind.load(path))
        except UsageError as error:
            faults.append(error)
    if faults:
        raise UsageError("\n  ".join(fault.message for fault in faults), faults[0].hint)
    return loaded
