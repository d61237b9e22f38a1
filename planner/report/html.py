"""Small pieces of HTML: tables with a caption and a download, figures in two widths, badges."""

from __future__ import annotations

import base64
import csv
import io
import re
from collections.abc import Sequence
from html import escape

from planner.report.charts import NARROW, WIDE, Drawing
from planner.report.style import STYLE

Cell = str | float | int | None

SHORT = 20
"""Cells up to this many characters stay on one line."""

# Nothing is fetched and nothing is run: a report opened from a mail is as safe as a picture.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def page(title: str, body: Sequence[str]) -> str:
    """The whole document."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<link rel="icon" href="data:,">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n<body><main>\n"
        + "\n".join(part for part in body if part)
        + "\n</main></body></html>\n"
    )


def section(title: str, *parts: str) -> str:
    """A heading with an anchor, and what belongs under it."""
    inside = "\n".join(part for part in parts if part)
    return (
        f'<section aria-labelledby="{anchor(title)}"><h2 id="{anchor(title)}">{escape(title)}</h2>\n{inside}</section>'
    )


def anchor(title: str) -> str:
    """An id from a heading."""
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def table(caption: str, header: Sequence[str], rows: Sequence[Sequence[Cell]], download: str = "") -> str:
    """A table that scrolls on its own when narrow, without its empty columns; ``download`` names a CSV of all of it."""
    if not rows:
        return ""
    kept = [i for i in range(len(header)) if any(row[i] not in (None, "") for row in rows)]
    link = f" {download_link(download, csv_text(header, rows), 'text/csv', 'CSV')}" if download else ""
    header, rows = [header[i] for i in kept], [[row[i] for i in kept] for row in rows]
    numeric = [all(_is_number(row[i]) for row in rows) for i in range(len(header))]
    head = "".join(f'<th scope="col"{_n(n)}>{escape(h)}</th>' for h, n in zip(header, numeric, strict=True))
    lines = "".join(f"<tr>{_row(row, numeric)}</tr>" for row in rows)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption, quote=True)}"><table>'
        f"<caption>{escape(caption)}.{link}</caption><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def figure(drawings: Sequence[Drawing], caption: str, uid: str) -> str:
    """Each drawing twice, for wide and narrow screens; only one is shown and read out."""
    if not drawings:
        return ""
    both = "".join(
        f'<div class="wide">{draw(WIDE, f"{uid}{i}w")}</div><div class="narrow">{draw(NARROW, f"{uid}{i}n")}</div>'
        for i, draw in enumerate(drawings)
    )
    return f"<figure>{both}<figcaption>{escape(caption)}</figcaption></figure>"


def badge(verdict: str) -> str:
    """A verdict in words; colour only repeats it."""
    kind = {
        "ok": "ok",
        "pass": "ok",
        "right": "ok",
        "warn": "warn",
        "stop": "stop",
        "fail": "stop",
        "wrong": "stop",
        "undecided": "warn",
        "error": "stop",
    }.get(verdict, "")
    return f'<span class="badge {kind}">{escape(verdict.replace("_", " "))}</span>'


def cards(items: Sequence[tuple[str, str, str]]) -> str:
    """Headline numbers: name, value, what it is."""
    inside = "".join(
        f"<div><dt>{escape(name)}</dt><dd>{escape(value)}<small>{escape(note)}</small></dd></div>"
        for name, value, note in items
    )
    return f'<dl class="cards">{inside}</dl>'


def paragraph(text: str, css: str = "") -> str:
    """A paragraph of plain text."""
    return f'<p class="{css}">{escape(text)}</p>' if css else f"<p>{escape(text)}</p>"


def download_link(name: str, text: str, kind: str, label: str) -> str:
    """The data itself in the link."""
    data = base64.b64encode(text.encode()).decode()
    return f'<a download="{escape(name, quote=True)}" href="data:{kind};base64,{data}">{escape(label)}</a>'


def csv_text(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """The rows as CSV, unrounded."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([header, *rows])
    return stream.getvalue()


def shown(cell: Cell) -> str:
    """Four significant digits; None is a dash, never zero."""
    if cell is None:
        return "–"
    if isinstance(cell, str):
        return cell
    if isinstance(cell, int) or float(cell).is_integer():
        return f"{cell:,.0f}"
    return f"{cell:,.1f}" if abs(cell) >= 100 else f"{cell:.4g}"


def _row(row: Sequence[Cell], numeric: Sequence[bool]) -> str:
    first, *rest = (escape(shown(cell)) for cell in row)
    cells = "".join(f"<td{_n(n, cell)}>{cell}</td>" for cell, n in zip(rest, numeric[1:], strict=True))
    return f'<th scope="row"{_n(numeric[0])}>{first}</th>{cells}'


def _n(numeric: bool, cell: str = "") -> str:
    if numeric:
        return ' class="n"'
    return ' class="k"' if 0 < len(cell) <= SHORT else ""


def _is_number(cell: Cell) -> bool:
    return cell is None or isinstance(cell, int | float)
