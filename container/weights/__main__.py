"""Resolve the model's weights: ``python -m container.weights [--out DIR]``."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

from container.weights.model_dir import ModelDir, WeightsError, verify, write_checksums
from container.weights.resolve import SOURCES, resolve

USAGE = 2


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m container.weights", description="Find or make the model.")
    environ = os.environ
    parser.add_argument("--model-dir", type=Path, default=_path(environ.get("MODEL_DIR")), help="env MODEL_DIR")
    parser.add_argument("--local-dir", type=Path, default=_path(environ.get("WEIGHTS_DIR")), help="env WEIGHTS_DIR")
    parser.add_argument("--source", choices=SOURCES, default=environ.get("WEIGHTS_SOURCE", "auto"))
    parser.add_argument("--out", type=Path, help="copy the complete model directory there, with SHA256SUMS")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    return parser.parse_args(argv)


def _path(value: str | None) -> Path | None:
    return Path(value) if value else None


def describe(model: ModelDir, files_verified: int) -> dict[str, object]:
    return {
        "path": str(model.path),
        "source": model.source,
        "voices": list(model.voice_files),
        "files_verified": files_verified,
    }


def export(model: ModelDir, out: Path) -> ModelDir:
    if out.exists() and any(out.iterdir()):
        raise WeightsError(f"{out} is not empty; give a new directory")
    shutil.copytree(model.path, out, dirs_exist_ok=True)
    write_checksums(out)
    return ModelDir(out, model.source)


def main(argv: list[str] | None = None) -> int:
    args = parse(argv)
    try:
        model = resolve(args.model_dir, args.local_dir, args.source)
        if args.out:
            model = export(model, args.out)
        report = describe(model, verify(model.path))
    except WeightsError as error:
        print(f"error: {error}", file=sys.stderr)
        return USAGE
    if args.json:
        print(json.dumps(report))
    else:
        print(f"{report['path']} ({report['source']}), {report['files_verified']} files verified")
        print("voices:", ", ".join(model.voice_files))
    return 0


if __name__ == "__main__":
    sys.exit(main())
