"""The same ladder on multi-sentence texts: whole requests in turn, as published and with our engine; first audio first.

``python -m bench.schedulers`` with real speech; ``--engine replay`` shows the scheduling alone, at the published speed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bench.container import SERVERS
from bench.rehearsed import rehearsal
from planner.artifacts.qmax import Qmax
from planner.errors import AwsError, ExitCode, exit_status

LINES = {"published": (":", "^", "0.6"), "fifo": ("--", "s", "0.45"), "deadline": ("-", "o", "0.0")}
ENDPOINT, VARIANT = "speech-kokoro-82m", "primary"
ANSWERED = {ExitCode.DONE, ExitCode.FACT_FAILS, ExitCode.UNDECIDED}
"""A ladder that found no Q_max still has its rungs."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure each, print the ratios at each rung, draw them."""
    parser = argparse.ArgumentParser(prog="python -m bench.schedulers", description=__doc__)
    parser.add_argument("--engine", choices=("kokoro", "replay"), default="kokoro")
    parser.add_argument("--rungs", default="1,2,4,8", help="concurrency levels (1,2,4,8)")
    parser.add_argument("--hold-s", default="40", help="seconds a rung is held (40)")
    parser.add_argument("--measure-window-s", default="35", help="measured seconds at its end (35)")
    parser.add_argument("--slo-ms", default="15000", help="p95 of the first audio byte; N=1 has to meet it (15000)")
    parser.add_argument("--out", type=Path, default=Path("artifacts/schedulers"), help="artifacts and chart")
    options = parser.parse_args(argv)
    ladders = {name: measure(name, options) for name in LINES}
    print(table(ladders))
    print(f"wrote {draw(ladders, options.out / 'schedulers.svg')}")
    return ExitCode.DONE


def measure(name: str, options: argparse.Namespace) -> Qmax:
    """One ladder on a rehearsal whose containers are set up like this."""
    out = options.out / name
    settings = [part for key, value in SERVERS[name].items() for part in ("--env", f"{key}={value}")]
    command = [sys.executable, "-m", "loadtest.ladder", "--endpoint", ENDPOINT, "--variant", VARIANT]
    command += ["--model", "speech", "--corpus", "paragraphs", "--slo-ms", options.slo_ms, "--rungs", options.rungs]
    command += ["--hold-s", options.hold_s, "--measure-window-s", options.measure_window_s, "--idle-s", "1"]
    with rehearsal("--engine", options.engine, *settings) as environment:
        done = subprocess.run([*command, "--out", str(out)], env=environment, check=False)
    if done.returncode not in ANSWERED:
        raise AwsError(f"the {name} ladder ended with exit code {done.returncode}", "read its output above")
    return Qmax.load(max(out.glob("qmax-speech-*.json"), key=lambda path: path.stat().st_mtime))


def points(ladder: Qmax) -> dict[int, float]:
    """p95 of the first audio byte in ms of each rung that measured something."""
    return {
        rung.concurrency: rung.ttfab_ms.p95 for rung in ladder.ladder if rung.ttfab_ms and rung.verdict != "invalid"
    }


def table(ladders: dict[str, Qmax]) -> str:
    """The p95 of each, and what deadline needs of the published design's."""
    found = {name: points(ladder) for name, ladder in ladders.items()}
    heads = "".join(f"{f'{name} p95 ms':>18}" for name in found)
    lines = [f"{'N':>4}{heads}  deadline / published"]
    for n in sorted(set.intersection(*(set(rungs) for rungs in found.values()))):
        numbers = "".join(f"{rungs[n]:18.0f}" for rungs in found.values())
        lines.append(f"{n:>4}{numbers}{found['deadline'][n] / found['published'][n]:22.2f}")
    return "\n".join(lines)


def draw(ladders: dict[str, Qmax], path: Path) -> Path:
    """One chart, readable without colour."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, (dash, marker, grey) in LINES.items():
        found = points(ladders[name])
        axes.plot(list(found), list(found.values()), dash, marker=marker, color=grey, label=f"{name}, p95")
    slo_ms = ladders["fifo"].method.slo_ms
    axes.axhline(slo_ms, color="tab:red", dashes=(8, 3), label=f"SLO {slo_ms:g} ms")
    axes.set_xlabel("Concurrency (requests in flight)")
    axes.set_ylabel("Time to first audio byte (ms)")
    axes.set_ylim(bottom=0)
    axes.set_title("Paragraphs of several sentences, one instance")
    axes.grid(alpha=0.3)
    axes.legend(loc="upper left")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    return path


if __name__ == "__main__":
    sys.exit(exit_status(main))
