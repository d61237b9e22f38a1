"""A T_total artifact as a person reads it."""

from __future__ import annotations

from pathlib import Path

from planner.artifacts.ttotal import Ttotal, TtotalRun


def text_summary(made: Ttotal, path: Path) -> str:
    """Per run the stages with their shares, then the total, the policy's bound and the metric's scope."""
    lines: list[str] = []
    for run in made.runs:
        lines += _run_lines(run)
    lines.append(_total(made))
    lines.append(f"ConcurrentRequestsPerModel counts: {made.metric_scope.replace('_', ' ')}")
    lines.append(f"written: {path}")
    return "\n".join(lines)


def _run_lines(run: TtotalRun) -> list[str]:
    head = f"run {run.run + 1}: {run.from_instances} -> {run.to_instances} instances: {run.outcome}"
    lines = [f"{head} ({run.detail})" if run.detail else head]
    for part in run.durations:
        mark = "  <- dominant" if run.dominant == f"{part.start} → {part.end}" else ""
        lines.append(f"  {part.start:>18} → {part.end:<18} {part.seconds:8.1f} s {part.share_pct:5.1f} %{mark}")
    if run.t_total_s is not None:
        lines.append(f"  {'T_total':>18}   {'':<18} {run.t_total_s:8.1f} s")
        shares = ", ".join(f"{boot} {count}" for boot, count in sorted(run.requests_per_boot_id.items()))
        lines.append(
            f"  p95 {_ms(run.probe_p95_before_ms)} before, {_ms(run.probe_p95_after_ms)} after "
            f"(target {_ms(run.probe_p95_recovered_target_ms)}); requests by instance: {shares or 'unknown'}"
        )
    return lines


def _total(made: Ttotal) -> str:
    if made.t_total_s is None:
        return "T_total: none; everything was put back as it was"
    spread = f", spread {made.spread_pct:.0f} % over {len(made.runs)} runs" if made.spread_pct is not None else ""
    text = (
        f"T_total: {made.t_total_s:.1f} s (worst{spread})" if spread else f"T_total: {made.t_total_s:.1f} s (one run)"
    )
    if made.policy_lag is not None:
        lag = made.policy_lag
        text += (
            f"; the policy may need {lag.bound_s:.0f} s more to notice ({lag.source}: {lag.formula}), "
            f"together {made.t_total_s + lag.bound_s:.1f} s"
        )
    return text


def _ms(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0f} ms"
