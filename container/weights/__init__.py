"""Where the model's weights and voices come from, and their form on disk."""

from container.weights.model_dir import CHECKPOINT, ModelDir, WeightsError
from container.weights.resolve import resolve

__all__ = ["CHECKPOINT", "ModelDir", "WeightsError", "resolve"]
