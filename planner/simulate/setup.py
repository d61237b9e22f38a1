"""From artifacts to a simulated endpoint: the ladder as service, the plan's numbers by rule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from planner import prices
from planner.artifacts.plan import Derived, Plan
from planner.artifacts.qmax import OpenLoop, Qmax
from planner.artifacts.ttotal import Ttotal
from planner.decision import Ask, decide
from planner.errors import UsageError
from planner.measured import measured
from planner.planning import CEILING_S, check_ask
from planner.rule import min_safe_instances, threshold_ratio
from planner.simulate.contenders import rules_of
from planner.simulate.service import ServiceModel, from_ladder
from planner.simulate.utilisation import UtilisationCurve
from planner.simulate.utilisation import measured as measured_utilisation


@dataclass(frozen=True)
class Setup:
    """One endpoint as planned."""

    service: ServiceModel
    rules: dict[str, Derived]
    rule: str
    """The plan's own."""
    slo_s: float
    surge_ratio: float
    surge_s: float
    """How long the plan promises to survive the surge."""
    t_total_s: float
    usd_per_h: float | None
    gpu: UtilisationCurve | None
    cpu: UtilisationCurve | None

    @property
    def derived(self) -> Derived:
        return self.rules[self.rule]


def from_measurements(
    qmaxes: Sequence[Qmax],
    ttotals: Sequence[Ttotal],
    open_loops: Sequence[OpenLoop] = (),
    *,
    surge_ratio: float = 1.25,
    peak_rps: float | None = None,
    min_floor: int | None = None,
    t_total_s: float | None = None,
    allow_mismatch: bool = False,
    cv: float | None = None,
) -> Setup:
    """Both rules computed here, as ``planner plan`` would for this peak; headroom is the default rule there too."""
    joined = measured(qmaxes, ttotals, open_loops, assumed_t_total_s=t_total_s, allow_mismatch=allow_mismatch)
    slo_ms = qmaxes[0].method.slo_ms
    peak = peak_rps or joined.ladder.rps(joined.q_max)
    ask = Ask(slo_ms=slo_ms, surge_ratio=surge_ratio, peak_rps=peak, trough_rps=None, min_floor=min_floor or 1)
    check_ask(joined, ask, CEILING_S)
    ask = replace(ask, min_floor=min_floor or min_safe_instances(threshold_ratio(surge_ratio)) or 1)
    rules = {
        "headroom": decide(joined, ask).derived,
        "drain": decide(joined, replace(ask, rule="drain")).derived,
    }
    return Setup(
        service=from_ladder(qmaxes, cv),
        rules=rules,
        rule="headroom",
        slo_s=slo_ms / 1e3,
        surge_ratio=surge_ratio,
        surge_s=joined.surge_duration_s,
        t_total_s=joined.t_total_s,
        usd_per_h=_price(qmaxes[0]),
        gpu=measured_utilisation(qmaxes[0], "gpu"),
        cpu=measured_utilisation(qmaxes[0], "cpu"),
    )


def from_plan(plan: Plan, qmaxes: Sequence[Qmax], *, t_total_s: float, cv: float | None = None) -> Setup:
    """The plan's numbers as written; the ladder gives the service."""
    known = {qmax.model for qmax in qmaxes}
    if known != {plan.model}:
        raise UsageError(
            f"the plan is for {plan.model}, the ladder for {', '.join(sorted(known))}", "pass its own qmax"
        )
    return Setup(
        service=from_ladder(qmaxes, cv),
        rules=rules_of(plan),
        rule=plan.rule,
        slo_s=qmaxes[0].method.slo_ms / 1e3,
        surge_ratio=plan.surge.surge_ratio,
        surge_s=plan.surge.duration_s,
        t_total_s=t_total_s,
        usd_per_h=_price(qmaxes[0]),
        gpu=measured_utilisation(qmaxes[0], "gpu"),
        cpu=measured_utilisation(qmaxes[0], "cpu"),
    )


def _price(qmax: Qmax) -> float | None:
    return prices.usd_per_h(qmax.fingerprint.instance_type) if qmax.fingerprint else None
