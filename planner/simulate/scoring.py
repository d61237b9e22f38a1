"""From a raw run to the numbers an operator compares."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import pairwise

from planner.artifacts.simulation import PolicyRun, Score, Timeline
from planner.simulate.fleet import Activity, FleetSpec, Point, Run
from planner.simulate.interval import Interval, TtfabBins
from planner.simulate.profiles import Profile

# An instance given back and asked for again within this time was not worth giving back.
FLAP_WITHIN_S = 1800.0
# Enough points for a chart; a day of 10 s periods would be 8 640.
TIMELINE_POINTS = 480


def score(name: str, setting: str, spec: FleetSpec, profile: Profile, run: Run, usd_per_h: float | None) -> PolicyRun:
    """Summarise one policy's run."""
    bins, total = TtfabBins(spec.slo_s), run.total
    done = [activity for activity in run.activities if activity.outcome == "done"]
    outs = [activity for activity in done if activity.after > activity.before]
    hours = run.billed_instance_s / 3600
    surge = _within(profile.surge_s, run.points)
    detected_s = _after(profile.surge_s, [activity.at_s for activity in outs])
    return PolicyRun(
        score=Score(
            policy=name,
            setting=setting,
            offered=total.offered,
            slo_attainment=_attainment(bins, total),
            shed_fraction=total.shed / max(total.offered, 1),
            surge_shed_fraction=None if surge is None else surge.shed / max(surge.offered, 1),
            surge_slo_attainment=None if surge is None else _period_attainment(bins, surge),
            ttfab_p95_s=bins.quantile_s(total.ttfab_counts, 0.95),
            instance_h=hours,
            usd=None if usd_per_h is None else hours * usd_per_h,
            start_instances=spec.start_instances,
            peak_instances=max(point.in_service for point in run.points),
            scale_outs=len(outs),
            scale_ins=len(done) - len(outs),
            refused_by_quota=len(run.activities) - len(done),
            flaps=flaps(done),
            detection_s=detected_s,
            first_capacity_s=None if detected_s is None else detected_s + spec.t_total_s,
            kernel="exact" if run.kernel == "exact" else "batched",
        ),
        timeline=timeline(bins, run.points),
    )


def flaps(activities: Sequence[Activity]) -> int:
    """Scale-ins that were followed by a scale-out within half an hour."""
    count = 0
    for earlier, later in pairwise(activities):
        shrank, grew = earlier.after < earlier.before, later.after > later.before
        count += shrank and grew and later.at_s - earlier.at_s <= FLAP_WITHIN_S
    return count


def timeline(bins: TtfabBins, points: Sequence[Point]) -> Timeline:
    """Merge neighbouring periods until a chart's worth is left."""
    group = max(1, -(-len(points) // TIMELINE_POINTS))
    merged = [_merge(points[first : first + group]) for first in range(0, len(points), group)]
    parts = [point.interval for point in merged]
    return Timeline(
        end_s=[part.end_s for part in parts],
        offered_rps=[round(part.offered / (part.end_s - part.start_s), 4) for part in parts],
        served_rps=[round(part.completed / (part.end_s - part.start_s), 4) for part in parts],
        shed_fraction=[round(part.shed / max(part.offered, 1), 6) for part in parts],
        slo_attainment=[round(_period_attainment(bins, part), 6) for part in parts],
        in_service=[point.in_service for point in merged],
        desired=[point.desired for point in merged],
        concurrency_max=[part.peak for part in parts],
    )


def _merge(points: Sequence[Point]) -> Point:
    return Point(reduce(Interval.then, (p.interval for p in points)), points[-1].in_service, points[-1].desired)


def _within(span_s: tuple[float, float] | None, points: Sequence[Point]) -> Interval | None:
    """The periods that lie wholly in the surge."""
    if span_s is None:
        return None
    inside = [p.interval for p in points if p.interval.start_s >= span_s[0] and p.interval.end_s <= span_s[1]]
    return reduce(Interval.then, inside) if inside else None


def _attainment(bins: TtfabBins, part: Interval) -> float:
    return min(1.0, bins.within_slo(part.ttfab_counts) / part.offered) if part.offered else 1.0


def _period_attainment(bins: TtfabBins, part: Interval) -> float:
    """Of the requests that ended in the period: a completion belongs to where it is counted."""
    ended = part.shed + float(part.ttfab_counts.sum())
    return bins.within_slo(part.ttfab_counts) / ended if ended else 1.0


def _after(span_s: tuple[float, float] | None, times_s: Sequence[float]) -> float | None:
    if span_s is None:
        return None
    return next((time_s - span_s[0] for time_s in times_s if time_s >= span_s[0]), None)
