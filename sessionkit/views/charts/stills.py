"""Figures where no script runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import plotly.graph_objects as go


def still_pictures(figure: Callable[[], go.Figure]) -> dict[str, Any]:
    """The figure as pictures by their kind, if plotly's renderer makes some ("png", "svg")."""
    from plotly.io import renderers
    from plotly.io.base_renderers import ImageRenderer

    chosen = [renderers[name] for name in (renderers.default or "").split("+") if name]
    made = [each.to_mimebundle(figure().to_dict()) for each in chosen if isinstance(each, ImageRenderer)]
    return {kind: picture for bundle in made for kind, picture in bundle.items()}
