"""Everything the container can be told, read once from the environment."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

PLATFORM_CEILING_S = 60.0
"""SageMaker cuts an invocation here; our own deadline must come first so that the client gets an answer."""

PUBLISHED_STAGES_S = "framework_init=0.014,weights_ready=6.475,warmup_done=1.046"
PUBLISHED_SERVICE_MEAN_MS = 55.9
"""1 / 17.9 requests per second, the published plateau of one request at a time."""
PUBLISHED_SERVICE_P95_MS = 60.0
"""Published first-byte p95 at one caller (65.4 ms) less the same 5.4 ms of path that separates the means."""


class SettingsError(ValueError):
    """The environment holds values the container cannot start with; every problem at once."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Settings:
    """One immutable value; parts take it whole or take the numbers they need from it."""

    host: str = "0.0.0.0"
    port: int = 8080
    engine: str = "kokoro"
    scheduler: str = "deadline"
    max_queue_depth: int | None = None
    """Requests queued and executing together; None measures without a bound."""

    model_dir: Path = Path("/opt/ml/model")
    weights_dir: Path | None = None
    weights_source: str = "auto"
    device: str = "auto"
    precision: str = "auto"
    threads: int | None = None
    max_batch: int | None = None
    default_voice: str | None = None

    request_deadline_s: float = 55.0
    body_timeout_s: float = 10.0
    max_body_bytes: int = 64 * 1024
    max_text_chars: int = 5_000
    retry_after_s: int = 1
    first_piece_chars: int = 40
    """Longest first piece of a text that is cut. A fast GPU can afford a whole sentence."""
    starvation_s: float = 5.0
    """How long a started listener may sit in silence before it outranks newcomers."""
    first_delay_bound_s: float = 0.5
    """Longest batch of later segments that is formed while newcomers might arrive."""

    ws_idle_timeout_s: float = 60.0
    ws_max_pending: int = 8
    engine_stall_s: float = 30.0
    drain_s: float = 20.0

    replay_service_mean_ms: float = PUBLISHED_SERVICE_MEAN_MS
    replay_service_p95_ms: float = PUBLISHED_SERVICE_P95_MS
    replay_lanes: int = 1
    replay_seed: int = 0
    replay_stages_s: Mapping[str, float] = field(default_factory=lambda: _stages(PUBLISHED_STAGES_S))

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Settings:
        """Parse ``env``; raises SettingsError naming every bad variable."""
        read = _Reader(os.environ if env is None else env)
        defaults = cls()
        mean_ms = read.number("REPLAY_SERVICE_MEAN_MS", defaults.replay_service_mean_ms, 0.001, 60_000)
        spread = PUBLISHED_SERVICE_P95_MS / PUBLISHED_SERVICE_MEAN_MS
        settings = cls(
            host=read.text("HOST", defaults.host),
            port=read.integer("SAGEMAKER_BIND_TO_PORT", read.integer("PORT", defaults.port, 0, 65_535), 0, 65_535),
            engine=read.choice("ENGINE", defaults.engine, ("kokoro", "onnx", "replay")),
            scheduler=read.choice("SCHEDULER", defaults.scheduler, ("deadline", "fifo")),
            max_queue_depth=read.optional_integer("MAX_QUEUE_DEPTH", 1, 1_000_000),
            model_dir=Path(read.text("MODEL_DIR", str(defaults.model_dir))),
            weights_dir=read.path("WEIGHTS_DIR"),
            weights_source=read.choice("WEIGHTS_SOURCE", defaults.weights_source, ("auto", "hub", "packages")),
            device=read.choice("DEVICE", defaults.device, ("auto", "cpu", "cuda")),
            precision=read.choice("PRECISION", defaults.precision, ("auto", "fp32", "bf16", "fp16", "int8")),
            threads=read.optional_integer("THREADS", 1, 1_024),
            max_batch=read.optional_integer("MAX_BATCH", 1, 1_024),
            default_voice=read.text("DEFAULT_VOICE", "") or None,
            request_deadline_s=read.number("REQUEST_DEADLINE_S", defaults.request_deadline_s, 0.05, 59.0),
            body_timeout_s=read.number("BODY_TIMEOUT_S", defaults.body_timeout_s, 0.05, 59.0),
            max_body_bytes=read.integer("MAX_BODY_BYTES", defaults.max_body_bytes, 1_024, 25_000_000),
            max_text_chars=read.integer("MAX_TEXT_CHARS", defaults.max_text_chars, 1, 1_000_000),
            first_piece_chars=read.integer("FIRST_PIECE_CHARS", defaults.first_piece_chars, 20, 400),
            starvation_s=read.number("STARVATION_S", defaults.starvation_s, 0.0, 60.0),
            first_delay_bound_s=read.number("FIRST_DELAY_BOUND_S", defaults.first_delay_bound_s, 0.0, 60.0),
            ws_idle_timeout_s=read.number("WS_IDLE_TIMEOUT_S", defaults.ws_idle_timeout_s, 0.05, 86_400),
            ws_max_pending=read.integer("WS_MAX_PENDING", defaults.ws_max_pending, 1, 1_000),
            engine_stall_s=read.number("ENGINE_STALL_S", defaults.engine_stall_s, 0.1, 3_600),
            drain_s=read.number("DRAIN_S", defaults.drain_s, 0.0, 22.0),
            replay_service_mean_ms=mean_ms,
            replay_service_p95_ms=read.number("REPLAY_SERVICE_P95_MS", mean_ms * spread, mean_ms, mean_ms * 3.8),
            replay_lanes=read.integer("REPLAY_LANES", defaults.replay_lanes, 1, 1_024),
            replay_seed=read.integer("REPLAY_SEED", defaults.replay_seed, 0, 2**63 - 1),
            replay_stages_s=read.stages("REPLAY_STAGES_S", PUBLISHED_STAGES_S),
        )
        if read.problems:
            raise SettingsError(read.problems)
        return settings


class _Reader:
    """Reads variables and collects what is wrong with them; an empty variable counts as unset."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env
        self.problems: list[str] = []

    def text(self, name: str, default: str) -> str:
        return self._env.get(name, "").strip() or default

    def path(self, name: str) -> Path | None:
        value = self.text(name, "")
        return Path(value) if value else None

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        value = self.text(name, default)
        if value not in allowed:
            self.problems.append(f"{name}={value!r} is not one of {', '.join(allowed)}")
            return default
        return value

    def number(self, name: str, default: float, low: float, high: float) -> float:
        raw = self.text(name, "")
        if not raw:
            return default
        try:
            value = float(raw)
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            self.problems.append(f"{name}={raw!r} is not a number from {low:g} to {high:g}")
            return default
        return value

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        value = self.optional_integer(name, low, high)
        return default if value is None else value

    def optional_integer(self, name: str, low: int, high: int) -> int | None:
        raw = self.text(name, "")
        if not raw:
            return None
        if not raw.lstrip("-").isdecimal() or not low <= int(raw) <= high:
            self.problems.append(f"{name}={raw!r} is not a whole number from {low} to {high}")
            return None
        return int(raw)

    def stages(self, name: str, default: str) -> Mapping[str, float]:
        raw = self.text(name, default)
        try:
            return _stages(raw)
        except ValueError as error:
            self.problems.append(f"{name}={raw!r}: {error}")
            return _stages(default)


def _stages(raw: str) -> dict[str, float]:
    """``framework_init=0.014,weights_ready=6.475`` as seconds by stage; a stage left out takes no time."""
    known = ("framework_init", "weights_ready", "warmup_done")
    stages = dict.fromkeys(known, 0.0)
    for part in filter(None, (piece.strip() for piece in raw.split(","))):
        name, _, value = part.partition("=")
        if name not in known:
            raise ValueError(f"unknown stage {name!r}, expected {', '.join(known)}")
        seconds = float(value)
        if not 0 <= seconds <= 3_600:
            raise ValueError(f"stage {name} takes {value} s, expected 0 to 3600")
        stages[name] = seconds
    return stages
