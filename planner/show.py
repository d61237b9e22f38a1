"""How a number of the plan is written, wherever it is shown."""

from __future__ import annotations

from planner.artifacts.plan import Formula, Plan

Value = float | int | str | None


def number(value: Value) -> str:
    """Four significant digits, whole numbers whole, None as a dash."""
    if value is None:
        return "–"
    if isinstance(value, str):
        return value
    if isinstance(value, int) or float(value).is_integer():
        return f"{value:,.0f}"
    if abs(value) >= 1000:
        return f"{value:,.1f}"
    return f"{value:.4g}"


def with_unit(formula: Formula) -> str:
    """Value and unit; shares as percentages, milliseconds to a tenth."""
    if formula.name in SHARES and isinstance(formula.value, float):
        return f"{formula.value:.1%}"
    if formula.unit == "ms" and isinstance(formula.value, float) and formula.value < 1000:
        return f"{formula.value:.1f} ms"
    return f"{number(formula.value)} {formula.unit}".strip()


def inputs(formula: Formula) -> str:
    """``h = 0.25, q_max = 50``."""
    return ", ".join(f"{name} = {number(value)}" for name, value in formula.inputs.items())


def money(value: Value, digits: int = 2) -> str:
    """Dollars, or a dash where no price is known."""
    return f"${value:,.{digits}f}" if isinstance(value, int | float) else "–"


def title(plan: Plan) -> str:
    """Model, instance type and transport."""
    fingerprint = plan.fingerprint
    where = f" on {fingerprint.instance_type}, {fingerprint.transport}" if fingerprint else ""
    return f"{plan.model}{where}"


def asked(plan: Plan) -> str:
    """What was asked for, on one line."""
    i = plan.inputs
    trough = f", trough {number(i['trough_rps'])}" if i.get("trough_rps") is not None else ""
    peak = f" · peak {number(i['peak_rps'])} rps{trough}" if i.get("peak_rps") is not None else ""
    return (
        f"SLO {number(i.get('slo_ms'))} ms{peak} · surge x{number(plan.surge.surge_ratio)}"
        f" · rule {plan.rule} · sizing {plan.sizing}"
    )


SHARES = {"utilization_at_trigger", "surge_shed_fraction", "surge_slo_attainment"}
