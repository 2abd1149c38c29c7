"""`Board`: what all boards are: controls, numbers, words, pictures, a table and code, in one widget.

The kernel alone writes the traits, and the browser shows them; what a person does comes as a message. So a board is the
same in every notebook, and after a reload.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import isfinite
from typing import Any, NamedTuple, TypeGuard

import anywidget
import traitlets

from sessionkit.base.assets import read_asset
from sessionkit.base.durations import show_duration
from sessionkit.base.text import counted
from sessionkit.views.drawing.grammar import (
    LEAST_WIDTH,
    MOST_WIDTH,
    USUAL_WIDTH,
    figure_json,
    plotly_script,
    still_pictures,
)
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.widgets.controls import Control
from sessionkit.widgets.tuner import Count

_SCRIPTS = ("keys", "theme", "plotly", "picture", "legend", "controls", "slider", "words", "code", "board")
HEIGHT, LOWEST, HIGHEST = 380, 280, 900  # pixels of a picture
_MESSAGES = ("set", "look", "click", "key", "zoom", "row")
Place = float | int | str


class Look(NamedTuple):
    """How pictures are drawn: the page's theme, and the room that there is."""

    theme: Theme = "light"
    width: int = USUAL_WIDTH
    height: int = HEIGHT


class Picture(NamedTuple):
    """A figure, and what stands beside it."""

    figure: Figure
    label: str  # for a screen reader
    title: str = ""  # above it, as the notes are, where the figure has no title of its own
    notes: tuple[str, ...] = ()
    legend: bool = False  # what the marks mean is told beside it
    zoom: str = "keys"  # how it zooms: "wheel" also by the wheel, "" not at all
    hint: str = ""  # what can be done with it
    overlay: Mapping[str, Any] = {}  # settings of the layout that may change without the figure


@cache
def _plotly() -> bytes:
    return gzip.compress(plotly_script().encode(), 6)


class Board(anywidget.AnyWidget):
    """A board, without what is on it: its title for a screen reader, and its controls in the order shown."""

    _esm = read_asset("views/page/make.js") + "".join(read_asset(f"widgets/{name}.js") for name in _SCRIPTS)
    _css = read_asset("widgets/widgets.css")
    title = traitlets.Unicode().tag(sync=True)
    controls: Any = traitlets.List().tag(sync=True)  # what the browser makes the controls from
    state = traitlets.Dict().tag(sync=True)  # what they are set to, what is selected, what was answered
    figures = traitlets.Dict().tag(sync=True)  # plotly's JSON and what stands beside it, by name
    overlays = traitlets.Dict().tag(sync=True)  # settings of a figure's layout that are laid over it, as JSON
    words = traitlets.Dict().tag(sync=True)  # sentences, by what they are
    counts: Any = traitlets.List().tag(sync=True)
    table = traitlets.Dict().tag(sync=True)
    code = traitlets.Dict().tag(sync=True)

    def __init__(self, title: str, controls: Iterable[Control]) -> None:
        super().__init__(title=title)
        self._controls = {control.name: control for control in controls}
        self._look, self._revision, self._answered = Look(), 0, ""
        self._selection: dict[str, Any] = {}
        for control in self._controls.values():
            control.on_change = self._changed
        self.on_msg(self._hear)

    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The picture that is shown, with its title and legend, for a page, a file, or to change it."""
        raise NotImplementedError  # each board has a picture of its own

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, and a picture of it where plotly's renderer makes one for pages that run no scripts."""
        bundle: Any = super()._repr_mimebundle_(**options)
        if self.figures:
            (bundle[0] if isinstance(bundle, tuple) else bundle).update(still_pictures(self._still))
        return bundle

    def _still(self, theme: Theme | None = None) -> Figure:
        return self.figure(theme=theme)

    # ---- what a board of a kind does

    def follow(self, control: Control) -> None:
        """Shows what comes of a control that was set."""

    def _say_more(self) -> None:
        """Says what takes longer to find out than the pictures take, once these are on their way."""

    def draw(self) -> None:
        """Draws the pictures anew, as the theme of the page or its room has changed."""

    def clicked(self, picture: str, x: Place, y: Place, name: str) -> None:
        """A click on a picture: the place on its axes, and the name of what was there; "" beside all marks."""

    def pressed(self, picture: str, key: str) -> None:
        """A key pressed on a picture: "up", "down", "left", "right" or "enter"."""

    def zoomed(self, picture: str, x: Sequence[Any], y: Sequence[Any]) -> None:
        """The axes of a picture show another part."""

    def picked(self, row: int) -> None:
        """A row of the table was chosen."""

    # ---- what it shows

    def show_controls(self) -> None:
        """Tells the browser what the controls are, and what they are set to."""
        specs = [control.spec() for control in self._controls.values()]
        if specs != self.controls:
            self.controls = specs
        self._tell()

    def _tell(self) -> None:
        values = {name: control.shown for name, control in self._controls.items()}
        shown = {"answered": self._answered, "revision": self._revision, "selection": self._selection}
        self.state = {"values": values, **shown}

    def show_pictures(self, pictures: dict[str, Picture]) -> None:
        """Draws these pictures, and no others."""
        self._revision += 1
        self.overlays = {name: json.dumps(each.overlay) for name, each in pictures.items() if each.overlay}
        self.figures = {name: _sent(each) for name, each in pictures.items()}

    def lay_over(self, picture: str, layout: dict[str, Any]) -> None:
        """Changes settings of a picture's layout, and draws nothing else anew."""
        self._revision += 1
        self.overlays = {**self.overlays, picture: json.dumps(layout)}

    def say(self, *sentences: str, refused: bool = False, of: str = "said") -> None:
        """Says these sentences instead of those before; they are read out by a screen reader."""
        self.words = {**self.words, of: list(map(str, sentences)), f"{of} is refused": refused}

    def show_counts(self, counts: Iterable[Count]) -> None:
        """Shows numbers, with how they differ from those of a snapshot."""
        self.counts = [_tile(count) for count in counts]

    def show_table(
        self, titles: Iterable[str] = (), rows: Iterable[Iterable[object]] = (), *, label: str = "", pick: str = ""
    ) -> None:
        """Shows a table, or none without titles; `pick` says what happens when a row is chosen."""
        cells = [[str(cell) for cell in row] for row in rows]
        self.table = {"titles": list(titles), "rows": cells, "label": label, "pick": pick}

    # ---- what a browser sends

    def _changed(self, control: Control) -> None:
        with self.hold_sync():
            self.follow(control)
            self.show_controls()

    def _hear(self, _: Any, message: Any, buffers: Any) -> None:
        if not isinstance(message, dict):
            return
        if message.get("kind") == "plotly":
            self.send({"kind": "plotly"}, [_plotly()])
        elif message.get("kind") == "whole":
            figure = figure_json(self._still(self._look.theme))
            self.send({"kind": "whole", "figure": figure, "format": str(message.get("format"))})
        elif message.get("kind") in _MESSAGES:
            with self.hold_sync():
                self._answered = str(message.get("number", ""))
                self._act(message)
                self.show_controls()
            self._say_more()

    def _act(self, message: dict[str, Any]) -> None:
        kind, picture = message["kind"], str(message.get("picture"))
        x, y = message.get("x"), message.get("y")
        if kind == "set":
            control = self._controls.get(str(message.get("name")))
            if control is not None:
                control.take(message.get("value"))
        elif kind == "look":
            self._see(message)
        elif kind == "click" and _is_place(x) and _is_place(y):
            self.clicked(picture, x, y, str(message.get("name", "")))
        elif kind == "key":
            self.pressed(picture, str(message.get("key")))
        elif kind == "zoom" and isinstance(x, list) and isinstance(y, list):
            self.zoomed(picture, x, y)
        elif kind == "row" and isinstance(message.get("row"), int):
            self.picked(message["row"])

    def _see(self, message: dict[str, Any]) -> None:
        width = _within(message.get("width"), LEAST_WIDTH, MOST_WIDTH, USUAL_WIDTH)
        height = _within(message.get("height"), LOWEST, HIGHEST, HEIGHT)
        look = Look("dark" if message.get("theme") == "dark" else "light", width, height)
        if look != self._look:
            self._look = look
            self.draw()


def _sent(picture: Picture) -> dict[str, Any]:
    beside = picture._asdict()
    del beside["overlay"]
    return {**beside, "figure": figure_json(picture.figure, with_empty=False)}


def _is_place(given: Any) -> TypeGuard[Place]:
    return isinstance(given, Place) and (isinstance(given, str) or isfinite(given))


def _within(given: Any, low: int, high: int, otherwise: int) -> int:
    return min(max(given, low), high) if isinstance(given, int) else otherwise


def _tile(count: Count) -> dict[str, Any]:
    shown = count.shown or (show_duration(count.value) if count.is_duration else f"{count.value:,}")
    words = count.words if count.before is None else f"{_difference(count)} compared with the snapshot"
    name = counted(count.name, count.value)
    return {"name": name, "shown": shown, "words": words, "bad": count.name == "dropped" and count.value > 0}


def _difference(count: Count) -> str:
    change = count.value - (count.before or 0)
    if not change:
        return "the same"
    size = show_duration(abs(change)) if count.is_duration else f"{abs(change):,}"
    return f"{'+' if change > 0 else '−'}{size}"
