"""The comparison as a table on one screen."""

from __future__ import annotations

from collections.abc import Sequence

from planner.artifacts.simulation import PolicyRun, Score
from planner.simulate.profiles import Profile

_HEADER = ("policy", "in SLO", "shed", "p95 s", "instance h", "USD", "instances", "out/in", "flaps")
_SURGE = ("shed in surge", "detected s")


def table(runs: Sequence[PolicyRun], profile: Profile) -> str:
    """One row a policy, then what each was set to."""
    surged = profile.surge_s is not None
    header: tuple[str, ...] = (*_HEADER, *_SURGE) if surged else _HEADER
    rows = [header, *(_row(run.score, surged) for run in runs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
    width = max(len(run.score.policy) for run in runs)
    settings = [f"  {run.score.policy.ljust(width)}  {run.score.setting}" for run in runs]
    return "\n".join([*(_line(row, widths) for row in rows), "", "set to:", *settings])


def _line(row: tuple[str, ...], widths: Sequence[int]) -> str:
    first, *rest = (cell.rjust(width) for cell, width in zip(row, widths, strict=True))
    return "  ".join([first.strip().ljust(widths[0]), *rest])


def _row(score: Score, surged: bool) -> tuple[str, ...]:
    cells = (
        score.policy,
        f"{100 * score.slo_attainment:.2f} %",
        f"{100 * score.shed_fraction:.2f} %",
        "-" if score.ttfab_p95_s is None else f"{score.ttfab_p95_s:.3f}",
        f"{score.instance_h:.2f}",
        "-" if score.usd is None else f"{score.usd:.2f}",
        f"{score.start_instances}..{score.peak_instances}",
        f"{score.scale_outs}/{score.scale_ins}",
        str(score.flaps),
    )
    if not surged:
        return cells
    shed = "-" if score.surge_shed_fraction is None else f"{100 * score.surge_shed_fraction:.1f} %"
    return (*cells, shed, "-" if score.detection_s is None else f"{score.detection_s:.0f}")
