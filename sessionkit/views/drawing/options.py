"""What holds for all plain pictures of a process: `sk.options`."""

from __future__ import annotations

from typing import Literal

from sessionkit.base.text import one_of

Theme = Literal["light", "dark"]
THEMES = ("light", "dark")


class Options:
    """What pictures look like where a call does not say it. Boards and pages follow the theme of the page they are on.

    Example:
        >>> sk.options.theme = "dark"
        >>> figure = waves.run(flights).lanes()
        >>> sk.options.theme = "light"
    """

    __slots__ = ("_theme",)

    def __init__(self) -> None:
        self._theme: Theme = "light"

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

    def __repr__(self) -> str:
        return f"Options: theme={self._theme!r}"


options = Options()
