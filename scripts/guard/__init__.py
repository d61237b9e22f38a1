"""Comparing what is live with what was planned; read-only."""
