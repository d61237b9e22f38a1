"""With two instances at work, what ConcurrentRequestsPerModel counts is read off, not assumed."""

from __future__ import annotations

import json

import pytest

from tests.scripts.e2e.conftest import FAST_CONTAINER, FAST_STAGES

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.mark.parametrize("scope", ["per_instance", "variant_total"])
def test_the_scope_is_found(rehearse, scope):
    rehearsed = rehearse(FAST_STAGES, FAST_CONTAINER, "--metric-scope", scope)
    flags = rehearsed.ttotal_flags(**{"hold-s": "32", "metric-wait-s": "40"})
    result = rehearsed.run("ttotal", *flags, "--json")
    assert result.returncode == 0, result.stderr
    made = json.loads(result.stdout)
    assert made["metric_scope"] == scope
    assert made["runs"][0]["concurrency_metric_readings"]
