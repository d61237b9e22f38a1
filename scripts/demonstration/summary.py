"""One sentence of result."""

from __future__ import annotations

from pathlib import Path

from planner.artifacts.plan import Plan
from planner.artifacts.qmax import Qmax
from planner.artifacts.ttotal import Ttotal
from planner.show import number


def sentence(artifacts: Path, model: str) -> str:
    """What the newest measurements and the plan say."""
    qmax = Qmax.load(_newest(artifacts, f"qmax-{model}-*.json"))
    ttotal = Ttotal.load(_newest(artifacts, f"ttotal-{model}-*.json"))
    plan = Plan.load(artifacts / f"plan-{model}.json")
    bound = "" if qmax.bracketed else " at least"
    t_total = "not measured" if ttotal.t_total_s is None else f"{ttotal.t_total_s:.0f} s"
    derived, surge = plan.derived, plan.surge
    return (
        f"One instance holds{bound} {qmax.q_max} requests inside {qmax.method.slo_ms / 1000:g} s; "
        f"a second one takes {t_total}. Scale out above {number(derived.scaling_target_value)}, "
        f"in below {number(derived.scale_in_threshold)}, {derived.min_instances} to {derived.max_instances} instances: "
        f"a surge of x{surge.surge_ratio:g} sheds {surge.shed_fraction:.1%}. Verdict: {plan.verdict}."
    )


def _newest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda path: path.stat().st_mtime)
