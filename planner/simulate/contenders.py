"""The policies of a comparison: what each is set to, and how many instances it starts with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from planner.artifacts.plan import Derived, Plan
from planner.errors import UsageError
from planner.fleet_reading import reading
from planner.simulate import policies
from planner.simulate.policies import Policy, ScheduledAction
from planner.simulate.profiles import Profile
from planner.simulate.service import ServiceModel
from planner.simulate.utilisation import UtilisationCurve

NAMES = ("headroom", "drain", "requests", "gpu", "cpu", "fixed", "scheduled")
# AWS's guidance for InvocationsPerInstance: half of what one instance was measured to serve.
REQUESTS_SAFETY_FACTOR = 0.5
# The target most examples of utilisation scaling use.
UTILISATION_TARGET_PCT = 70.0
# Scheduled actions hold for at least this long; finer steps would restart the endpoint's update all the time.
SCHEDULE_STEP_S = 900.0


@dataclass(frozen=True)
class Contender:
    """A policy ready to run; ``make`` gives a fresh one, since policies remember."""

    name: str
    setting: str
    make: Callable[[], Policy]
    start_instances: int
    limits: tuple[int, int] | None = None
    """Instances the policy may run, where a plan says so; None = the contest's."""


@dataclass(frozen=True)
class Contest:
    """What all contenders are derived from."""

    profile: Profile
    service: ServiceModel
    t_total_s: float
    min_instances: int
    max_instances: int
    rules: dict[str, Derived]
    """The plan's derived numbers by rule."""
    gpu: UtilisationCurve | None = None
    cpu: UtilisationCurve | None = None
    start_instances: int | None = None

    @property
    def capacity_rps(self) -> float:
        return self.service.capacity_rps

    @property
    def reference(self) -> Derived:
        """Cooldowns and sizing for the policies that have no rule of their own: drain's, which survives the surge."""
        return self.rules.get("drain") or self.rules["headroom"]

    def start(self, load_rps: float) -> int:
        """Instances that carry the first minute's rate at ``load_rps`` each."""
        if self.start_instances is not None:
            return self.start_instances
        return self.instances(self.profile.rates_rps[0], load_rps)

    def instances(self, rate_rps: float, load_rps: float) -> int:
        """ceil(rate / load), within the fleet's limits."""
        return min(max(math.ceil(round(rate_rps / load_rps, 9)), self.min_instances), self.max_instances)


def rules_of(plan: Plan) -> dict[str, Derived]:
    """The plan's own rule, and the other one at the same sizing."""
    found = {plan.rule: plan.derived}
    for alternative in plan.alternatives:
        if alternative.sizing == plan.sizing:
            found.setdefault(alternative.rule, alternative.derived)
    return {str(rule): derived for rule, derived in found.items()}


def build(names: Sequence[str], contest: Contest) -> list[Contender]:
    """Contenders by name, in the order asked for."""
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise UsageError(f"unknown policies: {', '.join(unknown)}", f"choose from {', '.join(NAMES)}")
    return [_BUILDERS[name](name, contest) for name in names]


def by_rule(name: str, contest: Contest) -> Contender:
    """What Terraform would deploy from a plan with this rule: its thresholds, cooldowns and limits."""
    derived = contest.rules.get(name)
    if derived is None or derived.scaling_target_value is None:
        raise UsageError(f"the plan has no usable numbers for --rule {name}", "plan again with both measurements")
    target, threshold = derived.scaling_target_value, derived.scale_in_threshold
    out_s, in_s = derived.scale_out_cooldown_s, derived.scale_in_cooldown_s
    into = "never in" if threshold is None else f"in below {threshold:g}"
    low, high = derived.min_instances, derived.max_instances
    numbers = f"out above {target:g}, {into}, cooldowns {out_s}/{in_s} s, {low} to {high} instances"
    start = contest.start(derived.load_at_trigger_rps)
    reads = reading(contest.service.server(derived.queue_max_depth), start, derived.load_at_trigger_rps)
    return Contender(
        name=name,
        setting=f"{numbers}; {start} at the trigger load read {reads:.1f}",
        make=lambda: policies.concurrency(target, threshold, out_cooldown_s=out_s, in_cooldown_s=in_s),
        start_instances=start,
        limits=(min(low, start), max(high, start)),
    )


def _requests(name: str, contest: Contest) -> Contender:
    load_rps = REQUESTS_SAFETY_FACTOR * contest.capacity_rps
    per_minute = 60 * load_rps
    out_s, in_s = _cooldowns(contest)
    return Contender(
        name=name,
        setting=f"{per_minute:.0f} requests a minute and instance ({REQUESTS_SAFETY_FACTOR:g} of capacity)",
        make=lambda: policies.requests_per_instance(per_minute, out_cooldown_s=out_s, in_cooldown_s=in_s),
        start_instances=contest.start(load_rps),
    )


def _gpu(name: str, contest: Contest) -> Contender:
    out_s, in_s = _cooldowns(contest)
    return _by_utilisation(
        name,
        contest,
        contest.gpu,
        lambda: policies.gpu_utilisation(UTILISATION_TARGET_PCT, out_cooldown_s=out_s, in_cooldown_s=in_s),
    )


def _cpu(name: str, contest: Contest) -> Contender:
    out_s, in_s = _cooldowns(contest)
    return _by_utilisation(
        name,
        contest,
        contest.cpu,
        lambda: policies.cpu_utilisation(UTILISATION_TARGET_PCT, out_cooldown_s=out_s, in_cooldown_s=in_s),
    )


def _by_utilisation(
    name: str, contest: Contest, curve: UtilisationCurve | None, make: Callable[[], Policy]
) -> Contender:
    if curve is None:
        raise UsageError(
            f"the ladder has no {name.upper()} utilisation", f"state it: --{name}-saturated-pct PCT, or drop {name}"
        )
    load_rps = min(curve.load_rps(UTILISATION_TARGET_PCT), contest.capacity_rps)
    top_pct = curve.at(contest.capacity_rps)
    never = "" if top_pct > UTILISATION_TARGET_PCT else f"; saturates at {top_pct:.0f} %, so it never fires"
    return Contender(
        name=name,
        setting=f"{UTILISATION_TARGET_PCT:g} % {name.upper()} ({curve.source}){never}",
        make=make,
        start_instances=contest.start(load_rps),
    )


def _fixed(name: str, contest: Contest) -> Contender:
    count = contest.instances(contest.profile.peak_rps, contest.reference.load_at_trigger_rps)
    return Contender(name, f"{count} instances, sized for the peak", policies.Fixed, count)


def _scheduled(name: str, contest: Contest) -> Contender:
    load_rps = contest.reference.load_at_trigger_rps
    actions = schedule(contest, load_rps)
    return Contender(
        name=name,
        setting=f"{len(actions)} scheduled actions that know the profile, T_total ahead",
        make=lambda: policies.Scheduled(actions),
        start_instances=actions[0].instances if actions else contest.start(load_rps),
    )


def schedule(contest: Contest, load_rps: float) -> tuple[ScheduledAction, ...]:
    """The fewest changes that keep every slot's peak at or under ``load_rps`` an instance, T_total ahead of need."""
    profile = contest.profile
    step_s = max(SCHEDULE_STEP_S, contest.t_total_s + 60)
    actions: list[ScheduledAction] = []
    at_s = 0.0
    while at_s < profile.duration_s:
        need = profile.peak_between(at_s, min(at_s + step_s + contest.t_total_s + 60, profile.duration_s))
        count = contest.instances(need, load_rps)
        if not actions or actions[-1].instances != count:
            actions.append(ScheduledAction(at_s, count))
        at_s += step_s
    return tuple(actions)


def _cooldowns(contest: Contest) -> tuple[float, float]:
    return contest.reference.scale_out_cooldown_s, contest.reference.scale_in_cooldown_s


_BUILDERS: dict[str, Callable[[str, Contest], Contender]] = {
    "headroom": by_rule,
    "drain": by_rule,
    "requests": _requests,
    "gpu": _gpu,
    "cpu": _cpu,
    "fixed": _fixed,
    "scheduled": _scheduled,
}
