"""What the demo runs, in order: the commands a user would type."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Target:
    """What the demo measures and where it writes."""

    endpoint: str
    variant: str
    model: str
    out: Path

    @property
    def artifacts(self) -> Path:
        return self.out / "artifacts"

    @property
    def terraform_dir(self) -> Path:
        """A copy, so that the demo's state never meets a real deployment's."""
        return self.out / "terraform"

    @property
    def rehearsal_dir(self) -> Path:
        return self.out / "rehearsal"


@dataclass(frozen=True, slots=True)
class Step:
    """One command; its output goes to a log of its own."""

    name: str
    says: str
    command: Sequence[str]
    accepts: tuple[int, ...] = (0,)
    """Exit codes that let the demo go on: 3 where a "no" is itself the result."""
    tries: int = 1
    """How often it is run while its answer is "undecided": other programs on this machine may have disturbed it."""


# One thread an instance, so that a second instance on this machine really doubles the capacity.
INSTANCE_ENV = "THREADS=1"
# A CPU thread speaks about one request a second, so the promise is longer than a GPU's; p95 needs 59 answers.
LADDER = ["--slo-ms", "8000", "--rungs", "1,3,6,12", "--hold-s", "36", "--measure-window-s", "35", "--idle-s", "1"]
# The probe measures its own reference, as this machine is not equally fast for minutes. Both instances share its cores,
# and the longest texts decide the p95 of few users: recovered is half way between "no better" and "twice as good".
PROBE = ["--reference", "probe", "--recovered-factor", "1.5", "--probe-concurrency", "8", "--baseline-s", "20"]
PROBE += ["--hold-s", "30", "--metric-wait-s", "30"]
# What two instances on two cores can carry.
PEAK = ["--peak-rps", "1", "--trough-rps", "0.2"]


def python(module: str, *arguments: str | Path) -> list[str]:
    """The command line of one of our modules."""
    return [sys.executable, "-m", *module.split(), *map(str, arguments)]


def with_terraform(target: Target) -> list[Step]:
    """The whole chain."""
    tf = ("--terraform-dir", target.terraform_dir)
    deploy = python("scripts.deploy", *_endpoint(target), "--model", target.model, *tf, "--env", INSTANCE_ENV)
    apply_plan = python("scripts.apply_plan", *_endpoint(target), *tf)
    surge = ("--hold-s", "30", "--after-s", "15", "--max-minutes", "6")
    return [
        Step("rehearsal", "starting AWS on this machine", python("rehearsal up")),
        Step("deploy", "Terraform: registry, image, weights, endpoint", deploy),
        Step("drift", "comparing live state with intent", _guard("scripts.drift", target, *tf), accepts=(0,)),
        *_measurements(target),
        _plan(target, "--tfvars", target.terraform_dir / "plan.auto.tfvars"),
        Step("apply", "Terraform: autoscaling from the plan", apply_plan),
        Step("validate", "comparing the deployed policy with the plan", _guard("scripts.validate", target, *tf)),
        Step("surge", "replaying the surge", _guard("scripts.validate_load", target, *tf, *surge), accepts=(0, 3, 4)),
        _report(target),
    ]


def seeded(target: Target) -> list[Step]:
    """What can be shown without Terraform: everything but the gated autoscaling."""
    up = python("rehearsal up", "--seed", *_endpoint(target), "--env", INSTANCE_ENV)
    return [
        Step("rehearsal", "starting AWS on this machine with a ready endpoint", up),
        *_measurements(target),
        _plan(target),
        _report(target),
    ]


def _endpoint(target: Target) -> list[str]:
    return ["--endpoint", target.endpoint, "--variant", target.variant]


def _guard(module: str, target: Target, *arguments: str | Path) -> list[str]:
    return python(module, *_endpoint(target), "--model", target.model, "--artifacts", target.artifacts, *arguments)


def _measurements(target: Target) -> list[Step]:
    common: list[str | Path] = [*_endpoint(target), "--model", target.model, "--out", target.artifacts]
    ttotal = python("scripts.ttotal", *common, *PROBE)
    return [
        Step("qmax", "measuring Q_max with real speech", python("loadtest.ladder", *common, *LADDER), tries=2),
        Step("ttotal", "measuring T_total with a forced scale-out", ttotal, tries=2),
    ]


def _plan(target: Target, *arguments: str | Path) -> Step:
    folders = ("--artifacts", target.artifacts, "--out", target.artifacts)
    return Step(
        "plan", "computing the plan", python("planner plan", "--model", target.model, *folders, *PEAK, *arguments)
    )


def _report(target: Target) -> Step:
    folders = ("--artifacts", target.artifacts, "--out", target.out)
    return Step("report", "writing the report", python("planner report", "--model", target.model, *folders))
