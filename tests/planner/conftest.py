"""The published measurements, and helpers that change one thing in them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from planner.artifacts.plan import Plan
from planner.artifacts.qmax import Qmax
from planner.artifacts.ttotal import Ttotal
from planner.decision import Ask
from planner.measured import Measured, measured
from planner.planning import make_plan

ARTICLE = Path(__file__).parents[2] / "examples" / "article"
NOW = datetime(2026, 8, 5, tzinfo=UTC)


@pytest.fixture(scope="session")
def qmax() -> Qmax:
    return Qmax.load(ARTICLE / "qmax.json")


@pytest.fixture(scope="session")
def ttotal() -> Ttotal:
    return Ttotal.load(ARTICLE / "ttotal.json")


@pytest.fixture(scope="session")
def article(qmax: Qmax, ttotal: Ttotal) -> Measured:
    return measured([qmax], [ttotal])


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A directory with the two published artifacts under their usual names."""
    for kind, name in (("qmax", "response-stream-g5xlarge-8b1b96bc"), ("ttotal", "g5xlarge-8b1b96bc")):
        (tmp_path / f"{kind}-kokoro-82m-{name}.json").write_text((ARTICLE / f"{kind}.json").read_text())
    return tmp_path


def ask(**changes: Any) -> Ask:
    return Ask(**({"slo_ms": 3000.0, "surge_ratio": 1.25, "peak_rps": 5000.0, "trough_rps": 10.0} | changes))


def plan_of(m: Measured, **changes: Any) -> Plan:
    return make_plan(m, ask(**changes), command=["plan"], now=NOW)


def edited(path: Path, target: Path, **changes: Any) -> Path:
    """Copy an artifact with dotted keys replaced: ``edited(p, q, **{"fingerprint.transport": "bidi"})``."""
    data = json.loads(path.read_text())
    for dotted, value in changes.items():
        *parents, leaf = dotted.split(".")
        place: Any = data
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        place[leaf] = value
    target.write_text(json.dumps(data))
    return target


def finding(plan: Plan, name: str) -> Any:
    return next(f for f in plan.findings if f.name == name)
