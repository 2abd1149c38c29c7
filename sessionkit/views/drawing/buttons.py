"""Buttons below a plot, each of which shows it in another way."""

from __future__ import annotations

from typing import Any, Literal

from sessionkit.views.drawing.palettes import Palette


def row_of_buttons(
    buttons: list[dict[str, Any]], colours: Palette, y: float, side: Literal["left", "right"]
) -> dict[str, Any]:
    """At this height, in parts of the plot. The one under the pointer is pale in either theme: the text suits both."""
    place = {"x": 0 if side == "left" else 1, "xanchor": side, "y": y, "yanchor": "top", "direction": "right"}
    look = {"font": {"size": 12, "color": colours.mute}, "bgcolor": colours.background, "bordercolor": colours.grid}
    return {"type": "buttons", "showactive": False, "buttons": buttons, "pad": {"r": 0, "t": 0}, **place, **look}
