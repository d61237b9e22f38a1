"""What a person sees: a line that moves while it runs, a table when it is done."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from loadtest.measure import quantiles
from planner.artifacts.qmax import Qmax, Rung, SloMetric

_CLEAR = "\r\x1b[K"
_COLOURS = {"pass": "32", "fail": "31", "undecided": "33", "invalid": "33"}


class Screen:
    """stderr: a rewritten line on a terminal, nothing but finished rungs elsewhere."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._stream = stream
        self.live = stream.isatty()

    def show(self, text: str) -> None:
        """Replace the moving line."""
        if self.live:
            self._write(_CLEAR + text[: shutil.get_terminal_size().columns - 1])

    def line(self, text: str) -> None:
        """A line that stays."""
        self._write(f"{_CLEAR if self.live else ''}{text}\n")

    def _write(self, text: str) -> None:
        with suppress(OSError):  # a closed terminal must not stop a measurement
            self._stream.write(text)
            self._stream.flush()


def progress(rung_text: str, phase: str, left_s: float | None, in_flight: int, values_ms: Sequence[float]) -> str:
    """The moving line: rung, time left, p95 so far."""
    left = f"{left_s:4.0f} s left" if left_s is not None else ""
    p95 = f"p95 {sorted(values_ms)[max(0, -(-19 * len(values_ms) // 20) - 1)]:.0f} ms" if values_ms else ""
    return "  ".join(
        part for part in (rung_text, phase, left, f"{in_flight} in flight", p95, f"n={len(values_ms)}") if part
    )


def rung_line(rung: Rung, metric: SloMetric) -> str:
    """One finished rung."""
    found = quantiles(rung, metric)
    numbers = f"p95 {found.p95:8.1f} ms  {rung.achieved_rps or 0:7.2f} rps  n={found.n}" if found else "no data"
    why = f"  ({'; '.join(rung.reasons)})" if rung.reasons else ""
    return f"N={rung.concurrency:<5d} {rung.verdict:<9s} {numbers}{why}"


def table(artifact: Qmax, *, colour: bool) -> str:
    """The whole ladder, aligned."""
    metric = artifact.method.slo_metric
    head = (
        f"{'run':>3} {'N':>5} {'n':>6} {'p50 ms':>9} {'p95 ms':>9} {'bound ms':>11} {'p99 ms':>9} {'rps':>8} "
        f"{'in flight':>9} {'CW max':>7}  verdict"
    )
    rows = [_row(rung, metric, colour) for rung in artifact.ladder]
    return "\n".join([f"{metric} against an SLO of {artifact.method.slo_ms:g} ms at p95", head, *rows])


def _row(rung: Rung, metric: SloMetric, colour: bool) -> str:
    found = quantiles(rung, metric)
    missed = rung.point_verdict == "fail"
    bound = (found.p95_lower if missed else found.p95_upper) if found else None
    seen = rung.cloudwatch.concurrency_max if rung.cloudwatch else None
    cells = [
        f"{rung.run + 1:>3}",
        f"{rung.concurrency:>5}",
        _cell(found.n if found else None, 6, 0),
        _cell(found.p50 if found else None, 9, 1),
        _cell(found.p95 if found else None, 9, 1),
        _cell(bound, 11, 1, "≥ " if missed else "≤ "),
        _cell(found.p99 if found else None, 9, 1),
        _cell(rung.achieved_rps, 8, 2),
        _cell(rung.in_flight_mean, 9, 2),
        _cell(seen, 7, 0),
    ]
    verdict = f"\x1b[{_COLOURS[rung.verdict]}m{rung.verdict}\x1b[0m" if colour else rung.verdict
    why = f": {'; '.join(rung.reasons)}" if rung.reasons else ""
    return f"{' '.join(cells)}  {verdict}{why}"


def _cell(value: float | None, width: int, digits: int, sign: str = "") -> str:
    return f"{'-' if value is None else f'{sign}{value:.{digits}f}':>{width}}"


def sentence(artifact: Qmax) -> str:
    """The answer in words."""
    slo = f"p95 {artifact.method.slo_metric} <= {artifact.method.slo_ms:g} ms"
    if artifact.outcome == "found":
        missed = min(
            r.concurrency for r in artifact.ladder if r.verdict == "fail" and r.concurrency > (artifact.q_max or 0)
        )
        return f"Q_max = {artifact.q_max} ({slo}), bracketed by {missed}"
    if artifact.outcome == "lower_bound":
        return f"Q_max >= {artifact.q_max} ({slo}): no rung missed it; add higher rungs to bracket it"
    if artifact.outcome == "none_meets_slo":
        return f"no concurrency meets {slo}"
    return f"undecided: no valid rung says whether {slo} holds"


def clock_text(seconds: float) -> str:
    """A duration as people read it."""
    return time.strftime("%H:%M:%S" if seconds >= 3600 else "%M:%S", time.gmtime(max(0.0, round(seconds))))


def is_terminal() -> bool:
    """Whether stdout may carry colours."""
    return sys.stdout.isatty()
