"""What the client saw, stretch by stretch, from its own records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from loadtest.stats import summarise
from planner.artifacts.qmax import SloMetric
from planner.artifacts.records import RequestRecord
from planner.artifacts.validate import StretchResult


def stretch(
    name: str,
    records: Sequence[RequestRecord],
    started_ns: int,
    span_s: tuple[float, float],
    *,
    slo_ms: float,
    metric: SloMetric,
) -> StretchResult:
    """Requests that were due in [start, end); one that was cut at the end of the run does not count."""
    first_ns, last_ns = (started_ns + round(at_s * 1e9) for at_s in span_s)
    mine = [r for r in records if first_ns <= r.intended_ns < last_ns and r.outcome != "cancelled"]
    outcomes = Counter(record.outcome for record in mine)
    times = [t for r in mine if (t := r.ttfab_ms if metric == "ttfab" else r.latency_ms) is not None]
    offered = len(mine)
    ok, shed = outcomes.pop("ok", 0), outcomes.pop("rejected", 0)
    return StretchResult(
        name=name,
        start_s=span_s[0],
        end_s=span_s[1],
        offered=offered,
        ok=ok,
        shed=shed,
        other={str(outcome): count for outcome, count in sorted(outcomes.items())},
        slo_attainment=sum(t <= slo_ms for t in times) / offered if offered else None,
        shed_fraction=shed / offered if offered else None,
        ttfab_ms=summarise(times),
    )
