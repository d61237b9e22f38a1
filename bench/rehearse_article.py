"""Replay the published ml.g5.xlarge ladder on this machine and compare it rung by rung.

A rehearsal of its own serves with the replay engine at the published service time; the ladder that measures it is the
one that measures AWS. Exit 3 when a p95 is off by more than the tolerance or Q_max is another one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.rehearsed import rehearsal
from planner.artifacts.qmax import Qmax
from planner.errors import FactFails, HeadroomError, Undecided, exit_status

ARTICLE = Path(__file__).resolve().parents[1] / "examples" / "article" / "qmax.json"
TOLERANCE = 0.05
ENDPOINT, VARIANT = "speech-kokoro-82m", "primary"


@dataclass(frozen=True)
class Pair:
    """One rung, theirs and ours; ours is None when the rung has no valid measurement."""

    concurrency: int
    published_ms: float
    ours_ms: float | None
    reasons: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """Ours over theirs."""
        return None if self.ours_ms is None else self.ours_ms / self.published_ms

    @property
    def agrees(self) -> bool:
        """Within the tolerance."""
        return self.ratio is not None and abs(self.ratio - 1) <= TOLERANCE


def main(argv: list[str] | None = None) -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="python -m bench.rehearse_article", description=__doc__)
    parser.add_argument("--out", default="artifacts/rehearse-article", help="where artifact and chart go")
    parser.add_argument("--hold-s", default="22", help="seconds per rung; published: 240")
    parser.add_argument("--measure-window-s", default="17", help="measured seconds at its end; published: 60")
    options = parser.parse_args(argv)
    published = Qmax.load(ARTICLE)
    ours = _measure(published, options)
    pairs = compare(published, ours)
    print(table(pairs, published, ours))
    judge(pairs, published, ours)
    return 0


def _measure(published: Qmax, options: argparse.Namespace) -> Qmax:
    out = Path(options.out)
    instance_type = published.fingerprint.instance_type if published.fingerprint else "ml.g5.xlarge"
    command = [sys.executable, "-m", "loadtest.ladder", "--endpoint", ENDPOINT, "--variant", VARIANT]
    command += ["--model", published.model, "--slo-ms", f"{published.method.slo_ms:g}", "--idle-s", "1"]
    command += ["--rungs", ",".join(map(str, published.method.rungs)), "--out", str(out)]
    command += ["--hold-s", options.hold_s, "--measure-window-s", options.measure_window_s]
    with rehearsal("--engine", "replay", "--instance-type", instance_type) as environment:
        done = subprocess.run(command, env=environment, check=False)
    if done.returncode != 0:
        raise _Passed(done.returncode)
    newest = max(out.glob(f"qmax-{published.model}-*.json"), key=lambda path: path.stat().st_mtime)
    return Qmax.load(newest)


class _Passed(HeadroomError):
    """The ladder ended badly and has said why."""

    def __init__(self, code: int) -> None:
        super().__init__(f"the ladder ended with exit code {code}")
        self.exit_code = code  # type: ignore[assignment]


def compare(published: Qmax, ours: Qmax) -> list[Pair]:
    """By concurrency."""
    mine = {rung.concurrency: rung for rung in ours.ladder}
    pairs = []
    for rung in published.ladder:
        if rung.ttfab_ms is None:
            continue
        found = mine.get(rung.concurrency)
        valid = found is not None and found.verdict != "invalid" and found.ttfab_ms is not None
        pairs.append(
            Pair(
                rung.concurrency,
                rung.ttfab_ms.p95,
                found.ttfab_ms.p95 if valid and found and found.ttfab_ms else None,
                tuple(found.reasons) if found else ("not measured",),
            )
        )
    return pairs


def table(pairs: list[Pair], published: Qmax, ours: Qmax) -> str:
    """p95 of the first audio byte, side by side."""
    lines = [f"{'N':>4} {'published p95 ms':>17} {'ours p95 ms':>12} {'ours/published':>15}"]
    for pair in pairs:
        mine = f"{pair.ours_ms:12.1f} {pair.ratio:15.3f}" if pair.ours_ms is not None else f"{'-':>12} {'-':>15}"
        mark = "" if pair.agrees else f"  off: {'; '.join(pair.reasons) or f'more than {TOLERANCE:.0%}'}"
        lines.append(f"{pair.concurrency:>4} {pair.published_ms:17.1f} {mine}{mark}")
    lines.append(f"Q_max published {_q_max(published)}, ours {_q_max(ours)}")
    return "\n".join(lines)


def judge(pairs: list[Pair], published: Qmax, ours: Qmax) -> None:
    """Raise unless the ladder is reproduced."""
    unmeasured = [str(pair.concurrency) for pair in pairs if pair.ours_ms is None]
    if unmeasured:
        raise Undecided(
            f"no valid rung at N={', '.join(unmeasured)}", "a busy machine: close what else runs, then again"
        )
    off = [str(pair.concurrency) for pair in pairs if not pair.agrees]
    if off:
        raise FactFails(f"p95 differs by more than {TOLERANCE:.0%} at N={', '.join(off)}", "longer: --hold-s 60")
    if (ours.q_max, ours.bracketed) != (published.q_max, published.bracketed):
        raise FactFails(f"Q_max is {_q_max(ours)}, published {_q_max(published)}", "longer: --hold-s 60")


def _q_max(artifact: Qmax) -> str:
    return f"{artifact.q_max} ({'bracketed' if artifact.bracketed else artifact.outcome})"


if __name__ == "__main__":
    sys.exit(exit_status(main))
