"""Our container beside other Kokoro servers, all on this machine's CPU: ``python -m bench.peers``.

Each server runs as its authors ship it; the peers come from environments of their own, because their dependencies and
ours cannot be met together. All are loaded, and they take turns, so a busy machine slows all of them alike.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import itertools
import json
import operator
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.peers.designs import Design, fastkokoro, kokoro_onnx, ours, upstream, versions, weights_for_peers
from bench.peers.load import TEXTS, Cell, closed_loop, speak
from bench.peers.serving import all_running, free_port
from bench.peers.table import table
from container.weights import resolve
from planner.errors import ExitCode, exit_status

PEERS = {"kokoro-onnx": ("kokoro-onnx", "onnxruntime"), "fastkokoro": ("fastkokoro", "onnxruntime")}
"""The packages whose versions are printed."""
NOT_PACKAGED = "Kokoro-FastAPI: it is not published as a package"
WARM_UP_TEXTS = 3


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.peers", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kokoro-onnx-python", type=Path, metavar="PATH", help="interpreter that has kokoro-onnx")
    parser.add_argument("--fastkokoro-python", type=Path, metavar="PATH", help="interpreter that has fastkokoro[cpu]")
    parser.add_argument("--upstream", action="store_true", help="upstream's torch model too, on a plain server")
    parser.add_argument("--concurrency", default="1,4,8", help="callers, comma separated (1,4,8)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of a turn (10)")
    parser.add_argument("--rounds", type=int, default=2, help="turns each server takes at each concurrency (2)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every answer there")
    options = parser.parse_args(argv)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the servers must not outlive this process
    given = {"kokoro-onnx": options.kokoro_onnx_python, "fastkokoro": options.fastkokoro_python}
    known = [versions(python, PEERS[name]) for name, python in given.items() if python]
    with tempfile.TemporaryDirectory(prefix="headroom-peers-") as folder:
        cells = asyncio.run(compare(designs(given, options.upstream, Path(folder)), options, Path(folder)))
    print(table(cells))
    print(f"\nLoad average of the last 1, 5 and 15 minutes: {', '.join(f'{load:.1f}' for load in os.getloadavg())}")
    print("Peers: " + "; ".join(known) if known else "No peer was given.")
    left_out = [f"{name} (no --{name}-python)" for name, python in given.items() if not python]
    print("Left out: " + "; ".join([*left_out, NOT_PACKAGED]))
    if options.json:
        options.json.write_text(json.dumps([asdict(cell) for cell in cells], indent=1))
    return ExitCode.DONE


def designs(given: dict[str, Path | None], with_upstream: bool, folder: Path) -> list[Design]:
    weights = weights_for_peers(resolve(source="packages"), folder)
    found = [ours(free_port(), weights)]
    if python := given["kokoro-onnx"]:
        found.append(kokoro_onnx(python, free_port(), weights))
    if python := given["fastkokoro"]:
        found.append(fastkokoro(python, free_port(), weights, folder / "cache"))
    if with_upstream:
        found.append(upstream(free_port(), weights))
    return found


async def compare(found: Sequence[Design], options: argparse.Namespace, folder: Path) -> list[Cell]:
    cells: list[Cell] = []
    async with all_running(found, folder) as client:
        for design in found:
            for text in TEXTS[:WARM_UP_TEXTS]:
                await speak(client, design, text)
        for callers in map(int, options.concurrency.split(",")):
            texts = [itertools.cycle(TEXTS) for _ in found]
            rounds: list[list[Cell]] = []
            for _ in range(options.rounds):
                turns = zip(found, texts, strict=True)
                rounds.append([await closed_loop(client, each, callers, options.seconds, own) for each, own in turns])
            cells += [functools.reduce(operator.add, own) for own in zip(*rounds, strict=True)]
            print(f"concurrency {callers} done", file=sys.stderr)
    return cells


if __name__ == "__main__":
    sys.exit(exit_status(main))
