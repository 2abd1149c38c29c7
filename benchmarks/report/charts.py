"""Bars as SVG: light or dark as the reader's page is, and no browser is needed to make them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

WIDTH, LABEL_WIDTH, VALUE_WIDTH, BAR, GAP = 760, 280, 110, 16, 12
STYLE = """
text { font: 12px system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif; fill: #1f2933 }
.title { font-size: 14px; font-weight: 600 }
.ours { fill: #0b7285 } .peer { fill: #a3b1bf } .base { stroke: #8795a1; stroke-dasharray: 3 3 }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e7eb } .ours { fill: #3bc9db } .peer { fill: #616e7c } .base { stroke: #9aa5b1 }
}"""


class Bar(NamedTuple):
    """One bar; bars of a group stand close together, under the group's name."""

    group: str
    label: str
    value: float
    words: str
    is_ours: bool


def bars(title: str, drawn: Sequence[Bar], line_at: float | None = None) -> str:
    """A picture of bars from the left; `line_at` draws a line across them at a value."""
    room = WIDTH - LABEL_WIDTH - VALUE_WIDTH
    scale = room / max([each.value for each in drawn] or [1.0])
    line = (line_at or 0.0) * scale
    parts, y, group = [f'<text class="title" x="0" y="16">{escape(title)}</text>'], 34, None
    for each in drawn:
        if each.group and each.group != group:
            parts.append(f'<text x="0" y="{y + 10}">{escape(each.group)}</text>')
            y += BAR + 4
        group = each.group
        middle = y + BAR - 4
        parts.append(f'<text x="{LABEL_WIDTH - 8}" y="{middle}" text-anchor="end">{escape(each.label)}</text>')
        kind, width = "ours" if each.is_ours else "peer", max(each.value * scale, 1.0)
        parts.append(f'<rect class="{kind}" x="{LABEL_WIDTH}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2"/>')
        beside = max(width, line) if width > line - VALUE_WIDTH / 2 else width  # words do not lie on the line
        parts.append(f'<text x="{LABEL_WIDTH + beside + 6:.1f}" y="{middle}">{escape(each.words)}</text>')
        y += BAR + (4 if each.group else GAP - 4)
        last_of_group = each is drawn[-1] or drawn[drawn.index(each) + 1].group != each.group
        y += GAP if each.group and last_of_group else 0
    if line_at is not None:
        x = f"{LABEL_WIDTH + line:.1f}"
        parts.append(f'<line class="base" x1="{x}" x2="{x}" y1="28" y2="{y}"/>')
    body = "\n".join(parts)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 4}" width="{WIDTH}" role="img"'
    return f'{head} aria-label="{escape(title)}">\n<style>{STYLE}</style>\n{body}\n</svg>\n'
