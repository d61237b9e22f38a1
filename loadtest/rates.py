"""What a stretch of open-loop traffic showed, from its raw records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from loadtest.inbox import Rows
from loadtest.measure import REFUSED, Window, client_load, in_flight_mean, several_instances, utc
from loadtest.observe import PERIOD_S, Read, whole_periods
from loadtest.openloop import LATE_MS, lateness_p99_ms
from loadtest.stats import nearest_rank, summarise
from loadtest.traffic import Stretch, Surge
from loadtest.verdict import client_bound
from planner.artifacts.qmax import OpenLoopRate
from planner.artifacts.records import RequestRecord


@dataclass(frozen=True)
class Measured:
    """One stretch; ``bound`` says why the client may have been the limit."""

    stretch: Stretch
    window: Window
    rate: OpenLoopRate
    attainment: float | None
    """Share of all requests due that were answered within the SLO."""
    late_p99_ms: float | None
    bound: str


def measure(surge: Surge, rows: Rows, started_ns: int, sent_by: int, voids: Sequence[str]) -> list[Measured]:
    """Every stretch; ``sent_by`` load processes were to send it."""
    found = []
    for index, stretch in enumerate(surge.stretches):
        window = Window(started_ns + int(stretch.measured_from_s * 1e9), started_ns + int(stretch.end_s * 1e9))
        due = sum(
            s == index and stretch.measured_from_s <= at_s < stretch.end_s
            for at_s, s in zip(surge.schedule.due_s, surge.schedule.stretch, strict=True)
        )
        found.append(_stretch(surge, rows, stretch, window, due, sent_by, voids))
    return found


def _stretch(
    surge: Surge, rows: Rows, stretch: Stretch, window: Window, due: int, sent_by: int, voids: Sequence[str]
) -> Measured:
    mine = [r for r in rows.records if window.holds(r.intended_ns) and r.outcome != "cancelled"]
    ok = [r for r in mine if r.outcome == "ok"]
    values = [r.ttfab_ms if surge.common.slo_metric == "ttfab" else r.latency_ms for r in ok]
    known = [value for value in values if value is not None]
    late_ms = lateness_p99_ms(mine)
    others = several_instances(ok) if surge.rates else []
    bound = "; ".join([*voids, *others, *_behind(rows, window, mine, due, late_ms, known)])
    return Measured(
        stretch=stretch,
        window=window,
        rate=OpenLoopRate(
            offered_rps=due / window.seconds,
            achieved_rps=len(ok) / window.seconds,
            shed_fraction=sum(r.outcome in REFUSED for r in mine) / len(mine) if mine else 0.0,
            ttfab_ms=summarise([r.ttfab_ms for r in ok if r.ttfab_ms is not None]),
            in_flight_mean=in_flight_mean(rows.records, window),
            concurrency_10s_max=None,
            metric_ratio=None,
            client_bound=bool(bound),
            window_s=window.seconds,
        ),
        attainment=sum(value <= surge.common.slo_ms for value in known) / due if due else None,
        late_p99_ms=late_ms,
        bound=bound if sent_by else "no load process",
    )


def _behind(
    rows: Rows, window: Window, mine: Sequence[RequestRecord], due: int, late_ms: float | None, values: list[float]
) -> list[str]:
    reasons = []
    if len(mine) < due:
        reasons.append(f"client-bound: {due - len(mine)} of {due} requests due were not sent or not finished")
    if late_ms is not None and late_ms > LATE_MS:
        reasons.append(f"client-bound: requests left {late_ms:.0f} ms late at p99")
    load = client_load(rows, window)
    bound = client_bound(load, nearest_rank(sorted(values), 0.5) if values else None)
    return [*reasons, bound] if bound else reasons


def joined(measured: Measured, read: Read) -> Measured:
    """With CloudWatch's mean 10 s Maximum and its ratio to the mean in flight over the very same periods."""
    inside = whole_periods(utc(measured.window.start_ns), utc(measured.window.end_ns), PERIOD_S)
    if inside is None:
        return measured
    values = [
        v for at, v in read("ConcurrentRequestsPerModel", "Maximum", PERIOD_S, *inside) if inside[0] <= at < inside[1]
    ]
    if not values:
        return measured
    peak, mean = fmean(values), measured.rate.in_flight_mean
    seen = {"concurrency_10s_max": peak, "metric_ratio": round(peak / mean, 4) if mean > 0 else None}
    rate = measured.rate.model_copy(update=seen)
    return Measured(measured.stretch, measured.window, rate, measured.attainment, measured.late_p99_ms, measured.bound)


def table(found: Sequence[Measured]) -> str:
    """Aligned, one stretch a line."""
    head = (
        f"{'stretch':<14} {'offered rps':>11} {'ok rps':>8} {'shed':>7} {'in SLO':>7} {'p50 ms':>9} {'p95 ms':>9} "
        f"{'in flight':>9} {'10 s max':>8} {'ratio':>6} {'late p99 ms':>11}"
    )
    return "\n".join([head, *(_line(each) for each in found)])


def _line(each: Measured) -> str:
    rate, ttfab = each.rate, each.rate.ttfab_ms
    cells = [
        f"{each.stretch.name:<14}",
        f"{rate.offered_rps:>11.2f}",
        f"{rate.achieved_rps:>8.2f}",
        f"{rate.shed_fraction:>7.1%}",
        _cell(each.attainment, 7, ".1%"),
        _cell(ttfab.p50 if ttfab else None, 9, ".1f"),
        _cell(ttfab.p95 if ttfab else None, 9, ".1f"),
        f"{rate.in_flight_mean:>9.2f}",
        _cell(rate.concurrency_10s_max, 8, ".1f"),
        _cell(rate.metric_ratio, 6, ".2f"),
        _cell(each.late_p99_ms, 11, ".1f"),
    ]
    return " ".join(cells) + (f"  {each.bound}" if each.bound else "")


def _cell(value: float | None, width: int, form: str) -> str:
    return f"{'-':>{width}}" if value is None else f"{value:>{width}{form}}"
