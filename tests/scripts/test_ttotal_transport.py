"""T_total is measured over the transport of its ladder; ladders of several transports never mix."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import pytest

from planner.artifacts.fingerprint import Transport
from planner.artifacts.records import Anchor
from planner.artifacts.ttotal import Ttotal, TtotalRun
from planner.errors import UsageError
from scripts import ttotal
from scripts.aws.endpoint import describe
from tests.scripts import ladder_artifact

FLAGS = ["--endpoint", "e", "--variant", "v", "--model", "m"]
P95_MS = {1: 60.0, 5: 300.0, 10: 600.0}


def parsed(out: Path, *more: str) -> argparse.Namespace:
    return ttotal._flags().parse_args([*FLAGS, "--out", str(out), *more])


def ladders(out: Path, *transports: Transport) -> list[Path]:
    """Oldest first."""
    paths = [ladder_artifact.write(describe("e", "v"), out, P95_MS, transport) for transport in transports]
    for age, path in enumerate(reversed(paths)):
        os.utime(path, (1e9 - age, 1e9 - age))
    return paths


def transport_of(out: Path, *more: str) -> str:
    return ttotal.find_baseline(parsed(out, *more), describe("e", "v")).fingerprint.transport


def test_the_newest_ladder_decides_unless_a_transport_is_named(account, tmp_path):
    account()
    ladders(tmp_path, "bidi", "invoke", "response-stream")
    assert transport_of(tmp_path) == "response-stream"
    assert transport_of(tmp_path, "--transport", "bidi") == "bidi"
    assert transport_of(tmp_path, "--transport", "invoke") == "invoke"


def test_a_ladder_over_another_transport_is_refused(account, tmp_path):
    account()
    [path] = ladders(tmp_path, "response-stream")
    with pytest.raises(UsageError, match="was measured over response-stream, not over bidi") as raised:
        transport_of(tmp_path, "--qmax", str(path), "--transport", "bidi")
    assert "make qmax ARGS='--transport bidi'" in raised.value.hint


def test_no_ladder_over_the_transport(account, tmp_path):
    account()
    ladders(tmp_path, "response-stream")
    with pytest.raises(UsageError, match="no Q_max artifact of m over bidi") as raised:
        transport_of(tmp_path, "--transport", "bidi")
    assert "make qmax ARGS='--transport bidi' first" in raised.value.hint


class Silent:
    """A probe that sent nothing."""

    records: tuple[()] = ()
    anchor = Anchor("w", 0, 0)

    def start(self, run: int, users: int) -> None: ...

    def stop(self) -> None: ...


@pytest.mark.parametrize("t_total_s", [260.0, None])
def test_files_of_two_transports_lie_side_by_side(account, tmp_path, t_total_s):
    account()
    live = describe("e", "v")
    for run_id, transport in (("a", "response-stream"), ("b", "bidi")):
        ladder_artifact.write(live, tmp_path, P95_MS, transport)
        args = parsed(tmp_path, "--transport", transport)
        run = TtotalRun(run=0, outcome="timeout", from_instances=1, to_instances=2, t_total_s=t_total_s)
        ttotal.save(args, ttotal.artifact(args, [], run_id, ttotal.find_baseline(args, live), [run]), Silent())
    prefix = "" if t_total_s else "failed-"
    found = {path.name: Ttotal.load(path).provenance.run_id for path in tmp_path.glob(f"{prefix}ttotal-*.json")}
    assert sorted(found.values()) == ["a", "b"]
    assert [run_id for name, run_id in found.items() if name.startswith(f"{prefix}ttotal-m-bidi-g5xlarge-")] == ["b"]
