"""The methods of `Run` that draw it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sessionkit.base.calls import called_as
from sessionkit.base.moments import Moment
from sessionkit.errors import InvalidArgument, UnknownRecord, problem, shorten
from sessionkit.records.keys import list_of_keys
from sessionkit.windows.contract import WindowKind

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from sessionkit.views.charts.drawing.palettes import Theme
    from sessionkit.views.charts.lanes.lanes import Sort
    from sessionkit.views.clocks.drop_calendar import DropCalendar
    from sessionkit.views.clocks.partition_times import PartitionTimes


class _Drawn(Protocol):
    """What a run has that its pictures need."""

    @property
    def plan(self) -> Any: ...
    @property
    def trace(self) -> Any: ...
    @property
    def _windows(self) -> WindowKind: ...
    @property
    def all_lanes(self) -> Any: ...
    @property
    def _most_eventful_key(self) -> Any: ...
    def _key(self, given: Any) -> Any: ...
    def _moment_ms(self, name: str, given: Moment | None) -> int | None: ...


class Pictures:
    """What `Run` inherits: its pictures, and what they start from."""

    @called_as('run.plane("ada")')
    def plane(
        self: _Drawn,
        key: Any = None,
        *,
        partition: int | None = None,
        first: int | None = None,
        last: int | None = None,
        playback: bool = False,
        theme: Theme | None = None,
        clock: str | None = None,
        width: int | None = None,
    ) -> go.Figure:
        """The history of one key: event time across, arrival upward. Without `key`, of the key with most events.

        Args:
            partition: where to look; by default the one with most of the key's records.
            first, last: offsets, to show only a part.
            playback: True adds a slider that replays the arrivals, also in a saved page.
            theme: "light" or "dark"; without it that of `sk.options`.
            clock: names the clock of the axis.
            width: in pixels, 600 or more; without it the picture is as wide as the room that it is given.
        Raises:
            UnknownRecord: the run holds no such key, or no record between these offsets.
            InvalidArgument: no such partition or theme.
        Example:
            >>> figure = plan.run(monday).plane("ada")
        """
        from sessionkit.views.charts.plane.plane import draw_plane, plane_scene

        key = self._most_eventful_key if key is None else self._key(key)
        look: Any = {"theme": theme, "clock": clock, "width": width}
        scene = plane_scene(self.trace, self._windows, key, partition=partition, first=first, last=last, **look)
        return draw_plane(scene, playback=playback)

    @called_as("run.lanes()")
    def lanes(
        self: _Drawn,
        *,
        keys: Iterable[Any] | None = None,
        most: int = 40,
        sort: Sort | None = None,
        start: Moment | None = None,
        end: Moment | None = None,
        theme: Theme | None = None,
        clock: str | None = None,
        width: int | None = None,
    ) -> go.Figure:
        """The windows of many keys, a lane each.

        Args:
            keys: which, in this order; without it at most `most`, those with the most to see.
            sort: "drops", "merges", "activity" or "key".
            start, end: the span of event time, both included: times as in `explain`, or milliseconds; without them the
                part with the most to see, and `start=0` shows everything.
            theme, clock, width: as in `plane`.
        Raises:
            InvalidArgument: an unknown theme or order, or a span that ends before it starts.
            UnknownRecord: the run holds no such key.
        Example:
            >>> figure = plan.run(monday).lanes(theme="dark")
        """
        from sessionkit.views.charts.lanes.lanes import draw_lanes, lane_scene

        named = None if keys is None else [self._key(key) for key in list_of_keys(keys)]
        span: Any = {"start": self._moment_ms("start", start), "end": self._moment_ms("end", end)}
        look: Any = {"theme": theme, "clock": clock, "width": width, "whole": self.all_lanes}
        scene = lane_scene(self.trace, self._windows, keys=named, most=most, sort=sort, **span, **look)
        return draw_lanes(scene)

    def drop_calendar(self: _Drawn) -> DropCalendar:
        """From when the dropped records are: a calendar, days by hour or weeks by day, in the run's `timezone`.

        Raises:
            NotKept: the run was started with `trace=False`.
        Example:
            >>> print(waves.run(flights).drop_calendar().words()[0])
            955 of 28,491 records (3.35%) were dropped.
        """
        from sessionkit.views.clocks.drop_calendar import DropCalendar

        return DropCalendar(self.trace, self._windows)

    def partition_times(self: _Drawn) -> PartitionTimes:
        """How far the stream time of each partition is behind the newest one, and which partitions stand still.

        Raises:
            NotKept: the run was started with `trace=False`.
            InvalidArgument: the run is of some keys.
        Example:
            >>> plan.run(monday).partition_times()
            There is one partition: nothing is ahead of it or behind it.
        """
        from sessionkit.views.clocks.partition_times import PartitionTimes

        self.trace.check_all_keys("partition_times")
        return PartitionTimes(self.trace, self._windows)

    @called_as('run.write_html("clicks.html")')
    def write_html(
        self: _Drawn,
        path: str | Path,
        *,
        keys: Iterable[Any] | None = None,
        most_records: int = 100_000,
        hide_keys: bool = False,
        title: str | None = None,
    ) -> Path:
        """Writes a page with sliders that needs no kernel and no network: who opens it can ask "what if".

        Its sliders move the lengths of the windows, and the browser decides the records anew: windows, merges, drops,
        the lanes of many keys, the plane of one, and what the settings cost. The page carries the times of the records
        and their keys, so it is as private as these; it says so at its top. An existing file is replaced.

        Args:
            path: the file.
            keys: only the records of these keys.
            most_records: of more, the page takes the key with most to see (a stretch of it, if it alone has more) and
                other keys, drawn at random, that have at most so many records together. It says in red what it leaves
                out, with the largest keys by name. Each record keeps the stream time of the whole run.
            hide_keys: numbers the keys, "key 1", instead of naming them.
            title: of the page; without it, the key columns and the windows.
        Returns:
            The path.
        Raises:
            NotBuilt: the page cannot recompute this run: sliding windows, windows without a grace, rules="kafka", or
                windows that a store held before.
            InvalidData: times from 2**53 ms on, which are no exact numbers in JavaScript.
            InvalidArgument: the records of `keys` are more than `most_records`, or the path is not one of HTML.
            UnknownRecord: the run holds no such key.
            WriteFailed: the folder is not there, or cannot be written to.
            NotKept: the run was started with `trace=False`.
        Example:
            >>> plan.run(monday).write_html("monday.html").name
            'monday.html'
        """
        from sessionkit.base.result_folders import write_whole
        from sessionkit.views.page.html import Page, page_html

        if Path(path).suffix not in ("", ".html", ".htm"):
            raise InvalidArgument(problem("a page is HTML", shorten(path), 'a path such as "clicks.html"'))
        named = None if keys is None else [self._key(key) for key in list_of_keys(keys)]
        page = Page(self, named, most_records, hide_keys)
        said = f"{', '.join(self.plan.source.keys)}: {self._windows.in_words()}" if title is None else title
        text, place = page_html(page, said, self.plan), Path(path)
        write_whole(place, lambda aside: aside.write_text(text, encoding="utf-8"))
        return place

    @cached_property
    def all_lanes(self: _Drawn) -> Any:
        """What every picture of lanes of this run starts from."""
        from sessionkit.views.charts.scenes.board import everything

        return everything(self.trace, self._windows.trailing_only)

    def most_eventful_key(self: _Drawn) -> Any:
        """The key with most drops, merges and rescues; of equal ones the first in the data.

        Example:
            >>> waves.run(flights).most_eventful_key()
            'EV@EWR'
        """
        return self._most_eventful_key

    @cached_property
    def _most_eventful_key(self: _Drawn) -> Any:
        trace = self.trace
        weight = np.where(trace.batch.key >= 0, trace.worth_seeing, 0)
        if not len(trace.keys):
            raise UnknownRecord(problem("the run has no key", "no records", "run the plan on some records"))
        score = np.bincount(np.maximum(trace.batch.key, 0), weights=weight, minlength=len(trace.keys))
        return trace.keys[int(np.argmax(score))].as_py()
