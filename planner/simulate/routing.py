"""How the endpoint spreads requests over instances."""

from __future__ import annotations

from typing import Literal

Routing = Literal["least_outstanding", "random"]
"""LEAST_OUTSTANDING_REQUESTS, or RANDOM (SageMaker's default)."""
