"""Join the client's records with what was watched, and judge."""

from __future__ import annotations

from datetime import datetime

from loadtest.openloop import lateness_p99_ms
from planner.artifacts.base import Provenance
from planner.artifacts.validate import Spent, StretchResult, Validation
from scripts.loadproof.case import Case
from scripts.loadproof.client_side import stretch
from scripts.loadproof.conduct import Conducted, Load
from scripts.loadproof.judge import Observed, judge
from scripts.loadproof.observe import Seen, Watch, seen
from scripts.loadproof.scenario import STRETCHES


def validation(
    case: Case, load: Load, watch: Watch, conducted: Conducted, *, provenance: Provenance, started: datetime
) -> Validation:
    """The artifact without its records file."""
    scenario = case.scenario
    changes = seen(watch.fleet, scenario.instances, scenario.surge_begins_s, scenario.ends_s[2])
    parts = [
        _stretch(case, load, name, begin_s, end_s)
        for name, begin_s, end_s in zip(STRETCHES, (0.0, *scenario.ends_s), scenario.ends_s, strict=False)
        if end_s > begin_s and begin_s < conducted.lasted_s
    ]
    watched = _observed(case, load, conducted, changes, parts)
    judged = judge(case.forecast, watched)
    return Validation(
        provenance=provenance,
        model=case.plan.model,
        fingerprint=case.identity,
        plan_run_id=case.plan.provenance.run_id,
        qmax_run_id=case.qmax.provenance.run_id,
        started_at=started,
        start_instances=scenario.instances,
        base_rps=scenario.base_rps,
        surge_ratio=scenario.surge_ratio,
        surge_s=scenario.surge_s,
        seed=scenario.seed,
        verdict=judged.verdict,
        reasons=judged.reasons,
        scores=judged.scores,
        stretches=[*parts, watched.exposed],
        fleet=watch.fleet,
        alarms=watch.alarm_changes,
        activities=conducted.activities,
        detection_s=watched.detection_s,
        scale_out_s=watched.scale_out_s,
        client_late_p99_ms=watched.late_p99_ms,
        spent=Spent(
            minutes=conducted.lasted_s / 60,
            usd=case.budget.usd(watch.instance_s),
            stopped_by=conducted.stopped_by,
        ),
    )


def _observed(case: Case, load: Load, conducted: Conducted, changes: Seen, parts: list[StretchResult]) -> Observed:
    scenario, lasted_s = case.scenario, conducted.lasted_s
    begins_s, quiet_from_s = scenario.surge_begins_s, scenario.ends_s[2]
    ends_s = max(begins_s, min(scenario.surge_ends_s, lasted_s))
    served_s = min(changes.in_service_s or ends_s, ends_s)
    exposed = _stretch(case, load, "surge until new capacity", begins_s, served_s)
    return Observed(
        surge=next((part for part in parts if part.name == "surge"), exposed),
        exposed=exposed,
        detection_s=_since(changes.scaled_out_s, begins_s),
        scale_out_s=_since(changes.in_service_s, changes.scaled_out_s),
        scale_in_s=_since(changes.scaled_in_s, quiet_from_s),
        surge_lasted_s=ends_s - begins_s,
        quiet_lasted_s=max(0.0, lasted_s - quiet_from_s) if scenario.quiet_s else 0.0,
        slo_ms=case.qmax.method.slo_ms,
        late_p99_ms=lateness_p99_ms(load.records),
        stopped_by=conducted.stopped_by if lasted_s < scenario.surge_ends_s else None,
    )


def _stretch(case: Case, load: Load, name: str, begin_s: float, end_s: float) -> StretchResult:
    method = case.qmax.method
    return stretch(
        name, load.records, load.started_ns, (begin_s, end_s), slo_ms=method.slo_ms, metric=method.slo_metric
    )


def _since(later_s: float | None, earlier_s: float | None) -> float | None:
    return None if later_s is None or earlier_s is None else round(later_s - earlier_s, 2)
