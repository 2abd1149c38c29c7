"""What a run decided, as columns: one row a record, one row a window. Everything that is shown is a view of this."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Bytes, Codes, Flags, Longs, Rows, arrow_array, arrow_table, numpy_array, texts
from sessionkit.base.decisions import BAD_TIME, DECISIONS, IDLE, LATE, REASONS, TICK
from sessionkit.base.durations import INT64_MAX
from sessionkit.base.text import escape_html, html_block, plural
from sessionkit.errors import BrokenTrace, InvalidArgument, NotBuilt, UnknownRecord, problem, shorten
from sessionkit.records.batch import RecordBatch
from sessionkit.records.time_statistics import usual_span
from sessionkit.trace.loops import first_passing, grouped
from sessionkit.trace.slots import Slots


class Merges(NamedTuple):
    """One row for each session that was absorbed: the record that did it, the older session, the one that ended."""

    at: Longs
    into: Codes
    absorbed: Codes


NO_MERGES = Merges(np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.int32))


class WindowColumns(NamedTuple):
    """One row a window. Rows up to `loaded_count` came from a store, the rest were opened in this run, in order."""

    key: Codes
    partition: Codes
    start_ms: Longs
    end_ms: Longs
    opened_by: Longs  # offset of the record that opened it: with the partition, its id
    merged_into: Codes  # row of the session that absorbed it, -1
    closed_before: Longs  # offset of the record that closed it before this run, -1 if not or re-opened
    timestamp_ms: Longs  # what a result of it carries: a session's end, else the largest record time
    loaded_count: int

    def are_results(self, trailing_only: bool) -> Flags:
        """True for each window that is a result: all of them, or (trailing only) those that end with a record."""
        if not trailing_only:
            return np.ones(len(self.key), np.bool_)
        return self.timestamp_ms == self.end_ms


_NONE = np.empty(0, np.int64)
_NO_CODES = np.empty(0, np.int32)
NO_WINDOWS = WindowColumns(_NO_CODES, _NO_CODES, _NONE, _NONE, _NONE, _NO_CODES, _NONE, _NONE, loaded_count=0)


class Closes(NamedTuple):
    """Each time a window became final, in the order in which results go out: by record, window end, key bytes."""

    at: Longs
    window: Codes
    start_ms: Longs
    end_ms: Longs
    # what the value is: the window's at the end of the run, or (where it was re-opened) the one before record `until`
    until: Longs


@dataclass(frozen=True, kw_only=True, repr=False)
class Trace:
    """Every decision of one run over one batch: what all kinds of windows have in common.

    `decision[i]` says what record i did (`opened`, `added`, `merged`, or the reason for which it was dropped).
    `close_lag_ms` is what is subtracted from stream time to get the close time: grace, for sessions gap + grace.
    """

    batch: RecordBatch
    keys: pa.Array
    decision: Bytes
    window_columns: WindowColumns
    close_lag_ms: int
    first_stream_time_ms: Longs
    merges: Merges = NO_MERGES

    def __len__(self) -> int:
        return len(self.decision)

    @cached_property
    def _numbered(self) -> tuple[Slots, Codes, Codes]:
        records, windows = self.batch, self.window_columns
        slots = Slots(len(self.keys), len(records.partitions), len(records) + len(windows.key))
        slot = slots.number(records.key, records.partition, np.empty(len(records), np.int32))
        return slots, slot, slots.number(windows.key, windows.partition, np.empty(len(windows.key), np.int32))

    @property
    def slots(self) -> Slots:
        """A number for each key in each partition in which it has records or windows."""
        return self._numbered[0]

    @property
    def slot(self) -> Codes:
        """The slot of each record; -1 where it has no key."""
        return self._numbered[1]

    @property
    def window_slot(self) -> Codes:
        """The slot of each window."""
        return self._numbered[2]

    @cached_property
    def is_standing(self) -> Flags:
        """True for each window that was neither absorbed, nor closed before the run."""
        return (self.window_columns.merged_into < 0) & (self.window_columns.closed_before < 0)

    @cached_property
    def usual_ms(self) -> tuple[int, int]:
        """The span of event time in which nearly all records lie: see `usual_span`."""
        return usual_span(self.batch.timestamp_ms[self.decision <= LATE])

    @cached_property
    def stream_time_ms(self) -> Longs:
        """Stream time of the record's partition once the record was seen, for each record."""
        first_ms, batch = self.first_stream_time_ms, self.batch
        return batch.own_stream_times_ms if (first_ms < 0).all() else batch.stream_times_ms(first_ms.copy())

    @cached_property
    def stream_time_before_ms(self) -> Longs:
        """Stream time of the record's partition before the record was seen; -1 if there was none."""
        first, rows = self._by_partition
        before, begins = np.empty(len(self), np.int64), np.diff(first) > 0
        before[rows[1:]] = self.stream_time_ms[rows[:-1]]
        before[rows[first[:-1][begins]]] = self.first_stream_time_ms[begins]
        return before

    @cached_property
    def last_stream_time_ms(self) -> Longs:
        """Stream time of each partition after the last record."""
        last = self.first_stream_time_ms.copy()
        np.maximum.at(last, self.batch.partition, self.stream_time_ms)
        return last

    @cached_property
    def close_time_ms(self) -> Longs:
        """The close line at each record: windows that end before it are final."""
        return self.stream_time_ms - self.close_lag_ms

    @cached_property
    def accepted(self) -> Flags:
        """True for each record that counts in a window."""
        return self.decision < LATE

    @property
    def is_record(self) -> Flags:
        """True for each row that is a record: not for one that only moves stream time, as records of other keys did."""
        return self.decision < TICK

    @property
    def record_count(self) -> int:
        """How many records there are."""
        return int(np.count_nonzero(self.is_record))

    @cached_property
    def late_but_kept(self) -> Flags:
        """True for each record older than the close line that was kept, as a window that it falls into is open."""
        return self.accepted & (self.batch.timestamp_ms < self.close_time_ms)

    @cached_property
    def ended_in(self) -> Longs:
        """The window that each window ended up in: itself, or what absorbed it."""
        into = self.window_columns.merged_into
        root = np.where(into >= 0, into, np.arange(len(into)))
        while (root[root] != root).any():
            root = root[root]
        return root.astype(np.int64)

    # ---- answers that depend on the kind of window

    @property
    @abstractmethod
    def last_window(self) -> Codes:
        """The window that each record came to, the last one where it came to several; -1 for none."""

    @property
    @abstractmethod
    def closes(self) -> Closes:
        """Each time that a window became final in this run."""

    @property
    @abstractmethod
    def late_for_some(self) -> Flags:
        """True for each record that was dropped as late, or came too late for some of its windows."""

    @property
    @abstractmethod
    def dropped_at(self) -> Rows:
        """The record of each drop, as Kafka counts them."""

    @property
    @abstractmethod
    def updated_at(self) -> Rows:
        """The record of each value that goes out on update; of what is taken back there is no row here."""

    @property
    @abstractmethod
    def sent_on_update(self) -> int:
        """How many results go out on update, retractions among them."""

    @property
    @abstractmethod
    def opened_count(self) -> Longs:
        """How many windows more are open with each record, before any closes: what it opened less what it merged."""

    @property
    @abstractmethod
    def worth_seeing(self) -> Longs:
        """How much each record adds to what there is to see of its key."""

    @property
    @abstractmethod
    def longest_made_ms(self) -> int:
        """The greatest length that a window has when it is made."""

    @abstractmethod
    def size_of(self, window: int) -> int:
        """How many records of this run a window holds at the end."""

    @abstractmethod
    def windows_at(self, slot: int, at: Rows, start_ms: Longs, end_ms: Longs) -> Longs:
        """The windows of a slot, by their rows, that had these bounds after these records, which never fall."""

    def records(self) -> pa.Table:
        """One row per record: where it stood, key, times, decision, reason, and what it did to windows.

        That is window_id and merged_count (how many sessions it ended) of sessions, else window_count and missed_count.
        """
        rows = arrow_table({**self.as_they_came(), **self._in_windows()})
        return rows if self.is_record.all() else rows.filter(arrow_array(self.is_record))

    @abstractmethod
    def _in_windows(self) -> dict[str, Any]:
        """Columns of the records: what each did to windows."""

    @abstractmethod
    def windows(self, rows: Longs | None = None) -> pa.Table:
        """One row a window."""

    def touched(self) -> pa.Table:
        """One row for each time or sliding window that a record met.

        Raises:
            NotBuilt: the trace is of sessions, where each record is in one.
        """
        want = ".records(): a record is in one session"
        raise NotBuilt(problem("a trace of sessions has no touches", "touched()", want))

    @abstractmethod
    def _laws(self) -> Iterator[tuple[str, bool]]:
        """Each law with whether it holds. A law may rely on those before it."""

    # ---- answers that are alike for all kinds

    def as_they_came(self, rows: Rows | None = None) -> dict[str, Any]:
        """Columns of the records, or of these: where they stood, key, times, what was decided and why."""
        batch, chosen = self.batch, slice(None) if rows is None else rows
        key, decision = batch.key[chosen], self.decision[chosen]
        return {
            "partition": batch.partitions[batch.partition[chosen]],
            "offset": batch.offset[chosen],
            "key": self.keys.take(arrow_array(key, key < 0)),
            "timestamp_ms": arrow_array(batch.timestamp_ms[chosen], decision == BAD_TIME),
            "stream_time_ms": self.stream_time_ms[chosen],
            "decision": words(np.minimum(decision, LATE), {**DECISIONS, LATE: "dropped"}),
            "reason": words(decision, REASONS),
        }

    def passed_by(self, partition: Codes, last_ms: Longs) -> Longs:
        """Index of the record that closes a window whose last instant is `last_ms`; len(self) if none does."""
        last_open_ms = last_ms + np.minimum(self.close_lag_ms, INT64_MAX - last_ms)  # must not wrap
        first, rows = self._by_partition
        return first_passing(first, rows, self.stream_time_ms[rows], partition, last_open_ms, len(self))

    def moved_by(self, at: Rows) -> Longs:
        """The record that had moved stream time to where each of these met it; -1 where an earlier run had."""
        (first, rows), partition = self._by_partition, self.batch.partition[at]
        before_ms = self.stream_time_ms[at] - 1
        movers = first_passing(first, rows, self.stream_time_ms[rows], partition, before_ms, -1)
        return np.where(self.first_stream_time_ms[partition] > before_ms, -1, movers)

    @cached_property
    def _by_partition(self) -> tuple[Longs, Longs]:
        return grouped(self.batch.partition, len(self.batch.partitions))

    @abstractmethod
    def last_instants_ms(self, rows: npt.NDArray[np.integer[Any]]) -> Longs:
        """The last instant that belongs to each of these windows."""

    @cached_property
    def closed_by(self) -> Longs:
        """Offset of the record that last closed each window; -1 while it is open (or if it was absorbed)."""
        return self.closed_by_of(np.arange(len(self.window_columns.key)))

    def closed_by_of(self, rows: npt.NDArray[np.integer[Any]]) -> Longs:
        """`closed_by` of the given windows, worked out for them alone."""
        windows = self.window_columns
        by = windows.closed_before[rows]
        standing = np.flatnonzero((windows.merged_into[rows] < 0) & (by < 0))
        at = self.passed_by(windows.partition[rows[standing]], self.last_instants_ms(rows[standing]))
        is_passed = at < len(self)
        by[standing[is_passed]] = self.batch.offset[at[is_passed]]
        return by

    def index_of(self, offset: int, partition: int | None = None) -> int:
        """Row of the record at `offset` of `partition` (which may be left out when there is one only).

        Raises:
            UnknownRecord: it is not among the records of this run.
        """
        numbers = self.batch.partitions
        if partition is None and len(numbers) > 1:
            want = f"partition= one of {shorten(numbers.tolist())}"
            raise UnknownRecord(problem("an offset needs its partition as well", f"offset {offset}", want))
        code = np.flatnonzero(numbers == partition) if partition is not None else np.arange(len(numbers))
        of_code = self.batch.partition == (code[0] if len(code) else -1)
        rows = np.flatnonzero(of_code & (self.batch.offset == offset) & (self.decision != IDLE))
        if not len(rows):
            where = f"partition {partition}, offset {offset}" if partition is not None else f"offset {offset}"
            offsets = self.batch.offset[of_code]
            want = f"an offset from {offsets[0]} to {offsets[-1]}" if len(offsets) else "a partition of this run"
            raise UnknownRecord(problem("this record is not in the run", where, want))
        return int(rows[0])

    def where(self, decision: str | None = None, reason: str | None = None) -> pa.Table:
        """The rows of `records()` with this decision ("dropped", "merged", …) or this reason ("late", …)."""
        table = self.records()
        mask = np.ones(len(table), np.bool_)
        for name, wanted in (("decision", decision), ("reason", reason)):
            if wanted is not None:
                mask &= numpy_array(pc.equal(table[name], texts([wanted])[0]))
        return table.filter(arrow_array(mask))

    def counts(self) -> dict[str, int]:
        """How many records did what, by decision and by reason; only what happened."""
        seen = np.bincount(self.decision, minlength=256)
        return {word: int(seen[code]) for code, word in {**DECISIONS, **REASONS}.items() if seen[code]}

    def check_all_keys(self, call: str) -> None:
        """Refuses what takes the records of all keys, where the run is of some.

        Raises:
            InvalidArgument: with the call that refuses.
        """
        if self.batch.chosen_from is not None:
            what = f"run.{call} needs the records of all keys"
            raise InvalidArgument(problem(what, "a run with keys=", "plan.run(data) without keys="))

    def check(self) -> None:
        """Verifies every law that can be told from the trace alone.

        Raises:
            BrokenTrace: one does not hold.
        """
        for law, holds in self._laws():
            if not holds:
                raise BrokenTrace(problem("a law of the trace does not hold", law, "this is a bug in sessionkit"))

    def stream_time_rises(self) -> bool:
        """True if stream time never falls."""
        first, rows = self._by_partition
        falls = np.diff(self.stream_time_ms[rows]) < 0
        falls[first[1:-1][(first[1:-1] > 0) & (first[1:-1] < len(rows))] - 1] = False  # from one partition to the next
        return not falls.any()

    def __repr__(self) -> str:
        counts = ", ".join(f"{count:,} {word}" for word, count in self.counts().items())
        windows = plural(len(self.window_columns.key), "window")
        return f"Trace of {plural(self.record_count, 'record')} ({counts or 'none'}), {windows}"

    def _repr_html_(self) -> str:
        text = escape_html(repr(self))
        return html_block(f"<p>{text}; <code>.records()</code> and <code>.windows()</code> are tables.</p>")


def status_words(absorbed: Flags, closed: Flags) -> pa.Array:
    """ "merged", "closed" or "open" for each window."""
    code = np.where(absorbed, 2, np.where(closed, 1, 0)).astype(np.int8)
    return pa.DictionaryArray.from_arrays(arrow_array(code), texts(["open", "closed", "merged"])).cast(pa.string())


def words(codes: Bytes, names: dict[int, str]) -> pa.Array:
    """The name of each code, null where it has none."""
    place = np.full(256, -1, np.int8)
    for number, code in enumerate(names):
        place[code] = number
    index = place[codes]
    return pa.DictionaryArray.from_arrays(arrow_array(index, index < 0), texts(list(names.values()))).cast(pa.string())
