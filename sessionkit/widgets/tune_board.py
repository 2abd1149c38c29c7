"""The board behind `sk.tune`: sliders over the windows' lengths, what they come to, and pictures that follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import ipywidgets
import traitlets

from sessionkit.advice.sweep import Sweep, lengths_ms
from sessionkit.base.durations import Duration, show_duration
from sessionkit.errors import InvalidArgument, SessionkitError, problem, shorten
from sessionkit.exports.export import Export
from sessionkit.plan import Plan
from sessionkit.run import Run
from sessionkit.stores.contract import EMIT_STRATEGIES
from sessionkit.views.charts.drawing.palettes import palette
from sessionkit.views.comparison import Comparison
from sessionkit.views.tables import losses
from sessionkit.widgets.parts import ROW, Code, DurationSlider, Picture, Words, buttons
from sessionkit.widgets.run_views import LanesView, PlaneView, SentView
from sessionkit.widgets.tuner import Tuner, ladder, plan_code

if TYPE_CHECKING:
    import plotly.graph_objects as go

MOST_KEYS = 300  # in the list; the rest are found by their letters
LOSERS = 12
_VIEWS = {
    "plane": "one key",
    "lanes": "many keys",
    "sent": "what is sent",
    "costs": "what settings cost",
    "losses": "who loses the most",
    "change": "compared with the snapshot",
    "code": "as code",
}
_TARGETS: dict[str, Callable[[Plan], Export]] = {
    "Kafka Streams (Java)": Plan.to_java,
    "ksqlDB": Plan.to_ksql,
    "Flink SQL": Plan.to_flink_sql,
    "Spark": Plan.to_spark,
}
_PYTHON = "sessionkit"
_NO_SNAPSHOT = "Keep a snapshot first, then change a setting."


class TuneBoard(ipywidgets.VBox):
    """A plan, and its records under the current settings.

    `plan` and `run` are the current ones, `snapshot` is the run that was kept; `set(grace="2h")` moves a slider.
    """

    def __init__(self, plan: Plan, data: Any, spans: Mapping[str, tuple[Duration, Duration]]) -> None:
        self._tuner = tuner = Tuner(plan, data)
        self.sliders = _sliders(tuner.settings, spans)
        self._emit = ipywidgets.ToggleButtons(
            options=[(name.replace("_", " "), name) for name in EMIT_STRATEGIES],
            value=plan.strategy,
            description="emit",
        )
        self._key = ipywidgets.Dropdown(description="key")
        self._letters = ipywidgets.Text(description="find key", continuous_update=False)
        self._keep = ipywidgets.Button(description="keep as snapshot", tooltip="later numbers are compared with these")
        self._view = buttons("show", [(words, name) for name, words in _VIEWS.items()])
        self._counts, self._refused = Words(), Words()
        self._plane, self._lanes, self._sent = PlaneView(), LanesView(), SentView()
        self._costs, self._losses, self._change = _Costs(self.set), Words(), _Change()
        self._code = _CodeView()
        pictures = [*(view.picture for view in (self._plane, self._lanes, self._sent, self._change))]
        for picture in (*pictures[1:], self._costs.grid, self._costs.pareto):
            traitlets.link((pictures[0], "theme"), (picture, "theme"))
        self._shown = ipywidgets.VBox()
        self._is_quiet = True  # while the board itself moves its controls
        super().__init__(
            [
                *self.sliders.values(),
                ipywidgets.HBox([self._emit, self._key, self._letters, self._keep], layout=ROW),
                self._counts,
                self._refused,
                self._view,
                self._shown,
            ]
        )
        for slider in self.sliders.values():
            slider.observe(lambda _: self._follow(), "value_ms")
        self._emit.observe(lambda _: self._follow(), "value")
        self._key.observe(lambda _: self._draw(), "value")
        self._letters.observe(lambda _: self._find_keys(), "value")
        self._view.observe(lambda _: self._draw(), "value")
        self._keep.on_click(lambda _: self._keep_snapshot())
        self._list_keys()
        self._follow()

    @property
    def plan(self) -> Plan:
        """The plan under the current settings."""
        return self._tuner.plan

    @property
    def run(self) -> Run:
        """The run under the current settings."""
        return self._tuner.run

    @property
    def snapshot(self) -> Run | None:
        """The run that was kept; None if none was."""
        return self._tuner.snapshot

    def set(self, **changed: Duration | int) -> None:
        """Moves sliders, such as `set(grace="2h")`.

        Raises:
            InvalidArgument: the windows have no such length, or cannot have it; then nothing moves.
        """
        self.plan.with_windows(**changed)
        values = lengths_ms(changed)
        self._is_quiet = True
        for name, value_ms in values.items():
            self.sliders[name].choose(value_ms)
        self._is_quiet = False
        self._follow()

    def __repr__(self) -> str:
        return f"TuneBoard: {self.run.summary()}"

    # ---- what follows a change

    def _follow(self) -> None:
        """Runs the records under what the controls say, and shows what comes of it."""
        if self._is_quiet:
            return
        try:
            self._tuner.emit(self._emit.value)
            self._tuner.set(**{f"{name}_ms": slider.value_ms for name, slider in self.sliders.items()})
            self._counts.show_counts(self._tuner.counts())
        except SessionkitError as error:
            self._refused.say(f"{error}. Below is still {self.plan.complete_windows.in_words()}.", refused=True)
            return
        self._refused.value = ""
        self._draw()

    def _draw(self) -> None:
        """Draws the view that is shown; the others are drawn when they are."""
        if self._is_quiet:
            return
        view, run = self._view.value, self.run
        if view == "plane" and self._key.value is not None:
            self._show(self._plane.box)
            self._plane.show(run, self._key.value)
        elif view == "lanes":
            self._show(self._lanes.box)
            self._lanes.show(run)
        elif view == "sent" and self._key.value is not None:
            self._show(self._sent.picture)
            self._sent.show(run, self._key.value)
        elif view == "costs":
            self._show(self._costs.box)
            self._costs.show(self._tuner)
        elif view == "losses":
            self._show(self._losses)
            self._show_losses()
        elif view == "change":
            self._show(self._change.box)
            self._change.show(self.snapshot, run)
        elif view == "code":
            self._show(self._code.box)
            self._code.show(self.plan)

    def _show(self, box: ipywidgets.Widget) -> None:
        if self._shown.children != (box,):
            self._shown.children = (box,)

    def _keep_snapshot(self) -> None:
        self._tuner.keep()
        self._counts.show_counts(self._tuner.counts())
        self._draw()

    def _list_keys(self) -> None:
        """Lists the keys whose names hold the letters, those that lose most first."""
        letters, chosen = self._letters.value.casefold(), self._key.value
        most = len(self.run.trace.keys) if letters else MOST_KEYS
        keys = losses(self.run.trace, most)["key"].to_pylist()
        matching = [key for key in keys if letters in str(key).casefold()][:MOST_KEYS]
        self._is_quiet = True
        self._key.options = [(shorten(key), key) for key in matching]
        if matching:
            eventful = self.run.most_eventful_key()
            self._key.value = next((key for key in (chosen, eventful) if key in matching), matching[0])
        self._is_quiet = False

    def _find_keys(self) -> None:
        self._list_keys()
        self._draw()

    def _show_losses(self) -> None:
        table = losses(self.run.trace, LOSERS)
        if not len(table):
            self._losses.say("There are no keys.")
            return
        rows = (
            (
                shorten(row["key"]),
                f"{row['late']:,}",
                f"{row['records']:,}",
                f"{row['share']:.2%}",
                f"{row['merges']:,}",
            )
            for row in table.to_pylist()
        )
        self._losses.show_table(("key", "dropped", "of records", "share", "merges"), rows)


class _Costs:
    """The grid of settings around those of now; a click on a cell sets them."""

    def __init__(self, choose: Callable[..., None]) -> None:
        self.grid, self.pareto = Picture(on_click=self._clicked), Picture()
        self._words = Words()
        self.box = ipywidgets.VBox([self._words, self.grid, self.pareto])
        self._choose = choose
        self._sweep: Sweep | None = None
        self._settings: Mapping[str, int] = {}
        self.grid.observe(lambda _: self._draw(), "theme")

    def show(self, tuner: Tuner) -> None:
        """Sweeps settings around those of now."""
        self._sweep, self._settings = tuner.sweep(), tuner.settings
        self._draw()

    def _draw(self) -> None:
        sweep, theme = self._sweep, self.grid.theme
        if sweep is None:
            return
        now = ", ".join(f"{name.replace('_', ' ')} {show_duration(ms)}" for name, ms in self._settings.items())
        figure = sweep.heat_map(theme=theme)
        _mark(figure, [values.index(self._settings[name]) for name, values in sweep.values.items()], theme)
        self.grid.show(figure, f"Share of dropped records for settings around {now}")
        self._words.say(f"The frame is what is set now: {now}. Click a cell to set it.")
        self.pareto.show(sweep.pareto(theme=theme), f"Fewer drops or shorter waits, for settings around {now}")

    def _clicked(self, x: float | str, y: float | str, name: str) -> None:
        if self._sweep is not None and isinstance(x, str) and isinstance(y, str):
            shown = (x.replace(",", ""), y.replace(",", ""))
            with suppress(InvalidArgument):  # no length of time: not a cell
                self._choose(**dict(zip(self._sweep.values, shown, strict=True)))


def _mark(figure: go.Figure, cell: list[int], theme: str) -> None:
    """A frame around one cell of a grid."""
    x, y = cell
    ink = palette(theme).ink
    figure.add_shape(
        type="rect", x0=x - 0.5, x1=x + 0.5, y0=y - 0.5, y1=y + 0.5, line={"color": ink, "width": 3}, layer="above"
    )


class _Change:
    """What differs between the snapshot and now."""

    def __init__(self) -> None:
        self.picture, self._words = Picture(), Words()
        self.box = ipywidgets.VBox([self._words, self.picture])
        self._comparison: Comparison | None = None
        self.picture.observe(lambda _: self._draw(), "theme")

    def show(self, before: Run | None, after: Run) -> None:
        """Compares the two runs."""
        if before is None:
            self._words.say(_NO_SNAPSHOT)
            return
        self._comparison = before.compare(after)
        self._words.say(*self._comparison.words())
        self._draw()

    def _draw(self) -> None:
        if self._comparison is not None:
            figure = self._comparison.figure(theme=self.picture.theme)
            self.picture.show(figure, " ".join(self._comparison.words()))


class _CodeView:
    """The plan of now as code, here and for other systems."""

    def __init__(self) -> None:
        self._target = ipywidgets.Dropdown(options=[_PYTHON, *_TARGETS], description="for")
        self._code, self._words = Code(), Words()
        self.box = ipywidgets.VBox([self._target, self._words, self._code])
        self._plan: Plan | None = None
        self._target.observe(lambda _: self._draw(), "value")

    def show(self, plan: Plan) -> None:
        """Writes the plan for the system that is chosen."""
        self._plan = plan
        self._draw()

    def _draw(self) -> None:
        assert self._plan is not None
        self._code.label = f"the plan as code for {self._target.value}"
        if self._target.value == _PYTHON:
            self._code.text = plan_code(self._plan)
            self._words.value = ""
            return
        try:
            export = _TARGETS[self._target.value](self._plan)
        except SessionkitError as error:
            self._code.text = ""
            self._words.say(str(error), refused=True)
            return
        self._code.text = export.code
        self._words.say(*export.differences)


def _sliders(settings: Mapping[str, int], spans: Mapping[str, tuple[Duration, Duration]]) -> dict[str, DurationSlider]:
    unknown = [name for name in spans if name not in settings]
    if unknown:
        raise InvalidArgument(problem("these windows have no such length", repr(unknown[0]), f"one of {[*settings]}"))
    longest = max(settings.values())
    return {
        name: DurationSlider(name, ladder(value, value or longest, spans.get(name), name), value)
        for name, value in settings.items()
    }
