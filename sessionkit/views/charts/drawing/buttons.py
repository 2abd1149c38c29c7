"""Buttons above a plot, each of which shows it in another way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sessionkit.views.charts.drawing.palettes import Palette

if TYPE_CHECKING:
    import plotly.graph_objects as go


def row_of_buttons(figure: go.Figure, buttons: list[dict[str, Any]], colours: Palette) -> dict[str, Any]:
    """On the right, level with the title. The one under the pointer is pale in either theme: the text suits both."""
    top, height = figure.layout.margin.t, figure.layout.height - figure.layout.margin.t - figure.layout.margin.b
    place = {"x": 1, "xanchor": "right", "y": 1 + (top - 12) / height, "yanchor": "top", "direction": "right"}
    look = {"font": {"size": 12, "color": colours.mute}, "bgcolor": colours.background, "bordercolor": colours.grid}
    return {"type": "buttons", "showactive": False, "buttons": buttons, "pad": {"r": 0, "t": 0}, **place, **look}
