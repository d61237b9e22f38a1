"""Makes the engine that the settings name; importing an engine is what costs, so only that one is imported."""

from __future__ import annotations

from container.engine.base import Engine
from container.settings import Settings


def make_engine(settings: Settings) -> Engine:
    """The engine, constructed but not loaded."""
    if settings.engine == "replay":
        from container.engine.replay import ReplayEngine

        return ReplayEngine(settings)
    if settings.engine == "onnx":
        from container.engine.onnx import OnnxEngine

        return OnnxEngine(settings)
    from container.engine.kokoro import KokoroEngine

    return KokoroEngine(settings)
