"""The run in words: before it starts, and when it is over."""

from __future__ import annotations

from pathlib import Path

from planner.artifacts.validate import Validation
from scripts.loadproof.case import Case
from scripts.loadproof.judge import text


def summary(made: Validation, path: Path) -> str:
    """Verdict, scores, what the fleet did."""
    counts = " -> ".join(f"{p.current}/{p.desired} at {p.at_s:.0f} s" for p in made.fleet)
    reasons = "".join(f"\n  {reason}" for reason in made.reasons)
    spent = f"{made.spent.minutes:.1f} min"
    spent += "" if made.spent.usd is None else f", about {made.spent.usd:.2f} USD"
    return "\n".join(
        [
            f"the plan was {made.verdict.upper()}{reasons}" if made.verdict != "undecided" else f"UNDECIDED{reasons}",
            "",
            text(made.scores),
            "",
            f"instances (running/asked for): {counts}",
            f"spent: {spent}; wrote {path}",
        ]
    )


def dry_run(case: Case) -> str:
    """What would be sent and changed, and what is forecast."""
    s, f = case.scenario, case.forecast
    minutes = s.ends_s[-1] / 60
    usd = case.budget.usd(s.ends_s[-1] * f.simulated.peak_instances)
    cost = "unknown" if usd is None else f"at most about {usd:.2f} USD"
    return "\n".join(
        [
            f"would test the plan of run {case.plan.provenance.run_id} on {case.live.name}/{case.live.variant}:",
            f"  fleet:    {case.live.desired_instances} now, pinned to {s.instances}, put back afterwards",
            f"  load:     {s.base_rps:.1f} rps for {s.hold_s:.0f} s, x{s.surge_ratio:g} for {s.surge_s:.0f} s, "
            f"{s.base_rps:.1f} rps for {s.after_s:.0f} s"
            + (f", {s.quiet_rps:.2f} rps for {s.quiet_s:.0f} s" if s.quiet_s else ""),
            "  scaling:  suspended until the surge begins, then live",
            f"  forecast: shed {f.shed_fraction:.1%}, {f.slo_attainment:.1%} within the SLO (plan); "
            f"shed {f.simulated.surge_shed_fraction or 0:.1%} (simulator)",
            f"  cost:     {minutes:.1f} min, {cost}",
            "nothing was changed",
        ]
    )
