"""The pictures of the page: one key in detail, and many keys side by side."""

from __future__ import annotations

import json
from typing import Any

from sessionkit.base.text import escape_html
from sessionkit.errors import shorten
from sessionkit.report.parts import section
from sessionkit.run import Run

MOST_DRAWN = 15_000  # records one by one: SVG takes a second


def pictures(run: Run) -> str:
    """The history of the key with the most to see, and the lanes of many keys, each in a light and a dark theme."""
    key = run.most_eventful_key()
    label = escape_html(shorten(key))
    plane = {theme: run.plane(key, theme=theme) for theme in ("light", "dark")}
    lanes = {theme: run.lanes(theme=theme, most_drawn=MOST_DRAWN) for theme in ("light", "dark")}
    return section(
        f"The key with the most to see: {label}",
        "<p>Across: when a record happened. Upward: when it arrived. A session is a body that grows; left of the "
        "amber line everything is closed. The dotted piece at a red cross is the grace that the record lacked.</p>",
        _figure("plane", f"History of key {label}", plane),
    ) + section(
        "Many keys side by side",
        "<p>A lane for each key, those with the most drops first. Crosses above a lane were dropped, brackets below a "
        "bar are the sessions that it was merged from.</p>",
        _figure("lanes", "Sessions of many keys", lanes),
    )


def _figure(name: str, label: str, themes: dict[str, Any]) -> str:
    """A place for the figure, and its data as JSON for both themes; the script draws the one that fits."""
    data = "".join(
        f'<script type="application/json" data-figure="{name}" data-theme="{theme}">{_inert(_drawn(figure))}</script>'
        for theme, figure in themes.items()
    )
    return f"<div class='figure' id='{name}' role='img' aria-label=\"{label}\"></div>{data}"


def _drawn(figure: Any) -> str:
    """The figure as JSON, without WebGL: its shaders are compiled by code made of text, which the page may not run."""
    content = json.loads(figure.to_json())
    for trace in content["data"]:
        if trace["type"] == "scattergl":
            trace["type"] = "scatter"
    return json.dumps(content, separators=(",", ":"))


def _inert(text: str) -> str:
    """JSON that cannot end the element it stands in: the three characters of markup as their escapes."""
    return str(text).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
