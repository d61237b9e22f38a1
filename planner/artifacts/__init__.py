"""Artifact models: the files that join the parts of Headroom."""
