"""The published scale-out replayed 10 or 20 times faster: 260.2 s measured, 320.2 s with the policy's bound.

Compression by a factor: every scripted stage, the hold and the polling interval are divided by it, the result is
multiplied. From its log stream's first line to its own first marker a real process takes as long as this machine lets
it; that stage alone is not scripted, and the published 3.724 s stand for it in the total.
"""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.e2e

POLL_S = 10.0
HOLD_S = 60.0
# Published seconds from stage to stage; the container's own come from its replay engine, compressed alike.
PUBLISHED_S = {
    "instance_logging": 180.835,
    "container_started": 3.724,
    "framework_init": 0.014,
    "weights_ready": 6.475,
    "warmup_done": 1.046,
    "in_service": 20.713,
}
RECOVERED_S = 47.441
T_TOTAL_S = 260.248
WITH_POLICY_S = 320.248


@pytest.mark.parametrize("factor", [20, pytest.param(10, marks=pytest.mark.slow)])
def test_the_published_timeline_comes_back(rehearse, factor):
    poll_s = POLL_S / factor
    around = {
        "provisioning": PUBLISHED_S["instance_logging"],
        "container_start": 0.0,
        "health_check": PUBLISHED_S["in_service"],
        "routing": RECOVERED_S,
    }
    inside = ("framework_init", "weights_ready", "warmup_done")
    rehearsed = rehearse(
        ",".join(f"{name}={seconds}" for name, seconds in around.items()),
        ",".join(f"{name}={PUBLISHED_S[name] / factor}" for name in inside),
        "--time-scale",
        str(factor),
    )
    result = rehearsed.run(
        "ttotal", *rehearsed.ttotal_flags(**{"hold-s": str(HOLD_S / factor), "poll-s": str(poll_s)}), "--json"
    )
    assert result.returncode == 0, result.stderr
    made = json.loads(result.stdout)
    seconds = {part["end"]: part["seconds"] for part in made["runs"][0]["durations"]}
    started_s = seconds.pop("container_started")  # a real process, not scripted: on a busy machine it takes its time
    scripted = {name: published_s for name, published_s in PUBLISHED_S.items() if name in seconds}
    for stage, published_s in scripted.items():
        assert seconds[stage] == pytest.approx(published_s / factor, abs=poll_s), stage
    recovered_s = seconds["first_traffic"] + seconds["traffic_recovered"]
    assert recovered_s == pytest.approx(RECOVERED_S / factor, abs=poll_s)
    t_total_s = factor * (made["t_total_s"] - started_s) + PUBLISHED_S["container_started"]
    assert t_total_s == pytest.approx(T_TOTAL_S, abs=POLL_S)
    assert t_total_s + made["policy_lag"]["bound_s"] == pytest.approx(WITH_POLICY_S, abs=POLL_S)
    assert made["runs"][0]["dominant"] == "desired_set → instance_logging"
    print({name: round(factor * value, 1) for name, value in seconds.items()})
    print(f"T_total {t_total_s:.1f} s, with the policy's bound {t_total_s + made['policy_lag']['bound_s']:.1f} s")
