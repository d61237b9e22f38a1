"""T_total as a stacked bar a run: stages told apart by grey and hatch, the dominant one named."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from planner.artifacts.ttotal import Ttotal, TtotalRun

# Light to dark and differently hatched: readable in grey and without colour vision.
_LOOKS = [
    ("#1f4e79", ""),
    ("#dbe9f6", "///"),
    ("#f2f2f2", "..."),
    ("#9db8d2", "\\\\\\"),
    ("#e8d9b5", "xxx"),
    ("#6e8fae", ""),
    ("#f7efe0", "---"),
    ("#b07d2b", ""),
]
_DOMINANT = "#c44e17"
_LABEL_SHARE_PCT = 6.0


def draw(made: Ttotal, stem: Path) -> list[Path]:
    """Write ``<stem>.png`` and ``<stem>.svg``."""
    runs = [run for run in made.runs if run.durations]
    figure = Figure(figsize=(11, 2.6 + 0.7 * len(runs)), layout="constrained")
    axes = figure.add_subplot()
    looks = _looks(runs)
    for row, run in enumerate(runs):
        _bar(axes, row, run, looks)
    axes.set_yticks(range(len(runs)), [f"run {run.run + 1}" for run in runs])
    axes.invert_yaxis()
    axes.set_xlabel("seconds since the count was raised")
    axes.set_title(_title(made, runs), loc="left", fontsize=11)
    axes.spines[["top", "right", "left"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    png, svg = stem.with_name(f"{stem.name}.png"), stem.with_name(f"{stem.name}.svg")
    figure.savefig(png, dpi=150)
    figure.savefig(svg)
    return [png, svg]


def _looks(runs: list[TtotalRun]) -> dict[str, tuple[str, str]]:
    ends = list(dict.fromkeys(part.end for run in runs for part in run.durations))
    return {end: _LOOKS[index % len(_LOOKS)] for index, end in enumerate(ends)}


def _bar(axes: Axes, row: int, run: TtotalRun, looks: dict[str, tuple[str, str]]) -> None:
    left_s = 0.0
    for part in run.durations:
        colour, hatch = looks[part.end]
        dominant = run.dominant == f"{part.start} → {part.end}"
        axes.barh(
            row,
            part.seconds,
            left=left_s,
            height=0.6,
            color=_DOMINANT if dominant else colour,
            hatch=None if dominant else hatch,
            edgecolor="#222222",
            linewidth=0.8,
            label=f"→ {part.end}",
        )
        if part.share_pct >= _LABEL_SHARE_PCT:
            text = f"{part.end}\n{part.seconds:.1f} s, {part.share_pct:.0f} %"
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
            axes.text(left_s + part.seconds / 2, row, text, ha="center", va="center", fontsize=8, bbox=box)
        left_s += part.seconds


def _title(made: Ttotal, runs: list[TtotalRun]) -> str:
    worst = max(runs, key=lambda run: run.t_total_s or 0.0)
    total = f"T_total {made.t_total_s:.1f} s" if made.t_total_s is not None else f"no T_total: {runs[-1].outcome}"
    longest = max(worst.durations, key=lambda part: part.seconds)
    return f"{made.model}: {total}; longest is {longest.start} → {longest.end} ({longest.share_pct:.0f} %)"
