"""The same ladder on multi-sentence texts under both schedulers, and one chart of the two.

``python -m bench.schedulers`` with real speech; ``--engine replay`` shows the scheduling alone, at the published speed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from bench.rehearsed import rehearsal
from planner.artifacts.qmax import Qmax
from planner.errors import AwsError, ExitCode, exit_status

SCHEDULERS = {"fifo": ("--", "s", "0.45"), "deadline": ("-", "o", "0.0")}
ENDPOINT, VARIANT = "speech-kokoro-82m", "primary"
ANSWERED = {ExitCode.DONE, ExitCode.FACT_FAILS, ExitCode.UNDECIDED}
"""A ladder that found no Q_max still has its rungs."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure both, print the ratio at each rung, draw them."""
    parser = argparse.ArgumentParser(prog="python -m bench.schedulers", description=__doc__)
    parser.add_argument("--engine", choices=("kokoro", "replay"), default="kokoro")
    parser.add_argument("--rungs", default="1,2,4,8", help="concurrency levels (1,2,4,8)")
    parser.add_argument("--hold-s", default="40", help="seconds a rung is held (40)")
    parser.add_argument("--measure-window-s", default="35", help="measured seconds at its end (35)")
    parser.add_argument("--slo-ms", default="3000", help="p95 of the first audio byte (3000)")
    parser.add_argument("--out", type=Path, default=Path("artifacts/schedulers"), help="artifacts and chart")
    options = parser.parse_args(argv)
    ladders = {scheduler: measure(scheduler, options) for scheduler in SCHEDULERS}
    print(table(ladders))
    print(f"wrote {draw(ladders, options.out / 'schedulers.svg')}")
    return ExitCode.DONE


def measure(scheduler: str, options: argparse.Namespace) -> Qmax:
    """One ladder on a rehearsal whose containers use this scheduler."""
    out = options.out / scheduler
    command = [sys.executable, "-m", "loadtest.ladder", "--endpoint", ENDPOINT, "--variant", VARIANT]
    command += ["--model", "speech", "--corpus", "paragraphs", "--slo-ms", options.slo_ms, "--rungs", options.rungs]
    command += ["--hold-s", options.hold_s, "--measure-window-s", options.measure_window_s, "--idle-s", "1"]
    with rehearsal("--engine", options.engine, "--env", f"SCHEDULER={scheduler}") as environment:
        done = subprocess.run([*command, "--out", str(out)], env=environment, check=False)
    if done.returncode not in ANSWERED:
        raise AwsError(f"the {scheduler} ladder ended with exit code {done.returncode}", "read its output above")
    return Qmax.load(max(out.glob("qmax-speech-*.json"), key=lambda path: path.stat().st_mtime))


def points(ladder: Qmax) -> dict[int, float]:
    """p95 of the first audio byte in ms of each rung that measured something."""
    return {
        rung.concurrency: rung.ttfab_ms.p95 for rung in ladder.ladder if rung.ttfab_ms and rung.verdict != "invalid"
    }


def table(ladders: dict[str, Qmax]) -> str:
    """Both p95, and what deadline needs of fifo's."""
    fifo, deadline = (points(ladders[name]) for name in ("fifo", "deadline"))
    lines = [f"{'N':>4} {'fifo p95 ms':>12} {'deadline p95 ms':>16} {'ratio':>6}"]
    for n in sorted(fifo.keys() & deadline.keys()):
        lines.append(f"{n:>4} {fifo[n]:12.0f} {deadline[n]:16.0f} {deadline[n] / fifo[n]:6.2f}")
    return "\n".join(lines)


def draw(ladders: dict[str, Qmax], path: Path) -> Path:
    """One chart, readable without colour."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for name, (dash, marker, grey) in SCHEDULERS.items():
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
