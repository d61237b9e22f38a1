"""What a fleet costs, from the list price and from what it really serves."""

from __future__ import annotations

from planner import prices
from planner.decision import Decision
from planner.measured import Measured

Cost = dict[str, float | str | None]


def price_usd_per_h(measured: Measured) -> float | None:
    """List price of the measured instance type; None when the table does not have it."""
    return prices.usd_per_h(measured.fingerprint.instance_type) if measured.fingerprint else None


def cost(measured: Measured, decision: Decision) -> Cost:
    """Dollars an hour at both ends of the fleet, and per million characters served at the peak."""
    price = price_usd_per_h(measured)
    derived, served = decision.derived, decision.at_peak.served_rps
    per_h = None if price is None else price * derived.max_instances
    chars_per_h = None if measured.chars_mean is None else served * 3600 * measured.chars_mean
    return {
        "usd_per_instance_h": price,
        "usd_per_h_at_max": per_h,
        "usd_per_h_at_min": None if price is None else price * derived.min_instances,
        "usd_per_million_chars": None if per_h is None or not chars_per_h else per_h / chars_per_h * 1e6,
        "served_rps_at_peak": served,
        "chars_per_request": measured.chars_mean,
        "price_date": prices.PRICE_DATE,
        "price_region": prices.PRICE_REGION,
    }
