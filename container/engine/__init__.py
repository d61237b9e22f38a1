"""Engines: text segments in, audio samples out."""
