"""What the planner costs: a cold start, 1 000 what-if plans, two long simulations, one three times as long."""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from planner.artifacts.qmax import Qmax
from planner.artifacts.ttotal import Ttotal
from planner.measured import measured
from planner.simulate.arrivals import Arrivals
from planner.simulate.fleet import FleetSpec, simulate
from planner.simulate.policies import concurrency
from planner.simulate.profiles import constant
from planner.simulate.service import from_ladder
from planner.sweep import rows

ARTICLE = Path(__file__).parent.parent / "examples" / "article"
PLAN_S, PLAN_MIB, SWEEP_S = 1.0, 120.0, 10.0
SIMULATION_S, SIMULATION_MIB = 60.0, 1024.0
GROWTH = 4.5
"""Linear is 3."""


def main(argv: Sequence[str] | None = None) -> int:
    """Print each figure beside its bound; exit 3 when one is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="cold starts; the fastest counts")
    args = parser.parse_args(argv)
    plan_s, mib = min((cold_plan() for _ in range(args.repeat)), key=lambda run: run[0])
    count, sweep_s = sweep()
    simulated_s = [simulation(rate_rps, hours, start) for rate_rps, hours, start in ((5000, 1, 290), (50, 24, 4))]
    growth = simulation(5000, 0.15, 290) / simulation(5000, 0.05, 290)
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    results = [
        ("one plan, imports included", plan_s, PLAN_S, "s"),
        ("its peak memory", mib, PLAN_MIB, "MiB"),
        (f"sweep of {count} plans", sweep_s, SWEEP_S, "s"),
        ("1 h simulated at 5 000 rps", simulated_s[0], SIMULATION_S, "s"),
        ("24 h simulated at 50 rps", simulated_s[1], SIMULATION_S, "s"),
        ("3 x as long costs", growth, GROWTH, "x"),
        ("peak memory of all this", peak_mib, SIMULATION_MIB, "MiB"),
    ]
    for name, value, bound, unit in results:
        print(f"{name:28} {value:8.2f} {unit:3}  bound {bound:g}")
    return 0 if all(value < bound for _, value, bound, _ in results) else 3


def cold_plan() -> tuple[float, float]:
    """Wall seconds and peak MiB of a `python -m planner plan` on the published measurements."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "planner", "plan", "--qmax", str(ARTICLE / "qmax.json")]
        command += ["--ttotal", str(ARTICLE / "ttotal.json"), "--peak-rps", "5000", "--trough-rps", "10", "--out", out]
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.perf_counter() - began
        if process.returncode != 0:
            raise RuntimeError(f"plan exited {process.returncode}: {json.dumps(command)}")
        return wall_s, usage.ru_maxrss / 1024


def sweep() -> tuple[int, float]:
    """1 000 plans under both rules: 10 peaks, 10 surges, 5 delays."""
    m = measured([Qmax.load(ARTICLE / "qmax.json")], [Ttotal.load(ARTICLE / "ttotal.json")])
    peaks = [50.0 * 2**step for step in range(10)]
    surges = [1.05 + 0.04 * step for step in range(10)]
    delays = [60.0, 120.0, 180.0, 240.0, 320.0]
    began = time.perf_counter()
    count = sum(1 for _ in rows(m, peaks, surges, delays, ("headroom", "drain")))
    return count, time.perf_counter() - began


def simulation(rate_rps: float, hours: float, start_instances: int) -> float:
    """Wall seconds of one policy on constant traffic, service as published."""
    spec = FleetSpec(
        service=from_ladder([Qmax.load(ARTICLE / "qmax.json")]),
        slo_s=3.0,
        bound=50,
        t_total_s=260,
        start_instances=start_instances,
        min_instances=start_instances,
        max_instances=2 * start_instances,
    )
    policy = concurrency(37.5, 25, out_cooldown_s=30, in_cooldown_s=960)
    began = time.perf_counter()
    simulate(spec, policy, Arrivals(constant(rate_rps, 3600 * hours), seed=1))
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
