"""Does our engine sound like upstream's model? Spectra, lengths and recognised words of the same sentences.

Upstream draws noise for every sentence, so it differs from itself: it speaks twice, and the second time is the control.
Words are recognised by Whisper in an environment of its own. ``python -m bench.quality``
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.engine import Locked
from bench.spectra import at_16_khz, log_spectral_distance_db
from bench.words import right, word_error_rate
from container.engine.base import Segment
from container.settings import Settings
from loadtest.corpus import load
from planner.errors import ExitCode, UsageError, exit_status

Audio = NDArray[np.float32]
Speak = Callable[[str], Audio]
STOCK, AGAIN, OURS = "upstream", "upstream again", "ours"


@dataclass(frozen=True, slots=True)
class Distance:
    """One speaker's recordings against upstream's first."""

    speaker: str
    mean_db: float
    max_db: float
    same_length: int
    sentences: int


@dataclass(frozen=True, slots=True)
class Heard:
    """One speaker's transcripts against the text and against upstream's first."""

    speaker: str
    wer_text: float
    wer_upstream: float
    same_words: int
    right: int
    """Sentences recognised without an error."""
    kept: int
    """Of those that are right from upstream, how many are right here too."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.quality", description=__doc__)
    parser.add_argument("--corpus", default="short-clips", help="built-in corpus or text file (short-clips)")
    parser.add_argument("--sentences", type=int, default=50, help="the first so many of 10 to 60 characters (50)")
    parser.add_argument("--precision", default="auto", help="of our engine (auto)")
    parser.add_argument("--whisper-python", type=Path, metavar="PATH", help="interpreter that has Whisper")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write distances and transcripts there")
    options = parser.parse_args(argv)
    texts = [text for text in load(options.corpus).texts if 10 <= len(text) <= 60][: options.sentences]
    if not texts:
        raise UsageError(f"--corpus {options.corpus}: no sentence of 10 to 60 characters", "give another corpus")
    spoken, precision = speakers(texts, options.precision)
    distances = [distance(name, spoken[STOCK], spoken[name]) for name in (AGAIN, OURS)]
    print(f"{len(texts)} sentences of {options.corpus}, ours in {precision}\n")
    print(distance_table(distances))
    transcripts: dict[str, list[str]] = {}
    if python := options.whisper_python:
        transcripts = {name: transcribe(python, audio) for name, audio in spoken.items()}
        print("\n" + heard_table([heard(name, texts, transcripts) for name in spoken]))
    else:
        print("\nWords not compared: no --whisper-python.")
    if options.json:
        result = {"texts": texts, "distances": [asdict(each) for each in distances], "transcripts": transcripts}
        options.json.write_text(json.dumps(result, indent=1))
    return ExitCode.DONE


def speakers(texts: Sequence[str], precision: str) -> tuple[dict[str, list[Audio]], str]:
    """What each says, and the precision ours chose. The same phonemes, voice and speed."""
    from container.engine.kokoro import KokoroEngine

    settings = Settings(device="cpu", weights_source="packages", precision=precision)
    upstream, engine = Locked(settings), KokoroEngine(settings)
    engine.load(lambda _stage: None)
    voice = engine.voices()[0]

    def ours(text: str) -> Audio:
        return np.concatenate(engine.synthesise(engine.prepare([Segment(text, voice)])))

    says: dict[str, Speak] = {STOCK: upstream.speak, AGAIN: upstream.speak, OURS: ours}
    spoken = {name: [say(text) for text in texts] for name, say in says.items()}
    return spoken, engine.precision


def distance(name: str, reference: Sequence[Audio], other: Sequence[Audio]) -> Distance:
    """Recordings of different length are compared over the shorter."""
    pairs = list(zip(reference, other, strict=True))
    each_db = [log_spectral_distance_db(*cut(*pair)) for pair in pairs]
    same = sum(len(a) == len(b) for a, b in pairs)
    return Distance(name, statistics.fmean(each_db), max(each_db), same, len(pairs))


def cut(a: Audio, b: Audio) -> tuple[Audio, Audio]:
    shorter = min(len(a), len(b))
    return a[:shorter], b[:shorter]


def heard(name: str, texts: Sequence[str], transcripts: dict[str, list[str]]) -> Heard:
    own, upstream = transcripts[name], transcripts[STOCK]
    rights = zip(right(texts, upstream), right(texts, own), strict=True)
    return Heard(
        name,
        wer_text=word_error_rate(texts, own),
        wer_upstream=word_error_rate(upstream, own),
        same_words=sum(right(upstream, own)),
        right=sum(right(texts, own)),
        kept=sum(both == (True, True) for both in rights),
    )


def transcribe(python: Path, recordings: Sequence[Audio]) -> list[str]:
    """By ``whisper_listener.py``, in an interpreter that has what it needs."""
    with tempfile.TemporaryDirectory(prefix="headroom-quality-") as folder:
        file = Path(folder) / "recordings.npz"
        named: dict[str, Any] = {f"{index:04}": at_16_khz(audio) for index, audio in enumerate(recordings)}
        np.savez(file, **named)
        command = [str(python), str(Path(__file__).with_name("whisper_listener.py")), str(file)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise UsageError(f"{python} could not listen", "install there what whisper_listener.py names")
    return list(json.loads(done.stdout))


def distance_table(distances: Sequence[Distance]) -> str:
    lines = [
        f"| against {STOCK} | log-spectral distance, mean dB | largest dB | same length |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {each.speaker} | {each.mean_db:.2f} | {each.max_db:.2f} | {each.same_length} of {each.sentences} |"
        for each in distances
    ]
    return "\n".join(lines)


def heard_table(rows: Sequence[Heard]) -> str:
    lines = [
        f"| recognised | word errors against the text | right sentences | of {STOCK}'s right ones "
        f"| word errors against {STOCK} | sentences with its words |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {each.speaker} | {each.wer_text:.1%} | {each.right} | {each.kept} "
        f"| {each.wer_upstream:.1%} | {each.same_words} |"
        for each in rows
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(exit_status(main))
