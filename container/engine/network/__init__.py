"""Kokoro-82M as a batched network: same weights, same function, several segments in one forward pass.

The published implementation takes one segment at a time. This one takes a padded batch and keeps padding from
reaching any valid frame, so that every item equals its single run. Sequences are laid out [batch, time, channel]
throughout: convolutions over that layout are several times faster on CPUs and need no reordering on GPUs.
"""

from container.engine.network.kokoro import Acoustics, Kokoro

__all__ = ["Acoustics", "Kokoro"]
