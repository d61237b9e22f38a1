"""On-demand prices of SageMaker real-time instances, for estimates only."""

from __future__ import annotations

PRICE_DATE = "2026-08-01"
PRICE_REGION = "us-east-1"

# Public list prices, USD per instance hour. An estimate names PRICE_DATE beside every number it derives.
_USD_PER_H = {
    "ml.g4dn.xlarge": 0.7364,
    "ml.g5.xlarge": 1.408,
    "ml.g5.2xlarge": 1.515,
    "ml.g5.4xlarge": 2.03,
    "ml.g6.xlarge": 1.1267,
    "ml.g6.2xlarge": 1.2224,
    "ml.c5.xlarge": 0.204,
    "ml.c6i.xlarge": 0.204,
    "ml.m5.xlarge": 0.23,
}


def usd_per_h(instance_type: str) -> float | None:
    """List price in USD per hour, or None when the table does not have the type (unknown is not zero)."""
    return _USD_PER_H.get(instance_type)
