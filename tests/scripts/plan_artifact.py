"""A feasible plan for tests, measured on the deployment that is live."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from planner.artifacts.base import Provenance
from planner.artifacts.fingerprint import Fingerprint
from planner.artifacts.plan import Derived, Plan, Surge


def derived(**changes: Any) -> Derived:
    numbers: dict[str, Any] = {
        "q_max": 50,
        "c_scale_max": 37.5,
        "c_scale_min": 25.0,
        "metric_ratio": 1.0,
        "metric_ratio_source": "closed_loop",
        "scaling_target_value": 37.5,
        "scale_in_threshold": 25.0,
        "w_max_s": 2.934,
        "queue_max_depth": 50,
        "min_instances": 1,
        "max_instances": 4,
        "min_safe_instances": 3,
        "scale_out_cooldown_s": 30,
        "scale_in_cooldown_s": 960,
        "utilization_at_trigger": 0.974,
        "instance_capacity_rps": 17.9,
        "load_at_trigger_rps": 17.9,
        "first_chunk_alarm_ms": 98.0,
    }
    return Derived(**(numbers | changes))


def plan(fingerprint: Fingerprint | None, **changes: Any) -> Plan:
    fields: dict[str, Any] = {
        "provenance": Provenance(
            tool_version="0",
            command=[],
            run_id="plan00000001",
            created_at=datetime(2026, 8, 4, tzinfo=UTC),
            region="us-east-1",
            endpoint="e",
            variant="v",
        ),
        "model": "m",
        "fingerprint": fingerprint,
        "inputs": {"slo_ms": 3000, "service_p95_s": 0.066},
        "rule": "headroom",
        "sizing": "throughput",
        "derived": derived(),
        "surge": Surge(
            surge_ratio=1.25,
            duration_s=260.2,
            shed_fraction=0.0,
            slo_attainment=1.0,
            time_to_saturation_s=None,
            p95_ms=2400.0,
            model="birth-death",
        ),
        "findings": [],
        "alternatives": [],
        "formulas": [],
        "metric_scope": "per_instance",
        "feasible": True,
        "verdict": "ok",
    }
    return Plan(**(fields | changes))


def hand_over(terraform_dir: Path, path: Path) -> None:
    """What the planner writes for Terraform."""
    (terraform_dir / "plan.auto.tfvars").write_text(f'plan_json = "{path}"\n')
