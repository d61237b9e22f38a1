"""T_total over bidirectional streams against a rehearsal, where the SDK is installed."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable

import pytest

from planner.artifacts import records
from planner.artifacts.records import Anchor
from planner.artifacts.ttotal import STAGES
from scripts.aws.endpoint import describe
from tests.scripts import ladder_artifact
from tests.scripts.e2e.conftest import ENDPOINT, FAST_CONTAINER, FAST_STAGES, LADDER_P95_MS, VARIANT, Rehearsed

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("aws_sdk_sagemaker_runtime_http2") is None,
        reason="needs Python 3.12 and the bidi extra",
    ),
]


def most_at_once(spans: list[tuple[int, int]]) -> int:
    edges = sorted([(start, 1) for start, _ in spans] + [(end, -1) for _, end in spans])
    now = most = 0
    for _, step in edges:
        now += step
        most = max(most, now)
    return most


def test_new_sessions_reach_the_new_instance(rehearse: Callable[..., Rehearsed]) -> None:
    rehearsed = rehearse(FAST_STAGES, FAST_CONTAINER, "--bidi")
    ladder_artifact.write(describe(ENDPOINT, VARIANT), rehearsed.out, LADDER_P95_MS, "bidi")
    before = rehearsed.durable()
    result = rehearsed.run("ttotal", *rehearsed.ttotal_flags(transport="bidi"), "--json")
    assert result.returncode == 0, result.stderr
    made = json.loads(result.stdout)
    run = made["runs"][0]
    assert made["fingerprint"]["transport"] == "bidi"
    assert [stage["name"] for stage in run["stages"]] == list(STAGES)
    assert sum(part["seconds"] for part in run["durations"]) == pytest.approx(run["t_total_s"])
    shares = sorted(run["requests_per_boot_id"].values())
    assert len(shares) == 2
    assert shares[0] > 0.4 * sum(shares)
    rehearsed.settle()
    assert rehearsed.durable() == before

    (raw,) = rehearsed.out.glob("ttotal-m-bidi-*.requests.jsonl")
    lines = list(records.read(raw))
    assert isinstance(lines[0], Anchor)
    sent = [line for line in lines if not isinstance(line, Anchor)]
    assert {line.worker for line in sent} == {lines[0].worker}
    assert sum(line.outcome == "cancelled" for line in sent) <= 10
    assert {line.outcome for line in sent} <= {"ok", "cancelled"}

    truth = rehearsed.admin("requests")
    sessions = [trace for trace in truth if trace["end_ns"]]
    assert len(sessions) >= sum(line.outcome == "ok" for line in sent)
    assert most_at_once([(trace["routed_ns"], trace["end_ns"]) for trace in sessions]) <= 10
