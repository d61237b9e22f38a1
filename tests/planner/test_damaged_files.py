"""One damaged value anywhere in a measurement: a plan, or a refusal with a message; never a traceback, never a hang."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from planner.__main__ import main
from planner.errors import HeadroomError
from tests.planner.conftest import ARTICLE

VALUES: list[Any] = [None, 0, -1, 1e308, 1e-308, "", [], {}, True, 0.5, 1, 3, 1e6, float("nan"), "word", 10**30]


def places(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value in a JSON document."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


@pytest.mark.parametrize("kind", ["qmax", "ttotal"])
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.timeout(60)
def test_one_damaged_value(tmp_path: Path, kind: str, seed: int) -> None:
    choose = random.Random(seed)
    texts = {name: (ARTICLE / f"{name}.json").read_text() for name in ("qmax", "ttotal")}
    everywhere = list(places(json.loads(texts[kind])))
    refusals: list[HeadroomError] = []
    for _ in range(25):
        data = json.loads(texts[kind])
        *parents, leaf = choose.choice(everywhere)
        place = data
        for part in parents:
            place = place[part]
        place[leaf] = choose.choice(VALUES)
        for name, text in {**texts, kind: json.dumps(data)}.items():
            (tmp_path / f"{name}.json").write_text(text)
        files = ["--qmax", str(tmp_path / "qmax.json"), "--ttotal", str(tmp_path / "ttotal.json")]
        try:
            rule = choose.choice(["headroom", "drain"])
            status = main(["plan", *files, "--peak-rps", "50", "--rule", rule, "--out", str(tmp_path / "out")])
        except HeadroomError as refusal:
            refusals.append(refusal)
        else:
            assert status in (0, 3)
    assert len(refusals) > 3
    assert all(refusal.message and refusal.hint for refusal in refusals)
