"""What a result with a picture shows of itself: the picture in a notebook, its words in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import plotly.graph_objects as go


def picture_bundle(figure: go.Figure, words: str) -> dict[str, Any]:
    """What a notebook shows: the figure as plotly's renderer has it, and the words where there are no pictures."""
    return {**figure._repr_mimebundle_(), "text/plain": words}


def still_pictures(figure: Callable[[], go.Figure]) -> dict[str, Any]:
    """The figure as pictures for pages that run no scripts, if plotly's renderer makes some ("png", "svg")."""
    from plotly.io import renderers
    from plotly.io.base_renderers import ImageRenderer

    chosen = [renderers[name] for name in (renderers.default or "").split("+") if name]
    made = [each.to_mimebundle(figure().to_dict()) for each in chosen if isinstance(each, ImageRenderer)]
    return {kind: picture for bundle in made for kind, picture in bundle.items()}
