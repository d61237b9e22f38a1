"""The texts a ladder speaks: loading, identity, length distribution, and a seeded order for each user."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from loadtest.stats import nearest_rank
from planner.artifacts.fingerprint import Workload
from planner.errors import UsageError

BUILT_IN = Path(__file__).with_name("corpora")


@dataclass(frozen=True)
class Corpus:
    """Texts in file order; requests name them by index."""

    name: str
    texts: tuple[str, ...]

    @property
    def sha256(self) -> str:
        """Of the texts joined by newlines: comments and blank lines in the file do not count."""
        return hashlib.sha256("\n".join(self.texts).encode()).hexdigest()

    def workload(self, *, seed: int, response_format: str, voice: str | None) -> Workload:
        """The corpus as the fingerprint states it."""
        lengths = sorted(len(text) for text in self.texts)
        return Workload(
            corpus=self.name,
            corpus_sha256=self.sha256,
            seed=seed,
            response_format=response_format,
            voice=voice,
            texts=len(lengths),
            chars_min=lengths[0],
            chars_mean=round(sum(lengths) / len(lengths), 2),
            chars_p50=nearest_rank(lengths, 0.5),
            chars_p95=nearest_rank(lengths, 0.95),
            chars_max=lengths[-1],
        )


def shuffled(count: int, key: str) -> Iterator[int]:
    """Endless indices below ``count``: each once a round, every round in a new order that follows from ``key``."""
    generator = random.Random(key)
    indices = list(range(count))
    while True:
        generator.shuffle(indices)
        yield from indices


def load(name: str) -> Corpus:
    """A built-in corpus by name, or a text file: one text a line, ``#`` starts a comment line."""
    path = Path(name)
    if not path.suffix and "/" not in name:
        path = BUILT_IN / f"{name}.txt"
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(sorted(file.stem for file in BUILT_IN.glob("*.txt")))
        raise UsageError(
            f"--corpus {name}: cannot be read ({error})", f"give a UTF-8 text file or one of: {known}"
        ) from None
    texts = tuple(line.strip() for line in lines if line.strip() and not line.startswith("#"))
    if not texts:
        raise UsageError(f"--corpus {name}: no text in it", "one text a line; lines that start with # are comments")
    return Corpus(path.stem, texts)
