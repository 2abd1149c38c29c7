"""The small parts that widgets are made of: a picture, a length of time to set, code to copy, numbers, words."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import anywidget
import ipywidgets
import traitlets

from sessionkit.base.assets import read_asset
from sessionkit.base.durations import duration_ms, show_duration
from sessionkit.base.text import escape_html, html_block
from sessionkit.errors import InvalidArgument
from sessionkit.views.charts.drawing.grammar import LEAST_WIDTH, MOST_WIDTH, USUAL_WIDTH
from sessionkit.views.charts.drawing.script import plotly_script
from sessionkit.widgets.tuner import Count

if TYPE_CHECKING:
    import plotly.graph_objects as go

Click = Callable[[float | str, float | str, str], None]
Zoom = Callable[[list[Any], list[Any]], None]


ROW = ipywidgets.Layout(align_items="flex-end", flex_flow="row wrap")


@cache
def _plotly_script() -> bytes:
    return gzip.compress(plotly_script().encode(), 6)


class Picture(anywidget.AnyWidget):
    """A plotly figure that survives a reload of the page: it is the widget's state, and the browser only draws it.

    (A FigureWidget in a box is empty after a reload, and saves 4.8 MB of script in the notebook.)
    """

    _esm = read_asset("keys.js") + read_asset("picture.js")
    _css = read_asset("widgets.css")
    figure = traitlets.Unicode().tag(sync=True)  # plotly's JSON
    patch = traitlets.Unicode().tag(sync=True)  # settings of the layout that are laid over it, as JSON
    label = traitlets.Unicode().tag(sync=True)  # for a screen reader
    revision = traitlets.Int().tag(sync=True)
    theme: Any = traitlets.Enum(["light", "dark"], "light").tag(sync=True)  # set by the browser
    width = traitlets.Int(USUAL_WIDTH).tag(sync=True)  # set by the browser: the room that there is
    zoomed = traitlets.Dict().tag(sync=True)  # set by the browser: what the axes show
    can_scroll = traitlets.Bool(False).tag(sync=True)

    def __init__(self, *, on_click: Click | None = None, on_zoom: Zoom | None = None, **options: Any) -> None:
        super().__init__(**options)
        self._on_click = on_click
        self._on_zoom = on_zoom
        self.on_msg(self._answer)
        self.observe(self._note_zoom, "zoomed")

    @property
    def look(self) -> dict[str, Any]:
        """The theme and the width of what is drawn."""
        return {"theme": self.theme, "width": min(max(self.width, LEAST_WIDTH), MOST_WIDTH)}

    def show(self, figure: go.Figure, label: str) -> None:
        """Draws another figure; `label` says what it shows."""
        with self.hold_sync():
            self.revision += 1
            self.label = label
            self.patch = ""
            self.figure = figure.to_json() or ""

    def lay_over(self, layout_json: str) -> None:
        """Changes settings of the layout, and draws nothing else anew."""
        with self.hold_sync():
            self.revision += 1
            self.patch = layout_json

    def _answer(self, _: Any, message: Any, buffers: Any) -> None:
        if not isinstance(message, dict):
            return
        if message.get("kind") == "plotly":
            self.send({"kind": "plotly"}, [_plotly_script()])
        elif message.get("kind") == "click" and self._on_click is not None:
            x, y, name = (message.get(each) for each in ("x", "y", "name"))
            if isinstance(x, int | float | str) and isinstance(y, int | float | str):
                self._on_click(x, y, str(name))

    def _note_zoom(self, change: Any) -> None:
        x, y = change["new"].get("x"), change["new"].get("y")
        if self._on_zoom is not None and isinstance(x, list) and isinstance(y, list):
            self._on_zoom(x, y)


class Steps(anywidget.AnyWidget):
    """A slider over steps that have names; a screen reader says the name, an arrow key goes to the next one."""

    _esm = read_asset("keys.js") + read_asset("slider.js")
    _css = read_asset("widgets.css")
    name = traitlets.Unicode().tag(sync=True)
    words = traitlets.List(traitlets.Unicode()).tag(sync=True)
    place = traitlets.Int().tag(sync=True)
    can_type = traitlets.Bool(False).tag(sync=True)
    hint = traitlets.Unicode().tag(sync=True)  # what can be typed
    typed = traitlets.Unicode().tag(sync=True)  # set by the browser
    refused = traitlets.Unicode().tag(sync=True)


class DurationSlider(Steps):
    """A length of time: a slider over round lengths, and a field for any other."""

    value_ms = traitlets.Int()  # what others observe

    def __init__(self, name: str, steps_ms: Sequence[int], value_ms: int) -> None:
        self._steps_ms = sorted({*steps_ms, value_ms})
        hint = "a number with a unit, such as 1h 30m"
        super().__init__(name=name.replace("_", " "), can_type=True, hint=hint)
        self.choose(value_ms)
        self.observe(self._moved, "place")
        self.observe(self._read, "typed")

    def choose(self, value_ms: int) -> None:
        """Sets the length; one that is no step becomes one."""
        self._steps_ms = sorted({*self._steps_ms, value_ms})
        with self.hold_sync():
            self.words = [show_duration(ms) for ms in self._steps_ms]
            self.place = self._steps_ms.index(value_ms)
            self.refused = ""
        self.value_ms = value_ms

    def _moved(self, change: Any) -> None:
        if 0 <= change["new"] < len(self._steps_ms):
            self.choose(self._steps_ms[change["new"]])

    def _read(self, change: Any) -> None:
        text, self.typed = change["new"], ""
        if not text:
            return
        try:
            self.choose(duration_ms(text, self.name))
        except InvalidArgument as error:
            self.refused = str(error)


class Code(anywidget.AnyWidget):
    """Code as text, with a button that copies it."""

    _esm = read_asset("code.js")
    _css = read_asset("widgets.css")
    text = traitlets.Unicode().tag(sync=True)
    label = traitlets.Unicode("code").tag(sync=True)


class Words(ipywidgets.HTML):
    """Sentences from the library, as text: nothing in them is markup."""

    def say(self, *sentences: str, refused: bool = False) -> None:
        """Shows the sentences, a paragraph each; read out by a screen reader."""
        kind = " class='refused'" if refused else ""
        said = "".join(f"<p{kind}>{escape_html(sentence)}</p>" for sentence in sentences)
        self.value = html_block(f"<div class='sessionkit-words' role='status'>{said}</div>")

    def show_table(self, titles: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
        """Shows a table."""
        head = "".join(f"<th scope='col'>{escape_html(title)}</th>" for title in titles)
        body = "".join("<tr>" + "".join(f"<td>{escape_html(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        self.value = html_block(f"<div class='sessionkit-words'>{table}</div>")

    def show_counts(self, counts: Iterable[Count]) -> None:
        """Shows numbers in tiles, with how they differ from those of a snapshot."""
        self.value = html_block(f"<div class='sessionkit-counts' role='status'>{''.join(map(_tile, counts))}</div>")


def buttons(description: str, options: Sequence[tuple[str, str]]) -> ipywidgets.ToggleButtons:
    """A row of buttons of which one is pressed, as wide as their words."""
    group = ipywidgets.ToggleButtons(options=options, description=description)
    group.style.button_width = "initial"
    group.layout.width = "max-content"
    group.layout.max_width = "100%"
    return group


def _tile(count: Count) -> str:
    kind = " class='bad'" if count.name == "dropped" and count.value else ""
    shown = count.shown or (show_duration(count.value) if count.is_duration else f"{count.value:,}")
    words = count.words
    if count.before is not None:
        words = f"{_difference(count)} compared with the snapshot"
    return f"<div{kind}><b>{escape_html(shown)}</b><span>{count.name}</span><small>{escape_html(words)}</small></div>"


def _difference(count: Count) -> str:
    change = count.value - (count.before or 0)
    if not change:
        return "the same"
    size = show_duration(abs(change)) if count.is_duration else f"{abs(change):,}"
    return f"{'+' if change > 0 else '−'}{size}"
