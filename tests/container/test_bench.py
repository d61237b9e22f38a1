"""What the deadline scheduler is for, in one paired run."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest


@pytest.mark.e2e
def test_first_audio_under_load_comes_in_half_the_time_at_the_same_throughput():
    command = [sys.executable, "-m", "bench.container", "--engine", "replay", "--requests", "24", "--repeats", "1"]
    env = {**os.environ, "REPLAY_SERVICE_MEAN_MS": "150", "REPLAY_STAGES_S": "warmup_done=0"}
    done = subprocess.run([*command, "--json"], env=env, capture_output=True, text=True, check=True, timeout=120)
    result = json.loads(done.stdout)
    assert result["ttfab_p95_deadline_over_fifo"] <= 0.5
    assert result["throughput_deadline_over_fifo"] >= 0.9
    assert result["paragraph"]["stalled_s"] == 0.0
