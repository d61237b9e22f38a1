"""Find the model, or make it once and keep it in a cache outside the repository."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from container.weights.model_dir import ModelDir, WeightsError, is_complete, verify, write_checksums
from container.weights.sources import convert_packages, fetch_from_hub

SOURCES = ("auto", "hub", "packages")


@dataclass(frozen=True, slots=True)
class Made:
    """A source whose model directory is made in the cache."""

    name: str
    cache_key: str
    """Changes when the form on disk changes, so that an old cache is not read by new code."""
    make: Callable[[Path], None]


HUB = Made("hub", "hub-v1", fetch_from_hub)
PACKAGES = Made("packages", "packages-v1", convert_packages)


def cache_root() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "headroom" / "weights"


def resolve(
    model_dir: Path | None = None, local_dir: Path | None = None, source: str = "auto", cache: Path | None = None
) -> ModelDir:
    """The first of: ``model_dir``, ``local_dir``, the hub, the packages. The last two are kept in the cache.

    A directory that exists but is incomplete is skipped; one whose checksums are wrong is an error.
    """
    tried: list[str] = []
    for path in (model_dir, local_dir):
        if path is None:
            continue
        if is_complete(path):
            verify(path)
            return ModelDir(path, "directory")
        tried.append(f"{path}: no checkpoint with voices there")
    cache = cache or cache_root()
    wanted = [made for made in (HUB, PACKAGES) if source in ("auto", made.name)]
    for made in wanted:
        if is_complete(cache / made.cache_key):
            return ModelDir(cache / made.cache_key, made.name)
        try:
            return ModelDir(_make_once(made, cache), made.name)
        except WeightsError as error:
            tried.append(f"{made.name}: {error}")
    raise WeightsError("no weights found; tried\n  " + "\n  ".join(tried))


def _make_once(made: Made, cache: Path) -> Path:
    """Make the directory under a temporary name and rename it when complete.

    Several processes may start at once: one makes it, the others wait and use the same.
    """
    target = cache / made.cache_key
    cache.mkdir(parents=True, exist_ok=True)
    with _exclusive(cache / f"{made.cache_key}.lock"):
        if is_complete(target):
            return target
        scratch = Path(tempfile.mkdtemp(prefix=f"{made.cache_key}.", dir=cache))
        try:
            made.make(scratch)
            write_checksums(scratch)
            scratch.chmod(0o755)
            scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return target


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
