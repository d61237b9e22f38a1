"""What a ladder will take before it starts: schedule, wall clock, requests, dollars. Touches no AWS API."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from loadtest import observe
from loadtest.settings import Ladder
from loadtest.terminal import clock_text
from planner.artifacts.qmax import Qmax
from planner.errors import UsageError
from planner.prices import PRICE_DATE, PRICE_REGION, usd_per_h

PUBLISHED_SERVICE_S = 0.0613
PUBLISHED_RPS = 17.9
"""Of the published ml.g5.xlarge run: whole response at N=1, and what one instance tops out at."""
RAMP_S = 3.0


@dataclass(frozen=True)
class Speed:
    """What the requests estimate assumes."""

    service_s: float
    most_rps: float
    source: str

    def requests(self, concurrency: int, seconds: float) -> int:
        """A closed loop sends N every service time until the instance saturates."""
        return round(min(concurrency / self.service_s, self.most_rps) * seconds)


def assumed_speed(settings: Ladder) -> Speed:
    """From the newest ladder of this model in the output directory, else the published one."""
    found = sorted(
        Path(settings.common.out).glob(f"qmax-{settings.common.model}-*.json"), key=lambda path: path.stat().st_mtime
    )
    for path in reversed(found):
        try:
            earlier = Qmax.load(path)
        except UsageError:
            continue
        most_rps = max((rung.achieved_rps or 0.0 for rung in earlier.ladder), default=0.0)
        if earlier.service_mean_s and most_rps:
            return Speed(earlier.service_mean_s, most_rps, f"measured in {path.name}")
    return Speed(PUBLISHED_SERVICE_S, PUBLISHED_RPS, "as published for ml.g5.xlarge")


def wall_clock_s(settings: Ladder) -> float:
    """Without refinement: how many more rungs that takes depends on the answers."""
    drain_s = settings.common.slo_ms / 1e3
    return settings.runs * len(settings.rungs) * (RAMP_S + settings.hold_s + drain_s + settings.idle_s)


def freeze_ttl_s(settings: Ladder) -> float:
    """After this long somebody else may take a left-over freeze for dead."""
    refinements = 10 * settings.runs * (settings.hold_s + settings.idle_s) if settings.refine else 0.0
    return 1.5 * (wall_clock_s(settings) + refinements) + 900


def describe(settings: Ladder, instance_type: str) -> str:
    """The dry run's output."""
    speed = assumed_speed(settings)
    total_s = wall_clock_s(settings)
    lines = [
        f"endpoint {settings.common.endpoint}/{settings.common.variant}, {settings.common.transport}, "
        f"corpus {settings.common.corpus.name} (mean {settings.common.workload.chars_mean:g} characters)",
        f"SLO {settings.common.slo_ms:g} ms at p95 of {settings.common.slo_metric}; {settings.runs} run(s)",
        f"{'at':>9} {'N':>5} {'hold':>7} {'measured':>9} {'idle':>7} {'requests':>9}",
    ]
    at_s, requests = 0.0, 0
    for _ in range(settings.runs):
        for concurrency in settings.rungs:
            sent = speed.requests(concurrency, settings.hold_s)
            lines.append(
                f"{clock_text(at_s):>9} {concurrency:>5} {settings.hold_s:>5g} s {settings.measure_window_s:>7g} s "
                f"{settings.idle_s:>5g} s {sent:>9,}"
            )
            at_s += total_s / settings.runs / len(settings.rungs)
            requests += sent
    more = " plus up to 10 rungs of refinement" if settings.refine else ""
    lines.append(f"wall clock about {clock_text(total_s)}{more}; about {requests:,} requests ({speed.source})")
    price = usd_per_h(instance_type)
    if price is None:
        lines.append(f"cost unknown: no price for {instance_type} in the table of {PRICE_DATE}")
    else:
        lines.append(
            f"about ${price * total_s / 3600:.2f} for one {instance_type} over that time "
            f"(${price:g}/h, {PRICE_REGION} list price of {PRICE_DATE})"
        )
    lines += [f"note: {note}" for note in observe.unseen(settings.measure_window_s)]
    return "\n".join(lines)
