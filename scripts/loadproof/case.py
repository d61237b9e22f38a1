"""What is tested: the plan, its ladder, the deployment, and how it goes."""

from __future__ import annotations

from dataclasses import dataclass

from planner.artifacts.fingerprint import Fingerprint
from planner.artifacts.plan import Plan
from planner.artifacts.qmax import Qmax
from scripts.aws.endpoint import LiveEndpoint
from scripts.loadproof.conduct import Budget
from scripts.loadproof.forecast import Forecast
from scripts.loadproof.scenario import Scenario


@dataclass(frozen=True)
class Case:
    """Fixed before anything is changed."""

    plan: Plan
    qmax: Qmax
    live: LiveEndpoint
    identity: Fingerprint
    scenario: Scenario
    forecast: Forecast
    alarm_names: list[str]
    budget: Budget
