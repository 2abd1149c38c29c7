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
    makers = [each for each in chosen if isinstance(each, ImageRenderer)]
    drawn = figure().to_dict() if makers else {}
    return {kind: picture for maker in makers for kind, picture in maker.to_mimebundle(drawn).items()}
