"""The cheapest target, floor and scale-in cooldown that keep attainment and shed within limits over all profiles.

Every candidate sees the same arrivals. The grid is small and searched whole: cost is not monotone in the target, since
a low target multiplies the fleet further when the metric saturates (desired x Q_max / target).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product

from planner.fleet_reading import reading
from planner.simulate import policies
from planner.simulate.arrivals import Arrivals
from planner.simulate.contenders import Contest, schedule
from planner.simulate.fleet import FleetSpec, simulate
from planner.simulate.interval import TtfabBins

# Loads of one instance, as a share of its capacity, whose 10 s Maximum becomes the target.
TRIGGER_LOADS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95)
# Between the loads at which a candidate scales out and in: the published rule's ratio at a surge of 1.25.
THRESHOLD_RATIO = 1.5
# Shed limits of the cost-of-safety curve.
CURVE_LIMITS = (0.001, 0.01, 0.02, 0.05, 0.10, 0.20)


@dataclass(frozen=True)
class Candidate:
    """What would be deployed."""

    trigger_load: float
    """Share of one instance's capacity at which the target is read."""
    target: float
    threshold: float
    floor: int
    out_cooldown_s: float
    in_cooldown_s: float


@dataclass(frozen=True)
class Limits:
    """What a candidate must keep on every profile."""

    max_shed: float
    min_attainment: float


@dataclass(frozen=True)
class Outcome:
    """A candidate over all profiles: money adds up, the worst profile decides."""

    candidate: Candidate
    worst_shed: float
    worst_attainment: float
    instance_h: float
    usd: float | None

    def within(self, limits: Limits) -> bool:
        return self.worst_shed <= limits.max_shed and self.worst_attainment >= limits.min_attainment


@dataclass(frozen=True)
class Found:
    """The whole search, cheapest first."""

    outcomes: tuple[Outcome, ...]
    best: Outcome | None

    @property
    def curve(self) -> list[tuple[float, Outcome]]:
        """Cost of safety: the cheapest candidate at each shed limit; a looser limit that saves nothing is left out."""
        points: list[tuple[float, Outcome]] = []
        for limit in CURVE_LIMITS:
            kept = [o for o in self.outcomes if o.within(Limits(limit, 1 - limit - _LATE_MARGIN))]
            if kept and (not points or kept[0] is not points[-1][1]):
                points.append((limit, kept[0]))
        return points

    def as_dict(self) -> dict[str, object]:
        """For the JSON file."""
        return {
            "best": None if self.best is None else asdict(self.best),
            "cost_of_safety": [{"max_shed": limit, **asdict(outcome)} for limit, outcome in self.curve],
            "candidates": [asdict(outcome) for outcome in self.outcomes],
        }


# On the curve requests may also be late, up to this share.
_LATE_MARGIN = 0.05


def grid_of(contests: Sequence[Contest]) -> list[Candidate]:
    """Targets by trigger load as the peak's fleet reads them; floors from the plan's to 3/4 of that fleet."""
    contest = contests[0]
    derived = contest.reference
    server = contest.service.server(derived.queue_max_depth)
    peak_fleet = max(c.instances(c.profile.peak_rps, derived.load_at_trigger_rps) for c in contests)
    low = contest.min_instances
    floors = sorted({low, max(low, peak_fleet // 2), max(low, -(-3 * peak_fleet // 4))})
    cooldowns = sorted({300.0, float(derived.scale_in_cooldown_s), 2.0 * derived.scale_in_cooldown_s})
    pairs: dict[tuple[float, float], float] = {}
    for load in TRIGGER_LOADS:
        at_rps = load * contest.capacity_rps
        target = round(reading(server, peak_fleet, at_rps), 2)
        threshold = round(reading(server, peak_fleet, at_rps / THRESHOLD_RATIO), 2)
        pairs[target, threshold] = load
    return [
        Candidate(load, target, threshold, floor, float(derived.scale_out_cooldown_s), cooldown)
        for ((target, threshold), load), floor, cooldown in product(pairs.items(), floors, cooldowns)
    ]


def cheapest(
    contests: Sequence[Contest],
    specs: Sequence[FleetSpec],
    grid: Sequence[Candidate],
    limits: Limits,
    usd_per_h: float | None,
    progress: Callable[[str], None] = lambda _: None,
) -> Found:
    """Try every candidate on every profile, worst profile first to give up early."""
    outcomes = []
    for number, candidate in enumerate(grid, 1):
        progress(f"candidate {number} of {len(grid)}: out above {candidate.target:g}, floor {candidate.floor}")
        outcome = _try(candidate, contests, specs, usd_per_h)
        if outcome is not None:
            outcomes.append(outcome)
    ranked = sorted(outcomes, key=lambda o: (o.instance_h, o.worst_shed))
    return Found(tuple(ranked), next((o for o in ranked if o.within(limits)), None))


def _try(
    candidate: Candidate, contests: Sequence[Contest], specs: Sequence[FleetSpec], usd_per_h: float | None
) -> Outcome | None:
    """None when a profile sheds more than any point of the curve could use."""
    billed_s, shed, attainment = 0.0, 0.0, 1.0
    for contest, spec in zip(contests, specs, strict=True):
        start = contest.instances(contest.profile.rates_rps[0], candidate.trigger_load * contest.capacity_rps)
        start = max(start, candidate.floor)
        mine = replace(spec, start_instances=start, min_instances=candidate.floor)
        policy = policies.concurrency(
            candidate.target,
            candidate.threshold,
            out_cooldown_s=candidate.out_cooldown_s,
            in_cooldown_s=candidate.in_cooldown_s,
        )
        run = simulate(mine, policy, Arrivals(contest.profile, spec.seed))
        offered = max(run.total.offered, 1)
        shed = max(shed, run.total.shed / offered)
        if shed > CURVE_LIMITS[-1]:
            return None
        attainment = min(attainment, TtfabBins(spec.slo_s).within_slo(run.total.ttfab_counts) / offered)
        billed_s += run.billed_instance_s
    hours = billed_s / 3600
    return Outcome(candidate, shed, min(attainment, 1.0), hours, None if usd_per_h is None else hours * usd_per_h)


def scheduled_actions(contest: Contest) -> list[dict[str, float | int]]:
    """For a profile known beforehand, at the trigger load of the rule that survives surges."""
    actions = schedule(contest, contest.reference.load_at_trigger_rps)
    return [{"at_s": action.at_s, "min_capacity": action.instances} for action in actions]


def report(found: Found, limits: Limits, contests: Sequence[Contest]) -> str:
    """The best candidate, the cost of safety, and scheduled actions where the profile is known."""
    lines = [f"cheapest with shed <= {limits.max_shed:.2%} and {limits.min_attainment:.0%} in SLO on every profile:"]
    lines.append(f"  {_settings(found.best)}" if found.best else "  none of the candidates; see the curve")
    lines += ["", "cost of safety:", "  shed limit  instance h       USD  cheapest settings"]
    for limit, outcome in found.curve:
        usd = "-" if outcome.usd is None else f"{outcome.usd:.2f}"
        lines.append(f"  {limit:>9.1%}  {outcome.instance_h:>11.2f}  {usd:>8}  {_settings(outcome)}")
    for contest in contests:
        if contest.profile.surge_s is None:
            lines += ["", f"scheduled actions for {contest.profile.name} (SageMaker has no predictive scaling):"]
            lines += [
                f"  at {action['at_s']:>7.0f} s  min capacity {action['min_capacity']}"
                for action in scheduled_actions(contest)
            ]
    return "\n".join(lines)


def _settings(outcome: Outcome) -> str:
    c = outcome.candidate
    kept = f"shed {outcome.worst_shed:.2%}, in SLO {outcome.worst_attainment:.2%}"
    return (
        f"out above {c.target:g} (load {c.trigger_load:.0%}), in below {c.threshold:g}, floor {c.floor}, "
        f"scale-in cooldown {c.in_cooldown_s:.0f} s: {kept}"
    )
