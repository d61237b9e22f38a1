"""From raw records to the facts of one window."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import fmean, pstdev

from loadtest.inbox import Rows
from loadtest.stats import nearest_rank, summarise
from loadtest.steadiness import NOT_TESTED, Steadiness, examine
from loadtest.verdict import ClientLoad, Judgement, RungFacts, client_bound, judge
from planner.artifacts.qmax import ClientHealth, Method, Quantiles, Rung, SloMetric
from planner.artifacts.records import RequestRecord

PCM_BYTES_PER_S = 48_000
"""The container's wire contract: 16 bit, mono, 24 kHz."""
REFUSED = ("rejected", "throttled")


@dataclass(frozen=True)
class Window:
    """Half-open, UTC ns."""

    start_ns: int
    end_ns: int

    @property
    def seconds(self) -> float:
        """Its length."""
        return (self.end_ns - self.start_ns) / 1e9

    def holds(self, at_ns: int) -> bool:
        """Whether a moment lies inside."""
        return self.start_ns <= at_ns < self.end_ns


def utc(at_ns: int) -> datetime:
    """As artifacts state it."""
    return datetime.fromtimestamp(at_ns / 1e9, UTC)


def in_flight_mean(records: Iterable[RequestRecord], window: Window) -> float:
    """Time average of the number of requests outstanding."""
    overlap_ns = sum(
        max(0, min(record.done_ns, window.end_ns) - max(record.sent_ns, window.start_ns)) for record in records
    )
    return overlap_ns / (window.end_ns - window.start_ns)


def client_load(rows: Rows, window: Window) -> ClientLoad:
    """How busy the load processes were inside the window; the worst of them counts."""
    gaps = sorted(gap_ms for at_ns, gap_ms in rows.gaps if window.holds(at_ns))
    health = [report for report in rows.health if window.holds(report.at_ns)]
    workers = {report.worker for report in health}
    lags = [sorted(lag for report in health if report.worker == name for lag in report.lags_ms) for name in workers]
    shares = [[report.cpu_share for report in health if report.worker == name] for name in workers]
    return ClientLoad(
        dispatch_gap_p95_ms=nearest_rank(gaps, 0.95) if gaps else None,
        loop_lag_p95_ms=max((nearest_rank(values, 0.95) for values in lags if values), default=None),
        cpu_share=max((fmean(values) for values in shares), default=None),
    )


@dataclass(frozen=True)
class WindowFacts:
    """Requests that ended inside a window, sorted out."""

    ended: list[RequestRecord]
    ok: list[RequestRecord]
    stalled: int
    in_flight: float

    @property
    def refused(self) -> int:
        """Turned away by the container or by AWS."""
        return sum(record.outcome in REFUSED for record in self.ended)

    @property
    def failed(self) -> int:
        """Neither answered nor turned away, or out for twice as long as the SLO and as anything that came back."""
        return len(self.ended) - len(self.ok) - self.refused + self.stalled


def window_facts(records: Sequence[RequestRecord], window: Window, slo_ms: float) -> WindowFacts:
    """``ended`` is in completion order. Requests cut off when the rung ended count for nothing but their presence."""
    ended = sorted(
        (r for r in records if window.holds(r.done_ns) and r.outcome != "cancelled"), key=lambda r: r.done_ns
    )
    # A slow rung has old requests out when its window closes; a stalled one is older than anything that came back.
    longest_ns = max((r.done_ns - r.sent_ns for r in ended), default=window.end_ns)
    oldest_ns = window.end_ns - 2 * max(int(slo_ms * 1e6), longest_ns)
    stalled = sum(r.sent_ns < oldest_ns and r.done_ns >= window.end_ns for r in records)
    return WindowFacts(ended, [r for r in ended if r.outcome == "ok"], stalled, in_flight_mean(records, window))


def measure(
    rows: Rows, window: Window | None, *, concurrency: int, run: int, method: Method, pcm: bool, voids: Sequence[str]
) -> Rung:
    """The rung of the artifact; without a window (the rung never got going) there is nothing but the reasons."""
    if window is None:
        return Rung(concurrency=concurrency, run=run, verdict="invalid", point_verdict=None, reasons=list(voids))
    facts = window_facts(rows.records, window, method.slo_ms)
    values = slo_values(facts.ok, method)
    client = client_load(rows, window)
    bound = client_bound(client, nearest_rank(sorted(values), 0.5) if values else None)
    steadiness = examine(values, concurrency) if values else NOT_TESTED
    judgement = judge(
        RungFacts(
            concurrency=concurrency,
            slo_ms=method.slo_ms,
            values_ms=values,
            rejected=facts.refused,
            failed=facts.failed,
            in_flight_mean=facts.in_flight,
            steadiness=steadiness,
            voids=[*voids, *several_instances(facts.ok), *([bound] if bound else [])],
        )
    )
    return _rung(facts, window, concurrency, run, judgement, steadiness, client, bool(bound), pcm)


def slo_values(ok: Sequence[RequestRecord], method: Method) -> list[float]:
    """What the SLO is about, in ms, in completion order."""
    found = [r.ttfab_ms if method.slo_metric == "ttfab" else r.latency_ms for r in ok]
    return [value for value in found if value is not None]


def quantiles(rung: Rung, metric: SloMetric) -> Quantiles | None:
    """Of what the SLO is about."""
    return rung.ttfab_ms if metric == "ttfab" else rung.latency_ms


def several_instances(ok: Sequence[RequestRecord]) -> list[str]:
    """A reason if more than one container answered."""
    boots = {record.boot_id for record in ok if record.boot_id}
    return [f"{len(boots)} containers answered: capacity changed or one restarted"] if len(boots) > 1 else []


def _rung(
    facts: WindowFacts,
    window: Window,
    concurrency: int,
    run: int,
    judgement: Judgement,
    steadiness: Steadiness,
    client: ClientLoad,
    bound: bool,
    pcm: bool,
) -> Rung:
    services = [r.service_ms for r in facts.ok if r.service_ms is not None]
    return Rung(
        concurrency=concurrency,
        run=run,
        verdict=judgement.verdict,
        point_verdict=judgement.point,
        reasons=judgement.reasons,
        window_start=utc(window.start_ns),
        window_end=utc(window.end_ns),
        in_flight_mean=round(facts.in_flight, 4),
        achieved_rps=len(facts.ok) / window.seconds,
        completed=len(facts.ended),
        ok=len(facts.ok),
        outcomes=dict(Counter(r.outcome for r in facts.ended)),
        ttfab_ms=summarise([r.ttfab_ms for r in facts.ok if r.ttfab_ms is not None]),
        latency_ms=summarise([r.latency_ms for r in facts.ok if r.latency_ms is not None]),
        service_ms_mean=fmean(services) if services else None,
        service_ms_cv=pstdev(services) / fmean(services) if len(services) > 1 and fmean(services) > 0 else None,
        drift_ms=steadiness.drift if steadiness.drift is None or math.isfinite(steadiness.drift) else None,
        chars_mean=fmean(r.chars for r in facts.ok) if facts.ok else None,
        audio_s_per_s=sum(r.bytes for r in facts.ok) / PCM_BYTES_PER_S / window.seconds if pcm else None,
        client=ClientHealth(
            dispatch_gap_p95_ms=client.dispatch_gap_p95_ms,
            loop_lag_p95_ms=client.loop_lag_p95_ms,
            cpu_share=client.cpu_share,
            bound=bound,
        ),
    )
