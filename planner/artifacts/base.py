"""What every artifact shares: provenance, reading with one clear message, writing atomically."""

from __future__ import annotations

import json
import os
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from planner.errors import UsageError

SCHEMA_VERSION = 1


class Strict(BaseModel):
    """Frozen, and an unknown field is an error: a typo in an artifact must not pass in silence."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Provenance(Strict):
    """Where an artifact comes from."""

    tool_version: str
    command: list[str]
    run_id: str
    created_at: datetime
    region: str
    endpoint: str
    variant: str
    aws_endpoint_url: str | None = None
    """None on real AWS; the rehearsal's URL otherwise. The two never pair."""
    note: str | None = None


class Artifact(Strict):
    """A versioned JSON file. Subclasses set ``kind``."""

    kind_name: ClassVar[str]
    schema_version: int = SCHEMA_VERSION
    kind: str
    provenance: Provenance

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read and validate; raises UsageError naming the file, the field and the fix."""
        path = Path(path)
        data = read_json(path)
        if not isinstance(data, dict):
            raise UsageError(f"{path}: not a {cls.kind_name} artifact (no JSON object)", _REMEASURE)
        version = data.get("schema_version")
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise UsageError(
                f"{path}: schema_version {version}, this version reads up to {SCHEMA_VERSION}",
                "upgrade headroom or measure again with this version",
            )
        if data.get("kind") != cls.kind_name:
            raise UsageError(f"{path}: kind is {data.get('kind')!r}, expected {cls.kind_name!r}", "pass the right file")
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise UsageError(f"{path}: {first_fault(error)}", _REMEASURE) from None

    def save(self, path: Path | str) -> Path | None:
        """Write atomically; a file of another run is kept beside it. Returns where that one went, or None."""
        path = Path(path)
        kept = _keep_other_run(path, self.provenance.run_id)
        write_atomically(path, self.model_dump_json(indent=2) + "\n")
        return kept


_REMEASURE = "measure again, or restore the file from its source"


def first_fault(error: ValidationError) -> str:
    """One line for pydantic's first complaint, and how many more there are."""
    faults = error.errors()
    where = ".".join(str(part) for part in faults[0]["loc"])
    more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
    return f"{where}: {faults[0]['msg']}{more}"


def read_json(path: Path) -> Any:
    """Parse a JSON file or raise UsageError that says which file and where it breaks."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UsageError(f"{path}: no such file", "check the path; `ls artifacts/` shows what was measured") from None
    except (UnicodeDecodeError, IsADirectoryError) as error:
        kind = "a folder" if isinstance(error, IsADirectoryError) else "not a text file"
        raise UsageError(f"{path}: {kind}, not an artifact", "name the .json file that was written") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error}", "check the path and its permissions") from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{path}: not JSON (line {error.lineno}: {error.msg})", _REMEASURE) from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path}: not JSON of ours ({error})", _REMEASURE) from None


def write_atomically(path: Path, text: str) -> None:
    """Write to a temporary file in the same directory, sync, then rename over ``path``; UsageError when that fails."""
    try:
        _write(path, text)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error}", "give a directory that can be written") from None


def require_writable(directory: Path) -> None:
    """UsageError now instead of after the measurement that was to be written there."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            pass
    except OSError as error:
        raise UsageError(f"{directory}: cannot be written: {error}", "give a directory that can be written") from None


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _keep_other_run(path: Path, run_id: str) -> Path | None:
    if not path.exists():
        return None
    try:
        other = json.loads(path.read_text(encoding="utf-8"))["provenance"]["run_id"]
    except (OSError, ValueError, KeyError, TypeError):
        other = "unreadable"
    if other == run_id:
        return None
    kept = path.with_name(f"{path.stem}.{other}{path.suffix}")
    os.replace(path, kept)
    return kept
