"""Widgets for a notebook: tune the windows, play a run back, look into a store, watch a stream."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from sessionkit.base.calls import called_as
from sessionkit.base.durations import Duration
from sessionkit.errors import InvalidArgument, WidgetsUnavailable, install, problem, shorten
from sessionkit.plan import Plan, plan_and_data
from sessionkit.stores.registry import such_as

if TYPE_CHECKING:
    from sessionkit.run import Run
    from sessionkit.stores.base.store import BaseStore
    from sessionkit.stores.read_only import ReadOnlyStore
    from sessionkit.widgets.player import Player
    from sessionkit.widgets.store_browser import StoreBrowser
    from sessionkit.widgets.tables.browser import TableBrowser, View
    from sessionkit.widgets.tune_board import TuneBoard
    from sessionkit.widgets.watch_board import WatchBoard
    from sessionkit.widgets.watched_query import ProgressLine


@called_as('sk.tune(plan, data, grace=("0s", "6h"))')
def tune(plan: Plan, data: Any, *, label: bool = True, **spans: tuple[Duration, Duration]) -> TuneBoard:
    """A board with a slider for each length of the plan's windows, and counts and pictures that follow.

    Its `plan` and `run` are the current ones; `set(grace="2h")` moves a slider from code.

    Args:
        data: what `plan.run` takes, except Spark DataFrames: the records are read once and run again at each step.
        label: False leaves out the records' labels, if the plan names some.
        spans: the shortest and the longest length that a slider offers, such as `grace=("0s", "6h")`; without one it
            goes from a thirtieth of the plan's length to thirty times it. A length between its steps can be typed.
    Raises:
        InvalidArgument: the plan is not complete, the windows have no such length, or a span ends before it starts.
    Example:
        >>> board = sk.tune(waves, flights, grace=("0s", "6h"))
        >>> board.set(grace="2h")
        >>> board.plan.windows, board.run.metrics()["dropped-records-total"]
        (SessionWindows(inactivity_gap="1h", grace="2h"), 212)
    """
    _check_installed()
    from sessionkit.widgets.tune_board import TuneBoard

    plan, data = plan_and_data(plan, data, "tune")
    source = plan.source if label else replace(plan.source, label=None)
    return TuneBoard(replace(plan, source=source), data, spans)


@called_as('sk.play(run, "ada")')
def play(
    run: Run,
    key: Any = None,
    *,
    partition: int | None = None,
    from_offset: int | None = None,
    until_offset: int | None = None,
    last: int | None = None,
    label: bool = True,
) -> Player:
    """The arrivals of one key's plane, one after the other: by slider, arrow keys or the play button.

    Beside the picture is what the newest record did, and why. For a saved page: `run.plane(key, playback=True)`.

    Args:
        key: whose plane; by default the key with the most events.
        partition, from_offset, until_offset, last: where to look, as in `run.plane`: a partition, and offsets or a
            number of records to show only a part.
        label: as in `run.plane`.
    Raises:
        NotKept: the run was started with `trace=False`.
        UnknownRecord: the run holds no such key, or no record between these offsets.
        InvalidArgument: `last` is below 1, or stands beside an offset.
        WidgetsUnavailable: anywidget is not installed; all widgets need it.
    Example:
        >>> player = sk.play(waves.run(flights), "EV@EWR")
        >>> player.arrivals.place = 3
        >>> player.arrivals.words[3]
        '223 · EV@EWR · 2013-07-01 09:00'
    """
    _check_installed()
    from sessionkit.widgets.player import Player

    stretch = {"partition": partition, "from_offset": from_offset, "until_offset": until_offset, "last": last}
    return Player(run._showing(label), key, **stretch)


@called_as('sk.browse(store), or sk.browse(run, "dropped")')
def browse(held: BaseStore | ReadOnlyStore | Run, what: View | None = None) -> StoreBrowser | TableBrowser:
    """What a store holds, or what a run found, to look into.

    Of a store: its windows by key and time, a picture and a table, read again each time. Of a run: a table, 50 rows a
    page, to be searched (letters in the key or in any text), sorted by any column and filtered by spans of numbers or
    times. All of that happens where the data is, so that millions of rows can be looked into; a click on a row explains
    it. The frame itself is that of `run.table()`, `run.changelog()` and `run.dropped()`.

    Args:
        what: of a run: "table" (its windows; the default), "changelog" (what went downstream) or "dropped".
    Raises:
        InvalidArgument: neither a store nor a run in this process, or no such table.
        NotKept: the run was started with `trace=False`, and has its windows alone.
    Example:
        >>> store = sk.open_store("memory", "clicks-store")
        >>> store.put("ada", 5, 9, 2)
        True
        >>> browser = sk.browse(store)
        >>> sk.browse(waves.run(flights), "dropped").table.row_count
        955
    """
    _check_installed()
    from sessionkit.run import Run

    given: object = held
    if isinstance(given, Run):
        from sessionkit.widgets.tables.browser import TableBrowser

        return TableBrowser(given, "table" if what is None else what)
    from sessionkit.widgets.store_browser import StoreBrowser

    got = shorten(repr(given))
    if type(given).__module__.startswith("sessionkit.spark."):
        has_part = hasattr(given, "local")
        want = 'sk.browse(run.local(partition=0), "table")' if has_part else "a run over what run.write has written"
        raise InvalidArgument(problem("browse takes a run in this process, not one on Spark", got, want))
    if not hasattr(given, "facts"):
        raise InvalidArgument(problem("browse takes a store or a run", got, f"plan.run(data), or a store: {such_as()}"))
    if what is not None:
        want = 'sk.browse(store) alone; of a run: sk.browse(run, "table")'
        raise InvalidArgument(problem("a store has no tables to choose from", f"what={what!r}", want))
    return StoreBrowser(held)  # type: ignore[arg-type]


@called_as("sk.watch(query)")
def watch(
    query: Any, *, keys: Iterable[object] = (), checkpoint: str | os.PathLike[str] | None = None
) -> WatchBoard | ProgressLine:
    """A streaming query as it runs: a board in a notebook, a line that follows it in a terminal.

    The board shows what the query does now and since when, its counters, where the time of a micro-batch went, how far
    each partition is, and the windows of chosen keys as the state has them: filled once closed. It only uses what
    Spark tells of the query; the state is read from the checkpoint, every few seconds.

    Args:
        query: what `run.write(…)` or `run.events().writeStream….start()` gave.
        keys: whose windows to show; by default the keys with the newest windows.
        checkpoint: the query's, if it was not started by `run.write`, which tells it.
    Raises:
        InvalidArgument: the query does not run a plan of sessionkit, or it was started in another process.
    Example:
        >>> sk.watch(run.write(checkpoint="state", changelog="sessions"), keys=["ada"])  # doctest: +SKIP
    """
    from sessionkit.spark.query.listener import progress_of
    from sessionkit.widgets.watched_query import ProgressLine

    listener, progress = progress_of(query)
    if checkpoint is not None:
        progress.checkpoint = os.fspath(checkpoint)
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if not hasattr(shell, "kernel"):  # not in a notebook
        line = ProgressLine()
        line.show(progress)
        listener.call(query, line.show)
        return line
    _check_installed()
    from sessionkit.widgets.watch_board import WatchBoard

    board = WatchBoard(progress, listener.plans, keys, query)
    listener.call(query, board.hear)
    return board


def _check_installed() -> None:
    if find_spec("anywidget") is None:
        what = "widgets need a package that is not installed"
        raise WidgetsUnavailable(problem(what, "anywidget", install("notebook")))
