"""From measured rungs to the artifact, its raw records and its chart."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from loadtest.settings import Ladder
from loadtest.verdict import Answer, conclude, saturation, worst
from planner.artifacts.base import Provenance, write_atomically
from planner.artifacts.fingerprint import Fingerprint, slug
from planner.artifacts.qmax import Method, OpenLoop, Qmax, Rung
from scripts.aws.clients import aws_endpoint_url, region


def provenance(run_id: str, endpoint: str, variant: str, program: str) -> Provenance:
    """Who measured, where and when."""
    return Provenance(
        tool_version=version("headroom"),
        command=[program, *sys.argv[1:]],
        run_id=run_id,
        created_at=datetime.now(UTC),
        region=region(),
        endpoint=endpoint,
        variant=variant,
        aws_endpoint_url=aws_endpoint_url(),
    )


def stem(kind: str, model: str, fingerprint: Fingerprint) -> str:
    """File name of an artifact without its ending."""
    return f"{kind}-{model}-{fingerprint.transport}-{slug(fingerprint)}"


def answers(done: Sequence[Rung]) -> list[Answer]:
    """One a run."""
    runs = sorted({rung.run for rung in done})
    return [conclude([(rung.concurrency, rung.verdict) for rung in done if rung.run == run]) for run in runs]


def excluded(done: Sequence[Rung], found: Sequence[Answer]) -> list[Rung]:
    """Rungs that passed above a miss become invalid, with the reason."""
    marked = []
    for rung in done:
        if rung.concurrency in found[rung.run].non_monotone:
            reasons = [*rung.reasons, "passes above a rung that failed: not monotone"]
            rung = rung.model_copy(update={"verdict": "invalid", "reasons": reasons})
        marked.append(rung)
    return sorted(marked, key=lambda rung: (rung.run, rung.concurrency))


def qmax(
    settings: Ladder,
    method: Method,
    done: Sequence[Rung],
    fingerprint: Fingerprint,
    source: Provenance,
    notes: Sequence[str],
) -> Qmax:
    """The artifact, without its records file."""
    per_run = answers(done)
    answer = worst(per_run)
    alone = next((rung for rung in done if rung.concurrency == 1 and rung.verdict != "invalid"), None)
    whole = alone.latency_ms if alone else None
    first = alone.ttfab_ms if alone else None
    return Qmax(
        provenance=source,
        model=settings.common.model,
        fingerprint=fingerprint,
        method=method,
        outcome=answer.outcome,
        q_max=answer.q_max,
        bracketed=answer.bracketed,
        q_max_per_run=[each.q_max for each in per_run],
        notes=[*notes, *answer.notes, *_remarks(settings, done, alone)],
        service_mean_s=whole.mean / 1e3 if whole and whole.mean else None,
        service_p95_s=whole.p95 / 1e3 if whole else None,
        ttfab_p95_at_1_ms=first.p95 if first else None,
        ladder=excluded(done, per_run),
    )


def _remarks(settings: Ladder, done: Sequence[Rung], alone: Rung | None) -> list[str]:
    remarks = []
    if settings.runs == 1:
        remarks.append("a single run; --runs 3 reports the worst of three")
    if alone is None:
        remarks.append("no valid rung at concurrency 1: service time unknown")
    knee = saturation([(r.concurrency, r.achieved_rps) for r in done if r.run == 0 and r.achieved_rps])
    if knee is not None:
        best = max(r.achieved_rps or 0.0 for r in done if r.run == 0)
        remarks.append(f"throughput saturates at N={knee}: {best:.1f} requests/s at most")
    return remarks


def save(artifact: Qmax | OpenLoop, records: Path, out: Path, name: str) -> Path:
    """Write artifact and records side by side; another run's pair is kept together under its run id."""
    target = out / f"{name}.json"
    lines = out / f"{name}.requests.jsonl"
    digest = hashlib.sha256(records.read_bytes()).hexdigest()
    kept = artifact.model_copy(update={"records_file": lines.name, "records_sha256": digest}).save(target)
    if kept is not None and lines.exists():
        _keep_pair(kept, lines)
    os.replace(records, lines)
    return target


def _keep_pair(kept: Path, lines: Path) -> None:
    aside = kept.with_name(f"{kept.stem}.requests.jsonl")
    os.replace(lines, aside)
    try:
        body = json.loads(kept.read_text(encoding="utf-8"))
    except ValueError:
        return
    if body.get("records_file") == lines.name:
        written = kept.stat()
        write_atomically(kept, json.dumps(body | {"records_file": aside.name}, indent=2) + "\n")
        os.utime(kept, ns=(written.st_atime_ns, written.st_mtime_ns))  # it must not look newer than what replaced it
