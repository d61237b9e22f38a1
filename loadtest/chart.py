"""The ladder as a picture: latency quantiles against the SLO, throughput below. Readable without colour."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from loadtest.measure import quantiles
from planner.artifacts.qmax import Qmax, SloMetric

_LINES = (("p99", ":", "^", "0.55"), ("p95", "-", "o", "0.0"), ("p50", "--", "s", "0.35"))
_NAMES: dict[SloMetric, str] = {"ttfab": "Time to first audio byte", "latency": "Whole response time"}


def draw(artifact: Qmax, path: Path) -> list[Path]:
    """Write ``path`` with endings .png and .svg; returns both."""
    figure = Figure(figsize=(8, 6.5), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 1])
    _latency(upper, artifact)
    _throughput(lower, artifact)
    lower.set_xlabel("Concurrency (requests in flight)")
    lower.set_xticks(sorted({rung.concurrency for rung in artifact.ladder}))
    written = [path.with_name(f"{path.name}{ending}") for ending in (".png", ".svg")]
    for file in written:
        file.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(file, dpi=150, metadata={"Date": None} if file.suffix == ".svg" else None)
    return written


def _latency(axes: Axes, artifact: Qmax) -> None:
    method = artifact.method
    for run in sorted({rung.run for rung in artifact.ladder}):
        rungs = [r for r in artifact.ladder if r.run == run and quantiles(r, method.slo_metric)]
        for name, dash, marker, grey in _LINES:
            points = [(r.concurrency, getattr(quantiles(r, method.slo_metric), name)) for r in rungs]
            label = name if run == 0 else None
            axes.plot(*_columns(points), dash, marker=marker, color=grey, markersize=5, linewidth=1.4, label=label)
    _mark_invalid(axes, artifact)
    axes.axhline(method.slo_ms, color="tab:red", linewidth=1.6, dashes=(8, 3), label=f"SLO {method.slo_ms:g} ms (p95)")
    if artifact.q_max is not None:
        sign = "=" if artifact.bracketed else "≥"
        axes.axvline(artifact.q_max, color="tab:blue", linewidth=1.2, label=f"Q_max {sign} {artifact.q_max}")
    axes.set_ylabel(f"{_NAMES[method.slo_metric]} (ms)")
    axes.set_ylim(bottom=0)
    fingerprint = artifact.fingerprint
    where = f" on {fingerprint.instance_type}, {fingerprint.transport}" if fingerprint else ""
    axes.set_title(f"{artifact.model}{where}")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left", framealpha=0.9)


def _mark_invalid(axes: Axes, artifact: Qmax) -> None:
    metric = artifact.method.slo_metric
    for verdict, marker in (("invalid", "x"), ("undecided", "o")):
        points = [
            (r.concurrency, found.p95)
            for r in artifact.ladder
            if r.verdict == verdict and (found := quantiles(r, metric)) is not None
        ]
        if points:
            style: dict[str, Any] = (
                {"color": "black"} if marker == "x" else {"facecolors": "none", "edgecolors": "black"}
            )
            axes.scatter(*_columns(points), marker=marker, s=130, linewidths=2, zorder=5, label=verdict, **style)


def _throughput(axes: Axes, artifact: Qmax) -> None:
    for run in sorted({rung.run for rung in artifact.ladder}):
        points = [
            (r.concurrency, r.achieved_rps) for r in artifact.ladder if r.run == run and r.achieved_rps is not None
        ]
        axes.plot(*_columns(points), "-", marker="D", color="0.2", markersize=4, linewidth=1.4)
    axes.set_ylabel("Throughput (requests/s)")
    axes.set_ylim(0, 1.15 * max((rung.achieved_rps or 0.0 for rung in artifact.ladder), default=1.0) or 1.0)
    axes.grid(alpha=0.3)


def _columns(points: Sequence[tuple[float, float | None]]) -> tuple[list[float], list[float]]:
    known = [(x, y) for x, y in points if y is not None]
    return [x for x, _ in known], [y for _, y in known]
