"""A line chart and a stacked bar as inline SVG. Colours are CSS classes, so the page decides on light or dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise

MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, MARGIN_BOTTOM = 62, 14, 26, 44
FILLS = 8
CHAR_PX = 7.2
"""Average width of a character at the chart's font size, for placing labels side by side."""


@dataclass(frozen=True)
class Line:
    """One series; ``dash`` and ``mark`` keep series apart without colour."""

    label: str
    points: Sequence[tuple[float, float]]
    style: int = 1
    mark: bool = True
    stepped: bool = False


@dataclass(frozen=True)
class Rule:
    """A horizontal (y) or vertical (x) reference with its label."""

    label: str
    y: float | None = None
    x: float | None = None


@dataclass(frozen=True)
class Chart:
    """What to draw; units belong in the axis labels."""

    title: str
    description: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    rules: Sequence[Rule] = field(default_factory=tuple)
    crosses: Sequence[tuple[float, float]] = field(default_factory=tuple)
    """Points that count for nothing, drawn as crosses."""
    height: int = 280
    y_max: float | None = None
    percent: bool = False


@dataclass(frozen=True)
class Part:
    """One piece of a stacked bar."""

    label: str
    value: float


def line_chart(chart: Chart, width: int, uid: str) -> str:
    """The chart at a width in px; ``uid`` makes its ids unique on the page."""
    xs = [x for line in chart.lines for x, _ in line.points] + [r.x for r in chart.rules if r.x is not None]
    ys = [y for line in chart.lines for _, y in line.points] + [r.y for r in chart.rules if r.y is not None]
    x_ticks, y_ticks = ticks(min([0.0, *xs]), max(xs), 4 if width < 500 else 8), ticks(0.0, chart.y_max or max(ys), 5)
    legend = _legend(chart.lines, width)
    top = MARGIN_TOP + legend.height
    right, bottom = width - MARGIN_RIGHT, chart.height - MARGIN_BOTTOM
    across = _scale(x_ticks[0], x_ticks[-1], MARGIN_LEFT, right)
    up = _scale(y_ticks[0], y_ticks[-1], bottom, top)
    body = [legend.markup]
    for y in y_ticks:
        body.append(f'<line class="grid" x1="{MARGIN_LEFT}" x2="{right}" y1="{up(y):.1f}" y2="{up(y):.1f}"/>')
        body.append(_text(MARGIN_LEFT - 7, up(y) + 4, _tick(y, chart.percent), "end"))
    for x in x_ticks:
        body.append(f'<line class="grid" x1="{across(x):.1f}" x2="{across(x):.1f}" y1="{bottom}" y2="{bottom + 5}"/>')
        body.append(_text(across(x), bottom + 18, _tick(x), "middle"))
    body.append(f'<line class="axis" x1="{MARGIN_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>')
    body.append(_text((MARGIN_LEFT + right) / 2, chart.height - 8, chart.x_label, "middle"))
    body.append(_text(4, 14, chart.y_label, "start"))
    for rule in chart.rules:
        body.append(_reference(rule, across, up, right, top, bottom))
    for line in chart.lines:
        body.append(_series(line, across, up))
    for x, y in chart.crosses:
        cx, cy = across(x), up(min(y, y_ticks[-1]))
        body.append(f'<path class="cross" d="M{cx - 5:.1f} {cy - 5:.1f}l10 10m0 -10l-10 10"/>')
    return _frame(chart.title, chart.description, width, chart.height, body, uid)


def stacked_bar(title: str, description: str, parts: Sequence[Part], width: int, uid: str, unit: str = "s") -> str:
    """One horizontal bar and a numbered key below it: numbers fit where names do not."""
    total = sum(part.value for part in parts)
    key_top, row = 84, 20
    height = key_top + row * len(parts) + 6
    body, x = [], 4.0
    room = width - 8
    for number, part in enumerate(parts, 1):
        w = room * part.value / total
        body.append(f'<rect class="fill f{(number - 1) % FILLS + 1}" x="{x:.1f}" y="24" width="{w:.1f}" height="40"/>')
        if w > 14:
            body.append(_text(x + w / 2, 49, str(number), "middle", "in"))
        y = key_top + row * (number - 1)
        body.append(f'<rect class="fill f{(number - 1) % FILLS + 1}" x="4" y="{y - 11}" width="14" height="14"/>')
        label = f"{number}  {part.label}"
        body.append(_text(26, y + 1, label, "start"))
        body.append(_text(width - 4, y + 1, f"{part.value:.1f} {unit} · {part.value / total:.0%}", "end"))
        x += w
    body.append(_text(4, 16, f"{total:.1f} {unit} in all", "start"))
    return _frame(title, description, width, height, body, uid)


def ticks(low: float, high: float, about: int) -> list[float]:
    """Round numbers that cover [low, high]."""
    span = (high - low) or 1.0
    raw = span / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * n, 10) for n in range(first, last + 1)]


@dataclass(frozen=True)
class _Legend:
    markup: str
    height: int


def _legend(lines: Sequence[Line], width: int) -> _Legend:
    items, x, y = [], 4.0, 34.0
    for line in lines:
        room = 30 + len(line.label) * CHAR_PX + 14
        if x + room > width and x > 4:
            x, y = 4.0, y + 18
        items.append(
            f'<path class="line s{line.style}" d="M{x:.0f} {y - 4:.0f}h24"/>{_text(x + 30, y, line.label, "start")}'
        )
        x += room
    return _Legend("".join(items), int(y - 6))


def _series(line: Line, across: Callable[[float], float], up: Callable[[float], float]) -> str:
    places = [(across(x), up(y)) for x, y in line.points]
    if line.stepped:
        corners = (corner for (x0, y0), (x1, _) in pairwise(places) for corner in ((x0, y0), (x1, y0)))
        places = [*corners, places[-1]]
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    marks = "".join(f'<circle class="dot s{line.style}" cx="{x:.1f}" cy="{y:.1f}" r="3.2"/>' for x, y in places)
    return f'<path class="line s{line.style}" d="{path}"/>{marks if line.mark else ""}'


def _reference(
    rule: Rule, across: Callable[[float], float], up: Callable[[float], float], right: float, top: float, bottom: float
) -> str:
    if rule.y is not None:
        y = up(rule.y)
        line = f'<line class="rule" x1="{MARGIN_LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        return line + _text(MARGIN_LEFT + 6, y + 15 if y < top + 18 else y - 5, rule.label, "start", "ref")
    x = across(rule.x or 0.0)
    anchor, shift = ("end", -6) if x > (MARGIN_LEFT + right) / 2 else ("start", 6)
    line = f'<line class="rule" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom}"/>'
    return line + _text(x + shift, bottom - 8, rule.label, anchor, "ref")


def _frame(title: str, description: str, width: int, height: int, body: Sequence[str], uid: str) -> str:
    return (
        f'<svg role="img" aria-labelledby="{uid}-t {uid}-d" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" xmlns="http://www.w3.org/2000/svg"><title id="{uid}-t">{escape(title)}</title>'
        f'<desc id="{uid}-d">{escape(description)}</desc>{"".join(body)}</svg>'
    )


def _text(x: float, y: float, text: str, anchor: str, css: str = "") -> str:
    attribute = f' class="{css}"' if css else ""
    return f'<text{attribute} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _tick(value: float, percent: bool = False) -> str:
    return f"{value:.0%}" if percent else f"{value:,g}"


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (end - start)
