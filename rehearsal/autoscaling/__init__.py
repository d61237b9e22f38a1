"""Application Auto Scaling: what is registered, and what acts on it."""
