"""The cells as one Markdown table; ratios are to our own cell at the same concurrency."""

from __future__ import annotations

from collections.abc import Sequence

from bench.peers.designs import OURS
from bench.peers.load import Cell

HEAD = (
    "| server | N | requests/s | to ours | TTFB p50 ms | to ours | p95 ms | audio s/s | longest health check ms | n |",
    "|---|---|---|---|---|---|---|---|---|---|",
)


def table(cells: Sequence[Cell]) -> str:
    own = {cell.concurrency: cell for cell in cells if cell.design == OURS}
    return "\n".join([*HEAD, *(row(cell, own[cell.concurrency]) for cell in cells)])


def row(cell: Cell, own: Cell) -> str:
    p50_ms = cell.ttfb_ms(0.5)
    columns = (
        cell.design,
        str(cell.concurrency),
        f"{cell.rps:.2f}",
        f"{cell.rps / own.rps:.2f}",
        f"{p50_ms:.0f}",
        f"{p50_ms / own.ttfb_ms(0.5):.2f}",
        f"{cell.ttfb_ms(0.95):.0f}",
        f"{cell.audio_s_per_s:.2f}",
        f"{1e3 * max(cell.health_s):.0f}",
        str(len(cell.answers)),
    )
    return f"| {' | '.join(columns)} |"
