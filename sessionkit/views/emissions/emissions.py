"""What went downstream for one key: updates, retractions and finals; and what is pending, as nothing has closed it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Column, Longs, distinct, joined, repeated, taken
from sessionkit.base.calls import answers_calls
from sessionkit.base.durations import INT64_MAX, about
from sessionkit.base.text import escape_html, html_block, of_key, plural
from sessionkit.engine.chosen_keys import records_of_keys, rows_of_keys
from sessionkit.engine.outcome import Outcome
from sessionkit.errors import UnknownRecord, problem, shorten
from sessionkit.records.frames import Frame
from sessionkit.records.keys import code_of_key
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace
from sessionkit.views.drawing.palettes import Figure, Theme, palette
from sessionkit.views.explain.life import closing_time_ms
from sessionkit.views.html import Pictured
from sessionkit.views.scenes.key_rows import partition_code, partition_counts
from sessionkit.views.tables import frame_of, table_rows, window_table
from sessionkit.views.words import clock, in_zone
from sessionkit.windows.contract import WindowKind

Over = Literal["arrival", "stream_time"]
WHAT = {"update": "update", "tombstone": "retraction", "final": "final result"}


class Lane(NamedTuple):
    """A window of the key: its bounds in the end, what absorbed it, and the records at which it became final.

    Each record is a row of the trace. `is_silent` says that final results were asked for, and none of it went out.
    """

    start_ms: int
    end_ms: int
    absorbed_by: int  # the lane of the session that it became a part of, -1
    closed_at: tuple[int, ...]
    is_silent: bool


@answers_calls("emissions")
@dataclass(frozen=True, repr=False)
class Emissions(Pictured, Generic[Frame]):
    """What went downstream for one key, and which of its windows wait for stream time.

    Example:
        >>> sent = waves.run(flights).emissions("AA@LGA")
        >>> sorted(set(sent.table()["what"]))
        ['tombstone', 'update']
        >>> print(sent.words()[0])
        1,299 updates and 1,227 retractions went downstream.
        >>> figure = sent.figure()
    """

    trace: Trace
    windows: WindowKind
    strategy: str
    key: Any
    code: tuple[int, int]  # of the key and the partition
    columns: Mapping[str, Column]
    names: tuple[str, ...]  # of the aggregations
    at: Longs  # the record of each row, as a row of the trace; of what is pending the newest
    lane: Longs  # the lane of each row
    lanes: tuple[Lane, ...]
    was_processed: bool  # with a deployment: a cache may have kept updates back

    def table(self) -> Frame:
        """The key's rows of `run.changelog()` in their order, followed by a row "pending" for each open window.

        Besides the columns of the changelog: `stream_time`, when it went out (of what is pending: now), and
        `closes_at`, the stream time that closes a window with these bounds (null if none ever does). The `offset` of
        what is pending is that of the newest record of the partition.
        """
        return frame_of(self.columns, self.trace.batch)

    def figure(
        self,
        *,
        theme: Theme | None = None,
        over: Over | None = None,
        from_offset: int | None = None,
        until_offset: int | None = None,
        most: int | None = None,
    ) -> Figure:
        """A lane for each window, with a mark for each row of `table()`: update, retraction, final, pending.

        Args:
            over: "arrival" has a column for each record after which something went out, so that nothing hides
                anything; "stream_time" shows how long each result took. By default the first for updates, the second
                for final results.
            from_offset, until_offset: to show only what went out from one record to another one, both included.
            most: how many windows are shown, those that end last (default 12). Of many updates the last are shown.
        Raises:
            UnknownRecord: nothing went out between these offsets.
            InvalidArgument: no such theme or axis, or `most` is below 1.
        """
        from sessionkit.views.emissions.picture import draw_emissions
        from sessionkit.views.emissions.scene import choose

        return draw_emissions(choose(self, palette(theme), over, from_offset, until_offset, most))

    @cached_property
    def _what(self) -> list[str]:
        """What each row of the table is: "update", "tombstone", "final" or "pending"."""
        return self.columns["what"].to_pylist()

    @property
    def _now_ms(self) -> int:
        return int(self.trace.last_stream_time_ms[self.code[1]])

    @property
    def _title(self) -> str:
        """What it is about. Not escaped."""
        numbers = self.trace.batch.partitions
        where = f" in partition {numbers[self.code[1]]}" if len(numbers) > 1 else ""
        return f"What went downstream for {of_key(self.key)}{where}"

    def words(self, at: Callable[[int], str] | None = None) -> list[str]:
        """What went out and what did not, in sentences; `at` says a time. Not escaped."""
        counts = Counter(self._what)
        sent = [plural(counts[what], noun) for what, noun in WHAT.items() if counts[what]]
        said = [f"{' and '.join(sent) or 'Nothing'} went downstream."]
        silent = sum(lane.is_silent for lane in self.lanes)
        if silent:
            said.append(f"{plural(silent, self.windows.noun)} closed, but no result went out (sk.audit says why).")
        return [*said, *self._other_strategy(), *self._pending(at or clock(self.trace))]

    def _other_strategy(self) -> list[str]:
        """What the other emit strategy would have sent; a record cache sends what it likes, so not of such a run."""
        if self.was_processed:
            return []
        if self.strategy == "on_window_update":
            count = sum(len(lane.closed_at) for lane in self.lanes)
            return [f"With on_window_close it would have been {plural(count, 'final result') if count else 'nothing'}."]
        trace, (key, partition) = self.trace, self.code
        mine = (trace.batch.key == key) & (trace.batch.partition == partition)
        count = int(mine[trace.updated_at].sum())
        between = " with retractions between them" if isinstance(trace, SessionTrace) and count > 1 else ""
        return [f"With on_window_update it would have been {plural(count, 'update')}{between}."]

    def _pending(self, at: Callable[[int], str]) -> list[str]:
        noun = self.windows.noun
        waiting = {int(self.lane[i]) for i, what in enumerate(self._what) if what == "pending"}
        if not waiting:
            return ["Nothing is pending."]
        verb, it = ("is", "it") if len(waiting) == 1 else ("are", "them")
        open_ones = f"{plural(len(waiting), noun)} {verb} pending"
        if not self.windows.is_ever_closed:
            return [f"{open_ones} for ever: none is ever closed; {self.windows.forgets_in_words()}."]
        next_one = min(waiting, key=lambda lane: self.lanes[lane].end_ms)
        first = "it closes" if len(waiting) == 1 else "the next one closes"
        return [
            f"{open_ones}: nothing has closed {it}. Stream time is {at(self._now_ms)}; {first} "
            f"{self._closes(next_one, at)}, and only records of its partition move stream time."
        ]

    def _closing(self, lane: int) -> tuple[str, int, int]:
        """("after" or "at", the moment that closes the window of a lane, how far from now it is)."""
        closes_ms = closing_time_ms(self.windows, self.lanes[lane].end_ms)
        word, moment = ("after", closes_ms - 1) if self.windows.inclusive_end else ("at", closes_ms)
        return word, moment, moment - self._now_ms

    def _closes(self, lane: int, at: Callable[[int], str]) -> str:
        """ "after 10:07, 5 min from now" where the end belongs to the window, else "at 10:07, …"."""
        word, moment, wait_ms = self._closing(lane)
        return f"{word} {at(moment)}, {f'{about(wait_ms)} from now' if wait_ms else 'which is now'}"

    def __repr__(self) -> str:
        zone = in_zone(self.trace) if "pending" in self._what else []  # nothing else names a time
        return " ".join([f"{self._title}:", *self.words(), *zone])


def emissions_of(run: Any, key: Any, partition: int | None, *, chosen: bool) -> Emissions:
    """What went downstream for `key` in a partition, which has to be named where several hold the key.

    `chosen` says that nobody asked for this key: then the partition with most of its records will do.
    """
    trace = run.trace
    code = code_of_key(trace.keys, key)
    inside = np.flatnonzero(partition_counts(trace, code))
    if partition is None and len(inside) > 1 and not chosen:
        want = f"partition= one of {shorten(trace.batch.partitions[inside].tolist())}"
        raise UnknownRecord(problem("several partitions hold this key", shorten(repr(key)), want))
    codes = (code, partition_code(trace, code, partition))
    # the clock of suppress is moved by the results of all keys
    is_whole = run.deployed is not None or run.plan._suppression is not None or (trace.first_stream_time_ms >= 0).any()
    return _of_run(run, key, codes) if is_whole else _of_key_alone(run, key, codes)


def _of_key_alone(run: Any, key: Any, codes: tuple[int, int]) -> Emissions:
    """The same from a run of the key's records alone: the others are ticks in it."""
    trace, only = run.trace, np.array(codes[:1])
    rows = rows_of_keys(trace.batch, only, run.plan._complete_windows)
    batch = records_of_keys(trace.batch, only, rows)
    found = _of_run(run.plan._run_batch(batch, retention_ms=run._outcome.retention_ms), key, (0, codes[1]))
    lanes = tuple(lane._replace(closed_at=tuple(rows.at[[*lane.closed_at]].tolist())) for lane in found.lanes)
    return replace(found, trace=trace, code=codes, at=rows.at[found.at], lanes=lanes)


def _of_run(run: Any, key: Any, codes: tuple[int, int]) -> Emissions:
    trace, outcome, windows, changelog = run.trace, run._outcome, run.plan.windows, run._changelog
    code, number = codes[0], trace.batch.partitions[codes[1]]
    keys = pc.index_in(changelog["key"], value_set=trace.keys.cast(changelog["key"].type)).fill_null(-1)
    sent = np.flatnonzero((np.asarray(keys) == code) & (np.asarray(changelog["partition"]) == number))
    rows = table_rows(outcome)
    place = outcome.window_columns
    rows = rows[(place.key[rows] == code) & (place.partition[rows] == codes[1]) & ~outcome.closed[rows]]
    newest = trace.batch.offset[trace.batch.partition == codes[1]][-1:]
    pending = {  # as of the newest record of the partition
        **window_table(outcome, rows),
        "offset": np.repeat(newest if len(newest) else np.array([-1]), len(rows)),
        "timestamp_ms": place.timestamp_ms[rows],
        "what": repeated("pending", len(rows)),
    }
    columns = joined(taken(changelog, sent), pending)
    at = _records(trace, codes[1], np.asarray(columns["offset"]))
    lane, lanes = _lanes(outcome, trace, codes, columns, at, rows)
    is_final = run.plan._suppression is not None and run.plan._suppression.is_final  # of updates it makes final results
    strategy = "on_window_close" if is_final else str(run.plan._strategy)
    if strategy == "on_window_close":
        lanes = tuple(each._replace(is_silent=not (lane == i).any()) for i, each in enumerate(lanes))
    ends_ms = np.asarray(columns["window_end_ms"], np.int64)
    lag_ms = min(closing_time_ms(windows, 0), INT64_MAX)
    lasts = ends_ms + np.minimum(lag_ms, INT64_MAX - ends_ms)  # must not wrap
    stream = np.append(trace.stream_time_ms, trace.first_stream_time_ms[codes[1]])[at]
    columns["stream_time_ms"] = stream
    columns["closes_at_ms"] = lasts if windows.is_ever_closed else pa.nulls(len(lasts), pa.int64())
    names, was_processed = tuple(outcome.folds), run.deployed is not None
    return Emissions(trace, windows, strategy, key, codes, columns, names, at, lane, lanes, was_processed)


def _records(trace: Trace, partition: int, offsets: Longs) -> Longs:
    """The rows of the trace with these offsets, which rise within a partition; -1 where it has no records."""
    mine = np.flatnonzero(trace.batch.partition == partition)
    if not len(mine):
        return np.full(len(offsets), -1)
    return mine[np.searchsorted(trace.batch.offset[mine], offsets)]


def _lanes(
    outcome: Outcome, trace: Trace, codes: tuple[int, int], columns: Mapping[str, Column], at: Longs, pending: Longs
) -> tuple[Longs, tuple[Lane, ...]]:
    """(the lane of each row, the lanes by start): a window each, whatever bounds it had when a row was sent."""
    sent = slice(len(at) - len(pending))
    starts, ends = (np.asarray(columns[name])[sent] for name in ("window_start_ms", "window_end_ms"))
    place, closes = outcome.window_columns, trace.closes
    slot = trace.slots.find(*codes)
    rows = np.append(trace.windows_at(slot, at[sent], starts, ends), pending)
    seen = distinct(rows)
    both = zip(place.start_ms[seen].tolist(), place.end_ms[seen].tolist(), strict=True)
    bounds: dict[int, tuple[int, int]] = dict(zip(seen.tolist(), both, strict=True))
    closed: dict[int, list[int]] = {}
    mine = (trace.window_slot == slot) & outcome.is_result
    for k in np.flatnonzero(mine[closes.window]).tolist():
        window = int(closes.window[k])
        closed.setdefault(window, []).append(int(closes.at[k]))
        bounds.setdefault(window, (int(closes.start_ms[k]), int(closes.end_ms[k])))
    order = {window: number for number, window in enumerate(sorted(bounds, key=lambda each: (*bounds[each], each)))}
    lanes = tuple(
        Lane(*bounds[window], order.get(int(place.merged_into[window]), -1), tuple(closed.get(window, ())), False)
        for window in order
    )
    return np.array([order[row] for row in seen.tolist()], np.int64)[np.searchsorted(seen, rows)], lanes


@answers_calls("buffer")
@dataclass(frozen=True, repr=False)
class SuppressBuffer(Generic[Frame]):
    """What waits in the buffers of suppress at the end of a run.

    `most_records` is the most that a partition's buffer held at once: what `max_records` would have to allow.

    Example:
        >>> buffer = waves.suppress("until_window_closes").run(flights).suppress_buffer()
        >>> buffer.most_records, len(buffer.table())
        (90, 14)
    """

    most_records: int
    _columns: Mapping[str, Column]
    _run: Any

    @cached_property
    def most_bytes(self) -> int:
        """The most bytes that a partition's buffer held at once: what `max_bytes` would have to allow.

        An entry weighs its windowed key, its value, the ones that it replaces, as Kafka's serializers write them
        (several results as JSON), and 33 bytes.
        """
        run = self._run
        if run.deployed is None:
            return int(run._through_suppress(weighed=True)[1].most_bytes)
        return max((buffer.most_size for buffer in run.deployed.buffers), default=0)

    def table(self) -> Frame:
        """The results that wait, as rows of `run.changelog()`: by partition, in the order in which they would go out.

        `offset` is that of the record which each came with.
        """
        return frame_of(self._columns, self._run._outcome.batch)

    def __repr__(self) -> str:
        waiting = len(self._columns["offset"])
        verb = "waits" if waiting == 1 else "wait"
        most = f"no partition held more than {self.most_records:,} at once"
        return f"buffer of suppress: {plural(waiting, 'result')} {verb}; {most}"

    def _repr_html_(self) -> str:
        return html_block(f"<p>{escape_html(self)}; <code>.table()</code> has them.</p>")
