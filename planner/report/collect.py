"""Which artifacts of a model exist."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from planner.artifacts.base import first_fault, read_json
from planner.artifacts.plan import Plan
from planner.artifacts.qmax import OpenLoop, Qmax
from planner.artifacts.simulation import Simulation
from planner.artifacts.ttotal import Ttotal
from planner.artifacts.validate import Validation
from planner.errors import UsageError
from planner.pick import current


@dataclass(frozen=True)
class Evidence:
    """Everything the report may show; the newest of each kind, None where nothing was measured."""

    model: str
    qmax: Qmax | None
    ttotal: Ttotal | None
    plan: Plan | None
    open_loop: OpenLoop | None
    simulations: tuple[Simulation, ...]
    validation: Validation | None
    files: tuple[Path, ...]
    """What was read, for download."""


def collect(model: str, directories: list[Path]) -> Evidence:
    """Read the model's artifacts; UsageError when there is nothing to report."""
    qmax = newest([item for d in directories for item in current(d, Qmax, model)])
    ttotal = newest([item for d in directories for item in current(d, Ttotal, model)])
    opened = newest([item for d in directories for item in current(d, OpenLoop, model)])
    plan_path = first_existing(directories, f"plan-{model}.json")
    validation_path = first_existing(directories, f"validate-{model}.json")
    simulation_paths = sorted({path for d in directories for path in d.glob("simulate-*.json")})
    found = [item[0] for item in (qmax, ttotal, opened) if item is not None]
    found += [path for path in (plan_path, validation_path) if path is not None]
    if not found and not simulation_paths:
        looked = ", ".join(str(d) for d in directories)
        raise UsageError(f"{looked}: nothing measured for {model}", "`make qmax`, `make ttotal` and `make plan` first")
    return Evidence(
        model=model,
        qmax=qmax[1] if qmax else None,
        ttotal=ttotal[1] if ttotal else None,
        plan=Plan.load(plan_path) if plan_path else None,
        open_loop=opened[1] if opened else None,
        simulations=tuple(simulation(path) for path in simulation_paths),
        validation=Validation.load(validation_path) if validation_path else None,
        files=(*found, *simulation_paths),
    )


def newest(found: list[tuple[Path, Any]]) -> tuple[Path, Any] | None:
    """By creation time."""
    return max(found, key=lambda item: item[1].provenance.created_at, default=None)


def first_existing(directories: list[Path], name: str) -> Path | None:
    """The first directory that holds the file."""
    return next((d / name for d in directories if (d / name).is_file()), None)


def simulation(path: Path) -> Simulation:
    """A simulation's result, or UsageError naming the fault."""
    try:
        return Simulation.model_validate(read_json(path))
    except ValidationError as error:
        raise UsageError(f"{path}: {first_fault(error)}", "simulate again with this version") from None
