"""What the plan and the simulator say will happen in this scenario."""

from __future__ import annotations

from dataclasses import dataclass

from planner.artifacts.plan import Plan
from planner.artifacts.qmax import Qmax
from planner.artifacts.simulation import Score
from planner.simulate.arrivals import Arrivals
from planner.simulate.contenders import Contest, by_rule
from planner.simulate.fleet import FleetSpec, simulate
from planner.simulate.scoring import score
from planner.simulate.service import from_ladder
from scripts.loadproof.scenario import Scenario


@dataclass(frozen=True)
class Forecast:
    """Plan and simulator side by side."""

    shed_fraction: float
    slo_attainment: float
    detection_bound_s: float
    t_total_s: float
    simulated: Score


def forecast(plan: Plan, qmax: Qmax, scenario: Scenario, *, detection_bound_s: float, t_total_s: float) -> Forecast:
    """The plan's surge forecast, and one simulated run on the very arrivals that will be sent."""
    service, profile = from_ladder([qmax]), scenario.profile
    contest = Contest(
        profile=profile,
        service=service,
        t_total_s=t_total_s,
        min_instances=min(plan.derived.min_instances, scenario.instances),
        max_instances=max(plan.derived.max_instances, scenario.instances),
        rules={plan.rule: plan.derived},
        start_instances=scenario.instances,
    )
    spec = FleetSpec(
        service=service,
        slo_s=qmax.method.slo_ms / 1e3,
        bound=plan.derived.queue_max_depth,
        t_total_s=t_total_s,
        start_instances=scenario.instances,
        min_instances=contest.min_instances,
        max_instances=contest.max_instances,
        publish_delay_s=0,
        scaling_from_s=scenario.surge_begins_s,
        watching_from_s=0.0,
        seed=scenario.seed,
    )
    contender = by_rule(plan.rule, contest)
    run = simulate(spec, contender.make(), Arrivals(profile, scenario.seed))
    return Forecast(
        shed_fraction=plan.surge.shed_fraction,
        slo_attainment=plan.surge.slo_attainment,
        detection_bound_s=detection_bound_s,
        t_total_s=t_total_s,
        simulated=score(contender.name, contender.setting, spec, profile, run, None).score,
    )
