"""Figures, and their colours: a palette for each theme, whose status colours any kind of sight tells apart."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from sessionkit.base.progress import calls
from sessionkit.base.text import one_of
from sessionkit.errors import InvalidArgument, problem

if TYPE_CHECKING:
    import plotly.graph_objects as go

    class Figure(go.Figure):
        """A figure of plotly, whose package has no types."""
else:
    Figure = Any  # plotly is loaded once something is drawn

Theme = Literal["light", "dark"]
THEMES = ("light", "dark")
NARROWEST = 360  # pixels


def enough_width(width: int) -> int:
    """The width of a picture, in pixels, if words fit into it."""
    if width is True or width < NARROWEST:
        raise InvalidArgument(problem("a chart needs room for its labels", width, f"{NARROWEST} pixels or more"))
    return width


class Options:
    """What pictures look like where a call does not say it, and whether long calls show how far they are.

    Boards and pages follow the theme of the page they are on.

    Example:
        >>> sk.options.theme = "dark"
        >>> figure = waves.run(flights).lanes()
        >>> sk.options.theme = "light"
        >>> sk.options.width = 375
        >>> waves.run(flights).lanes().layout.width
        375
        >>> sk.options.width = None
        >>> sk.options.progress
        True
    """

    __slots__ = ("_theme", "_width")

    def __init__(self) -> None:
        self._theme: Theme = "light"
        self._width: int | None = None

    @property
    def theme(self) -> Theme:
        """ "light" or "dark": the theme of figures that are drawn without `theme=`.

        Raises:
            InvalidArgument: it is set to something else.
        """
        return self._theme

    @theme.setter
    def theme(self, theme: Theme) -> None:
        one_of("sk.options.theme", theme, THEMES)
        self._theme = theme

    @property
    def width(self) -> int | None:
        """The width, in pixels, of figures that are drawn without `width=`: 375 for a phone, 1600 for a wide screen.

        With None, the default, they are as wide as the room that they are given, if that is 600 pixels or more.

        Raises:
            InvalidArgument: it is set to less than 360, or to something else.
        """
        return self._width

    @width.setter
    def width(self, width: int | None) -> None:
        if not isinstance(width, int | None):
            raise InvalidArgument(problem("sk.options.width must be a number of pixels", repr(width), "375, or None"))
        self._width = width if width is None else enough_width(width)

    @property
    def progress(self) -> bool:
        """Whether calls that take longer than two seconds show how far they are, in notebooks and terminals.

        Raises:
            InvalidArgument: it is set to something else than True or False.
        """
        return calls.is_on

    @progress.setter
    def progress(self, progress: bool) -> None:
        one_of("sk.options.progress", progress, (True, False))
        calls.is_on = progress

    def __repr__(self) -> str:
        return f"Options: theme={self._theme!r}, width={self._width}, progress={self.progress}"


options = Options()


def _colour(light: str, dark: str) -> Any:
    return field(metadata={"light": light, "dark": dark})


@dataclass(frozen=True)
class Palette:
    """Colours of one theme; any two status colours are apart for every kind of sight."""

    background: str = _colour("#ffffff", "#12161c")
    ink: str = _colour("#1f2933", "#e6ebf0")
    mute: str = _colour("#5f6b78", "#9aa7b5")
    grid: str = _colour("#e9edf1", "#222a34")
    stream: str = _colour("#8a94a0", "#8b97a5")
    record: str = _colour("#005A9C", "#A9D8FF")
    bridge: str = _colour("#882255", "#B48CFF")
    saved: str = _colour("#2E9E5B", "#2FC48D")
    drop: str = _colour("#B3261E", "#F2542D")
    line: str = _colour("#C27A00", "#FFD54A")
    saved_words: str = _colour("#1F7A45", "#2FC48D")  # text has to stand out more than a mark
    line_words: str = _colour("#8F5800", "#FFD54A")
    body: str = _colour("rgba(0,90,156,0.19)", "rgba(86,180,233,0.24)")
    edge: str = _colour("#005A9C", "#56B4E9")
    solid: str = _colour("#6699C4", "#3C77A1")
    reach: str = _colour("rgba(86,180,233,0.15)", "rgba(86,180,233,0.09)")
    reach_edge: str = _colour("rgba(0,114,178,0.45)", "rgba(86,180,233,0.45)")
    territory: str = _colour("rgba(90,100,112,0.075)", "rgba(150,160,175,0.10)")
    band: str = _colour("rgba(90,100,112,0.045)", "rgba(150,160,175,0.055)")
    other: str = _colour("#848f9b", "#647180")
    crowd: str = _colour("rgba(179,38,30,0.16)", "rgba(242,84,45,0.24)")  # the area of many drops


PALETTES = {theme: Palette(**{each.name: each.metadata[theme] for each in fields(Palette)}) for theme in THEMES}


def palette(theme: str | None) -> Palette:
    """The colours of `theme`, without one those of `sk.options.theme`."""
    chosen = options.theme if theme is None else theme
    return PALETTES[one_of("theme", chosen, tuple(PALETTES))]


def fainter(colour: str, share: float) -> str:
    """An rgba colour with this share of its opacity."""
    front, opacity = colour.removesuffix(")").rsplit(",", 1)
    return f"{front},{float(opacity) * share:.3f})"
