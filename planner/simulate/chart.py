"""The timeline as a picture that survives a grey printer: lines differ by dash and marker, not by colour alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from planner.artifacts.simulation import PolicyRun, Timeline
from planner.simulate.profiles import Profile

_STYLES = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)), (0, (8, 3)), (0, (2, 3)))
_GREYS = ("#000000", "#555555", "#222222", "#777777", "#444444", "#999999", "#666666")
# matplotlib writes random element ids into an SVG unless it is given a salt.
_STYLE: Any = {
    "svg.hashsalt": "headroom",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def draw(runs: Sequence[PolicyRun], profile: Profile, title: str, path: Path) -> None:
    """Traffic, fleet and unserved share over time, one line a policy. The suffix of ``path`` picks the format."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    unit_s, unit = _unit(profile.duration_s)
    with plt.rc_context(_STYLE):
        figure, axes = plt.subplots(3, 1, figsize=(8, 6.4), sharex=True, height_ratios=(1, 1.2, 1.2))
        _traffic(axes[0], runs[0].timeline, unit_s)
        for number, run in enumerate(runs):
            style = {"linestyle": _STYLES[number % 7], "color": _GREYS[number % 7], "linewidth": 1.4}
            at = [end / unit_s for end in run.timeline.end_s]
            axes[1].step(at, run.timeline.in_service, where="pre", label=run.score.policy, **style)
            axes[2].plot(
                at, [100 * (1 - share) for share in run.timeline.slo_attainment], label=run.score.policy, **style
            )
        axes[1].set_ylabel("instances\nin service")
        axes[2].set_ylabel("shed or late\n% of requests")
        axes[2].set_xlabel(f"simulated {unit}")
        for axis in axes:
            axis.set_ylim(bottom=0)
            if profile.surge_s is not None:
                axis.axvspan(profile.surge_s[0] / unit_s, profile.surge_s[1] / unit_s, color="0.92", zorder=0)
        axes[1].legend(ncols=min(len(runs), 4), frameon=False, loc="upper left", fontsize=8)
        axes[0].set_title(title, loc="left", fontsize=10)
        figure.tight_layout()
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
        plt.close(figure)


def _traffic(axis: Any, timeline: Timeline, unit_s: float) -> None:
    at = [end / unit_s for end in timeline.end_s]
    axis.fill_between(at, timeline.offered_rps, color="0.85", linewidth=0)
    axis.plot(at, timeline.offered_rps, color="0.2", linewidth=0.9)
    axis.set_ylabel("offered\nrequests/s")


def _unit(duration_s: float) -> tuple[float, str]:
    return (3600.0, "hours") if duration_s > 3 * 3600 else (60.0, "minutes")
