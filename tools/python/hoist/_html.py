"""HTML for notebooks. Names come from models, which are untrusted input, so all text is escaped here."""

from __future__ import annotations

import html
from typing import Iterable, Sequence

_TEXT = "max-height:24em;overflow:auto;text-align:left;line-height:1.35;white-space:pre"


def escaped(text: object) -> str:
    return html.escape(str(text))


def heading(text: object) -> str:
    return f"<p><b>{escaped(text)}</b></p>"


def paragraph(text: object) -> str:
    return f"<p>{escaped(text)}</p>"


def block(text: str) -> str:
    return f'<pre style="{_TEXT}">{escaped(text)}</pre>'


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    def row(cells: Sequence[object], tag: str) -> str:
        return "<tr>" + "".join(f'<{tag} style="text-align:left">{escaped(cell)}</{tag}>' for cell in cells) + "</tr>"

    return "<table>" + row(head, "th") + "".join(row(cells, "td") for cells in rows) + "</table>"


def folded(summary: str, content: str, is_open: bool = False) -> str:
    return f"<details{' open' if is_open else ''}><summary>{escaped(summary)}</summary>{content}</details>"


def framed(page: str) -> str:
    """A whole page in a frame of its own, whose program cannot access the notebook."""
    return (f'<iframe sandbox="allow-scripts" style="width:100%;height:48em;border:1px solid #ccc" '
            f'srcdoc="{html.escape(page, quote=True)}"></iframe>')
