"""The environment, parsed once, every problem named."""

from __future__ import annotations

from pathlib import Path

import pytest

from container.settings import Settings, SettingsError


def test_defaults_are_the_platforms():
    settings = Settings.from_env({})
    assert (settings.host, settings.port, settings.engine, settings.scheduler) == (
        "0.0.0.0",
        8080,
        "kokoro",
        "deadline",
    )
    assert settings.max_queue_depth is None
    assert settings.model_dir == Path("/opt/ml/model")
    assert settings.request_deadline_s < 60
    assert settings.replay_service_mean_ms == 55.9
    assert settings.replay_stages_s == {"framework_init": 0.014, "weights_ready": 6.475, "warmup_done": 1.046}


@pytest.mark.parametrize(
    ("env", "field", "value"),
    [
        ({"PORT": "9000"}, "port", 9000),
        ({"PORT": "9000", "SAGEMAKER_BIND_TO_PORT": "9001"}, "port", 9001),
        ({"MAX_QUEUE_DEPTH": "50"}, "max_queue_depth", 50),
        ({"MAX_QUEUE_DEPTH": ""}, "max_queue_depth", None),
        ({"SCHEDULER": "fifo"}, "scheduler", "fifo"),
        ({"REPLAY_SERVICE_MEAN_MS": "100"}, "replay_service_p95_ms", pytest.approx(107.33, abs=0.01)),
        ({"REPLAY_STAGES_S": "warmup_done=0.5"}, "replay_stages_s",
         {"framework_init": 0.0, "weights_ready": 0.0, "warmup_done": 0.5}),
    ],
)  # fmt: skip
def test_good_values(env, field, value):
    assert getattr(Settings.from_env(env), field) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PORT", "http"), ("PORT", "70000"), ("MAX_QUEUE_DEPTH", "0"), ("MAX_QUEUE_DEPTH", "-1"),
        ("MAX_QUEUE_DEPTH", "1.5"), ("ENGINE", "festival"), ("SCHEDULER", "lifo"), ("REQUEST_DEADLINE_S", "60"),
        ("REQUEST_DEADLINE_S", "nan"), ("REPLAY_SERVICE_MEAN_MS", "0"), ("REPLAY_SERVICE_P95_MS", "10"),
        ("REPLAY_STAGES_S", "coffee=1"), ("REPLAY_STAGES_S", "warmup_done=soon"), ("DRAIN_S", "25"),
    ],
)  # fmt: skip
def test_bad_values_are_named(name, value):
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({name: value})
    assert len(caught.value.problems) == 1
    assert caught.value.problems[0].startswith(f"{name}={value!r}")


def test_all_problems_at_once():
    with pytest.raises(SettingsError) as caught:
        Settings.from_env({"PORT": "x", "ENGINE": "y", "MAX_QUEUE_DEPTH": "z"})
    assert len(caught.value.problems) == 3
