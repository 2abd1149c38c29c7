"""What a result with a picture shows of itself: the picture in a notebook, its words in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import plotly.graph_objects as go


def picture_bundle(figure: go.Figure, words: str) -> dict[str, Any]:
    """What a notebook shows: the figure as plotly's renderer has it, and the words where there are no pictures."""
    return {**figure._repr_mimebundle_(), "text/plain": words}
