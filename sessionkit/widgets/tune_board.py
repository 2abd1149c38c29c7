"""The board behind `sk.tune`: sliders over the windows' lengths, what they come to, and pictures that follow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import traitlets

from sessionkit.advice.sweep import lengths_ms
from sessionkit.base.calls import called_as
from sessionkit.base.durations import Duration, duration_ms
from sessionkit.base.text import key_name
from sessionkit.errors import InvalidArgument, SessionkitError
from sessionkit.exports.export import Export
from sessionkit.plan import Plan
from sessionkit.records.keys import code_of_key
from sessionkit.run import Run
from sessionkit.stores.contract import EMIT_STRATEGIES
from sessionkit.views.drawing.palettes import Figure, Theme
from sessionkit.views.emissions.emissions import Emissions, emissions_of
from sessionkit.views.explain.record import explain_decision
from sessionkit.views.tables import losses
from sessionkit.widgets.board import Board, Look, Picture, Place
from sessionkit.widgets.controls import Button, Choice, Control, Field, Length, sliders_of
from sessionkit.widgets.run_views import Chosen, CostsView, LanesView, PlaneView, explained
from sessionkit.widgets.strip import Strip, beside_strip
from sessionkit.widgets.tuner import Tuner, plan_code

MOST_KEYS = 300  # in the list; the rest are found by their letters
LOSERS = 12
LENGTHS = {"gap": "inactivity_gap", **{name: name for name in ("grace", "size", "advance", "time_difference")}}
_VIEWS = {
    "plane": "one key",
    "lanes": "many keys",
    "sent": "what is sent",
    "costs": "what settings cost",
    "losses": "who loses the most",
    "clock": "who moved the clock",
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
_NO_KEYS = "There are no keys."
_LOSS_TITLES = ("key", "late", "of records", "share", "merges")
_LOSS_CELLS = ("{late:,}", "{records:,}", "{share:.2%}", "{merges:,}")  # behind the key


class TuneBoard(Board):
    """A plan, and its records under the current settings.

    `plan` and `run` are the current ones, `snapshot` is the run that was kept; `set(grace="2h")` moves a slider, and
    `figure()` gives the picture that is shown.

    `gap`, `grace`, `size`, `advance` and `time_difference` in milliseconds (None: the windows have no such length),
    `key`, and the `offset` of the chosen record are traits: they can be set (a length also as "30m"), observed, and
    linked with other widgets.
    """

    gap, grace, size, advance, time_difference = (traitlets.TraitType[Any, Any](None).tag(sync=True) for _ in LENGTHS)
    key = traitlets.Any().tag(sync=True, to_json=lambda key, _: key if isinstance(key, str | int | float) else str(key))
    offset = traitlets.Any().tag(sync=True)

    def __init__(self, plan: Plan, data: Any, spans: Mapping[str, tuple[Duration, Duration]]) -> None:
        self._tuner = tuner = Tuner(plan, data)
        self.sliders = sliders_of(tuner.settings, spans)
        strategies = [(name.replace("_", " "), name) for name in EMIT_STRATEGIES]
        self._emit = Choice("emit", "emit", strategies, plan._strategy, look="buttons")
        self._key = Choice("key", "key", [], None, look="list")
        self._letters = Field("letters", "find key")
        self._keep = Button("keep", "keep as snapshot", "later numbers are compared with these")
        self._view = Choice("view", "show", [(words, name) for name, words in _VIEWS.items()], "plane", look="tabs")
        parts = [("the part with the most to see", "part"), ("everything", "all")]
        self._span = Choice("span", "event time", parts, "part", look="buttons", views=["lanes"])
        orders = [(order, order) for order in ("drops", "merges", "activity", "key")]
        self._sort = Choice("sort", "most first by", orders, "drops", look="list", views=["lanes"])
        counts = [("as many as fit", None), ("up to 40", 40)]
        self._most = Choice("most", "keys", counts, None, look="buttons", views=["lanes"])
        targets = [(name, name) for name in (_PYTHON, *_TARGETS)]
        self._target = Choice("target", "for", targets, _PYTHON, look="list", views=["code"])
        settings = [self._emit, self._key, self._letters, self._keep, self._span, self._most, self._sort, self._target]
        super().__init__("Settings tuned", [*self.sliders.values(), *settings, self._view])
        self._plane, self._lanes, self._strip = PlaneView(), LanesView(), Strip()
        self._costs, self._chosen, self._is_new = CostsView(), Chosen(), False
        self._list_keys()
        self._try()
        self.show_controls()
        self._say_more()

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

    @called_as('board.set(grace="2h")')
    def set(self, **changed: Duration | int) -> None:
        """Moves sliders, such as `set(grace="2h")`.

        Raises:
            InvalidArgument: the windows have no such length, or cannot have it; then nothing moves.
        """
        self.plan.with_windows(**changed)
        for name, value_ms in lengths_ms(changed).items():
            self.sliders[LENGTHS.get(name, name)].choose(value_ms)
        with self.hold_sync():
            self._try()
            self.show_controls()
        self._say_more()

    @traitlets.validate(*LENGTHS)
    def _length_in_ms(self, proposal: Any) -> int | None:
        name, value = LENGTHS[proposal.trait.name], proposal.value
        if value is None and name not in self.sliders:
            return None
        value_ms = value if isinstance(value, int) else duration_ms(value, name)
        self.plan.with_windows(**{f"{name}_ms": value_ms})
        return value_ms

    @traitlets.observe(*LENGTHS)
    def _length_was_set(self, change: Any) -> None:
        name = LENGTHS[change.name]
        if change.new != self._tuner.settings.get(name):
            self.set(**{f"{name}_ms": change.new})

    @traitlets.validate("key", "offset")
    def _what_is_there(self, proposal: Any) -> Any:
        keys = self.run.trace.keys
        if proposal.trait.name == "key" and proposal.value is not None:
            return keys[code_of_key(keys, proposal.value)].as_py()
        if proposal.value is not None:
            self._row_of(proposal.value)
        return proposal.value

    @traitlets.observe("key", "offset")
    def _was_chosen(self, change: Any) -> None:
        if change.new == (self._chosen.key if change.name == "key" else self._offset):
            return
        trace, chosen = self.run.trace, Chosen(self.key)
        if change.name == "offset" and change.new is not None:
            row = self._row_of(change.new)
            key, partition = trace.keys[int(trace.batch.key[row])].as_py(), trace.batch.partition[row]
            chosen = Chosen(key, int(trace.batch.partitions[partition]), row)
        with self.hold_sync():
            self._select(chosen)
            self.draw()
            self.show_controls()

    @property
    def _offset(self) -> int | None:
        record = self._chosen.record
        return None if record is None else int(self.run.trace.batch.offset[record])

    def _row_of(self, offset: int) -> int:
        trace, partition, scene = self.run.trace, self._chosen.partition, self._plane.scene
        if partition is None and scene is not None:
            partition = int(trace.batch.partitions[scene.history.partition])
        return trace.index_of(offset, partition)

    def __repr__(self) -> str:
        return "\n".join([f"TuneBoard: {self.run.summary()}", *self.run._late_remarks])

    @called_as("board.figure()")
    def figure(self, *, theme: Theme | None = None) -> Figure:
        """The picture of the view that is shown; of a view without one that of the key."""
        view, run, key = self._view.value, self.run, self._key.value
        if view == "costs":
            return self._tuner.sweep().heat_map(theme=theme)
        if view == "clock":
            return run.clock().figure(theme=theme)
        if view == "change" and self.snapshot is not None:
            return self.snapshot.compare(run).figure(theme=theme)
        if view == "lanes" or key is None:
            return run.lanes(theme=theme, **self._lanes.options)
        return self._sent().figure(theme=theme) if view == "sent" else run.plane(key, theme=theme)

    @called_as('board.write_html("clicks.html")')
    def write_html(
        self,
        path: str | Path,
        *,
        keys: Iterable[Any] | None = None,
        most_records: int = 100_000,
        hide_keys: bool = False,
        title: str | None = None,
    ) -> Path:
        """Writes the run under the current settings as a page with sliders, which needs no kernel: `Run.write_html`.

        Raises:
            NotBuilt, InvalidData, InvalidArgument, UnknownRecord, WriteFailed: as `Run.write_html` does.
        """
        return self.run.write_html(path, keys=keys, most_records=most_records, hide_keys=hide_keys, title=title)

    # ---- what a person does

    def follow(self, control: Control) -> None:
        """Shows what comes of a control that was set."""
        if control is self._keep:
            self._tuner.keep()
            self.show_counts(self._tuner.counts())
        elif control is self._letters:
            self._list_keys()
        elif control is self._key:
            self._select(Chosen(self._key.value))
        elif control in (self._sort, self._span, self._most):
            self._lanes.forget()
        if control is self._emit or isinstance(control, Length):
            self._try()
        else:
            self.draw()

    def clicked(self, picture: str, x: Place, y: Place, name: str) -> None:
        """Selects what was clicked in every view; the name of a lane shows its key alone, a cell is set."""
        if picture == "grid":
            self._set_cell(self._costs.at(x, y))
        elif picture in ("plane", "lanes"):
            chosen = (self._plane if picture == "plane" else self._lanes).at(self.run, x, y, name)
            if chosen is not None:
                self._select(chosen, view="plane" if x == "name" and picture == "lanes" else None)
                self.draw()

    def pressed(self, picture: str, key: str) -> None:
        """Goes to the next record or key, opens the key that is chosen, or sets the next cell."""
        step = {"down": 1, "up": -1}.get(key, 0)
        if picture == "grid":
            self._set_cell(self._costs.next(self._tuner.settings, key))
        elif picture == "lanes" and key == "enter":
            self._view.value = "plane"
        elif picture == "lanes" and step:
            self._select(self._lanes.next(self._chosen, step))
            self.draw()
        elif picture == "plane" and (step or key.startswith("drop ")):  # arrivals go upward
            to_drop = {"drop before": -1, "drop after": 1}.get(key)
            self._select(self._plane.next(self._chosen, to_drop or -step, drops=to_drop is not None))
            self.draw()

    def zoomed(self, picture: str, x: Any, y: Any) -> None:
        """Shows more of less, or what the frame of the strip is around."""
        view = self._plane if self._view.value == "plane" else self._lanes
        span = self._strip.span(x) if picture == "strip" else None
        is_new = view.show(*span) if span is not None else picture == "lanes" and self._lanes.zoom(x)
        if is_new:
            self.draw()

    def picked(self, row: int) -> None:
        """Shows a key of the table alone."""
        keys = losses(self.run.trace, LOSERS)["key"].to_pylist()
        if self._view.value == "losses" and 0 <= row < len(keys):
            self._select(Chosen(keys[row]), view="plane")
            self.draw()

    def _set_cell(self, settings: dict[str, Any]) -> None:
        with suppress(InvalidArgument):  # no length of time: not a cell
            if settings:
                self.set(**settings)

    def _select(self, chosen: Chosen, view: str | None = None) -> None:
        self._chosen = chosen
        if chosen.key is not None and chosen.key != self._key.value:
            if all(chosen.key != key for _, key in self._key.options):
                self._key.options.append((key_name(chosen.key), chosen.key))
            self._key.offer(self._key.options, chosen.key)
        if view is not None:
            self._view.offer(self._view.options, view)
        self.key, self.offset = chosen.key, self._offset
        shown = {"key": key_name(chosen.key), "record": chosen.record, "window_start_ms": chosen.window_start_ms}
        self._selection = {**shown, "partition": chosen.partition}

    # ---- what follows a change

    def _try(self) -> None:
        """Runs the records under what the controls say, and shows what comes of it."""
        try:
            self._tuner.emit(self._emit.value)
            self._tuner.set(**{f"{name}_ms": slider.value_ms for name, slider in self.sliders.items()})
            self.show_counts(self._tuner.counts())
        except SessionkitError as error:
            self.say(f"{error}. Below is still {self.plan._complete_windows.in_words()}.", of="refused")
            return
        settings = self._tuner.settings
        self.gap, self.grace, self.size, self.advance, self.time_difference = map(settings.get, LENGTHS.values())
        self._is_new = True
        self.draw()

    def _say_more(self) -> None:
        if self._is_new:
            self.say(*self.run._late_remarks, of="refused")
        self._is_new = False

    def draw(self) -> None:
        """Draws the view that is shown; the others are drawn when they are."""
        self.show_table()
        self.code = {}
        if self._key.value is None and self._view.value in ("plane", "sent"):
            self._show_nothing(_NO_KEYS)
        else:
            getattr(self, f"_draw_{self._view.value}")()

    @property
    def _room(self) -> Look:
        return beside_strip(self._look, self.run.trace.record_count)

    def _draw_plane(self) -> None:
        picture = self._plane.draw(self.run, self._key.value, self._room, self._chosen)
        assert self._plane.scene is not None
        self._show_picture("plane", picture, self._strip.over_arrival(self._plane.scene, self._look))

    def _draw_lanes(self) -> None:
        how = {"whole_span": self._span.value == "all", "most": self._most.value}
        picture = self._lanes.draw(self.run, self._room, self._chosen, self._sort.value, **how)
        assert self._lanes.scene is not None
        self._show_picture("lanes", picture, self._strip.over_time(self._lanes.scene, self._look))

    def _show_picture(self, name: str, picture: Picture, strip: Picture | None) -> None:
        self.show_pictures({name: picture, **({} if strip is None else {"strip": strip})})
        chosen = self._chosen
        is_one = chosen.record is not None or chosen.window_start_ms is not None
        told = [explained(self.run, chosen)] if chosen.key is not None and (is_one or name == "lanes") else []
        self.say(*told, *([] if is_one else [picture.hint]))

    def _sent(self) -> Emissions:
        """Where several partitions hold the key, of the one with most of its records, as in the other pictures."""
        return emissions_of(self.run, self._key.value, None, chosen=True)

    def _draw_sent(self) -> None:
        self._show_words("sent", self._sent())

    def _draw_clock(self) -> None:
        row, windows = self._chosen.record, self.plan._complete_windows
        why = {} if row is None else {"why": explain_decision(self.run.trace, windows, row)}
        self._show_words("clock", self.run.clock(), **why)

    def _show_words(self, name: str, view: Any, **others: Any) -> None:
        views = {name: view, **others}.items()
        self.show_pictures({name: Picture(each.figure(theme=self._look.theme), str(each)) for name, each in views})
        self.say(*view.words())

    def _draw_costs(self) -> None:
        pictures, said = self._costs.draw(self._tuner, self._look)
        self.show_pictures(pictures)
        self.say(said)

    def _draw_losses(self) -> None:
        rows = losses(self.run.trace, LOSERS).to_pylist()
        self._show_nothing("A click on a key shows it alone." if rows else _NO_KEYS)
        if rows:
            cells = ([key_name(row["key"]), *(cell.format(**row) for cell in _LOSS_CELLS)] for row in rows)
            self.show_table(_LOSS_TITLES, cells, label="the keys that lose most", pick="shows this key alone")

    def _draw_change(self) -> None:
        if self.snapshot is None:
            self._show_nothing(_NO_SNAPSHOT)
            return
        self._show_words("change", self.snapshot.compare(self.run))

    def _draw_code(self) -> None:
        target, text, said = self._target.value, plan_code(self.plan), list[str]()
        if target != _PYTHON:
            try:
                export = _TARGETS[target](self.plan)
                text, said = export.code, export.differences
            except SessionkitError as error:
                self._show_nothing(str(error), refused=True)
                return
        self._show_nothing(*said)
        self.code = {"text": text, "label": f"the plan as code for {target}"}

    def _show_nothing(self, *said: str, refused: bool = False) -> None:
        self.show_pictures({})
        self.say(*said, refused=refused)

    def _list_keys(self) -> None:
        """Lists the keys whose names hold the letters, those that lose most first."""
        letters, chosen = self._letters.value.casefold(), self._key.value
        most = len(self.run.trace.keys) if letters else MOST_KEYS
        keys = losses(self.run.trace, most)["key"].to_pylist()
        matching = [key for key in keys if letters in str(key).casefold()][:MOST_KEYS]
        preferred = (chosen, self.run.most_eventful_key()) if matching else ()
        value = next((key for key in (*preferred, *matching) if key in matching), None)
        self._key.offer([(key_name(key), key) for key in matching], value)
        if self._chosen.key != value:
            self._select(Chosen(value))
