"""What a run decided, as columns: one row a record, one row a window. Everything that is shown is a view of this."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.columns import bounds_after, stream_times
from sessionkit.durations import INT64_MAX
from sessionkit.errors import BrokenTrace, UnknownRecord, problem
from sessionkit.keys import key_ranks
from sessionkit.records import BAD_TIME, NEGATIVE_TIME, NULL_KEY, RecordBatch
from sessionkit.text import escape_html, html_block, plural, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

OPENED, ADDED, MERGED, LATE = 1, 2, 3, 10
REPLAYED = 14
DECISIONS = {OPENED: "opened", ADDED: "added", MERGED: "merged"}
REASONS = {
    LATE: "late",
    NULL_KEY: "null_key",
    BAD_TIME: "bad_time",
    NEGATIVE_TIME: "negative_time",
    REPLAYED: "replayed",
}
NOT_YET = np.int64(-1)  # no record has closed the window


class Merges(NamedTuple):
    """One row for each session that was absorbed: the record that did it, the older session, the one that ended."""

    at: npt.NDArray[np.int64]
    into: npt.NDArray[np.int32]
    absorbed: npt.NDArray[np.int32]


class WindowColumns(NamedTuple):
    """One row a window. Rows up to `loaded_count` came from a store, the rest were opened in this run, in order."""

    key: npt.NDArray[np.int32]
    partition: npt.NDArray[np.int32]
    start_ms: npt.NDArray[np.int64]
    end_ms: npt.NDArray[np.int64]
    opened_by: npt.NDArray[np.int64]  # offset of the record that opened it: with the partition, its id
    merged_into: npt.NDArray[np.int32]  # row of the session that absorbed it, -1
    closed_before: npt.NDArray[np.int64]  # offset of the record that closed it before this run, -1 if not or re-opened
    loaded_count: int


class Reopenings(NamedTuple):
    """Closed sessions that a record touched while they were still retained, as they were before it."""

    at: npt.NDArray[np.int64]
    window: npt.NDArray[np.int32]
    start_ms: npt.NDArray[np.int64]
    end_ms: npt.NDArray[np.int64]


class Closes(NamedTuple):
    """Each time a window became final, in the order in which results go out: by record, window end, key bytes."""

    at: npt.NDArray[np.int64]
    window: npt.NDArray[np.int32]
    start_ms: npt.NDArray[np.int64]
    end_ms: npt.NDArray[np.int64]
    # what the value is: the window's at the end of the run, or (where it was re-opened) the one before record `until`
    until: npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Trace:
    """Every decision of one run over one batch.

    `decision[i]` says what record i did (`opened`, `added`, `merged`, or the reason for which it was dropped) and
    `window[i]` the row of the window that it then belonged to (-1: none). `close_lag_ms` is what is subtracted from
    stream time to get the close time: gap + grace for sessions.
    """

    batch: RecordBatch
    keys: pa.Array
    decision: npt.NDArray[np.uint8]
    window: npt.NDArray[np.int32]
    window_columns: WindowColumns
    merges: Merges
    reopenings: Reopenings
    close_lag_ms: int
    retention_ms: int  # a session can be found while its end is at most this far behind stream time
    first_stream_time_ms: npt.NDArray[np.int64]
    loaded_start_ms: npt.NDArray[np.int64]  # bounds of the windows that came from a store, as they came
    loaded_end_ms: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.decision)

    @cached_property
    def stream_time_ms(self) -> npt.NDArray[np.int64]:
        """Stream time of the record's partition once the record was seen, for each record."""
        out = np.empty(len(self), np.int64)
        rejected = np.empty(0, np.uint8) if self.batch.rejected is None else self.batch.rejected
        columns = (self.batch.partition, self.batch.timestamp_ms, rejected)
        stream_times(*columns, self.first_stream_time_ms.copy(), out)
        return out

    @cached_property
    def last_stream_time_ms(self) -> npt.NDArray[np.int64]:
        """Stream time of each partition after the last record."""
        last = self.first_stream_time_ms.copy()
        np.maximum.at(last, self.batch.partition, self.stream_time_ms)
        return last

    @property
    def close_time_ms(self) -> npt.NDArray[np.int64]:
        """The close line at each record: windows that end before it are final."""
        return self.stream_time_ms - self.close_lag_ms

    @cached_property
    def accepted(self) -> npt.NDArray[np.bool_]:
        """True for each record that counts in a window."""
        mask: npt.NDArray[np.bool_] = self.decision < LATE
        return mask

    @cached_property
    def late_but_kept(self) -> npt.NDArray[np.bool_]:
        """True for each record older than the close line that was kept, as it touches an open session."""
        mask: npt.NDArray[np.bool_] = self.accepted & (self.batch.timestamp_ms < self.close_time_ms)
        return mask

    @cached_property
    def bounds_after(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(start, end) of the record's window once the record is in it; -1 for a dropped record."""
        loaded = (self.loaded_start_ms, self.loaded_end_ms)
        return bounds_after(self.window, self.batch.timestamp_ms, self.merges, *loaded, len(self.window_columns.key))

    @cached_property
    def closes(self) -> Closes:
        """Each time that a window became final in this run."""
        windows, reopened = self.window_columns, self.reopenings
        row = np.flatnonzero((windows.merged_into < 0) & (windows.closed_before < 0)).astype(np.int32)
        at = self._passed_by(windows.partition[row], windows.end_ms[row])
        row, at = row[at < len(self)], at[at < len(self)]
        end_of_run = np.full(len(row), INT64_MAX)
        before = self._passed_by(windows.partition[reopened.window], reopened.end_ms)
        columns = (
            np.concatenate([before, at]),
            np.concatenate([reopened.window, row]),
            np.concatenate([reopened.start_ms, windows.start_ms[row]]),
            np.concatenate([reopened.end_ms, windows.end_ms[row]]),
            np.concatenate([reopened.at, end_of_run]),
        )
        order = np.lexsort((key_ranks(self.keys)[windows.key[columns[1]]], columns[3], columns[0]))
        return Closes(*(column[order] for column in columns))

    def _passed_by(self, partition: npt.NDArray[np.int32], end_ms: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Index of the record whose stream time first closes a window that ends at `end_ms`; len(self) if none does."""
        found = np.full(len(end_ms), len(self), np.int64)
        for p in range(len(self.batch.partitions)):
            mine = partition == p
            records = np.flatnonzero(self.batch.partition == p)
            stair = self.stream_time_ms[records]
            last_open = end_ms[mine] + np.minimum(self.close_lag_ms, INT64_MAX - end_ms[mine])  # must not wrap
            step = np.searchsorted(stair, last_open, side="right")
            found[mine] = np.append(records, len(self))[step]
        return found

    @cached_property
    def closed_by(self) -> npt.NDArray[np.int64]:
        """Offset of the record that last closed each window; -1 while it is open (or if it was absorbed)."""
        by = self.window_columns.closed_before.copy()
        closes = self.closes
        last = closes.until == INT64_MAX
        by[closes.window[last]] = self.batch.offset[closes.at[last]]
        return by

    def index_of(self, offset: int, partition: int | None = None) -> int:
        """Row of the record at `offset` of `partition` (which may be left out when there is one only).

        Raises:
            UnknownRecord: it is not among the records of this run.
        """
        numbers = self.batch.partitions
        if partition is None and len(numbers) > 1:
            want = f"partition= one of {shorten(numbers.tolist())}"
            raise UnknownRecord(problem("an offset is known only with its partition", f"offset {offset}", want))
        code = np.flatnonzero(numbers == partition) if partition is not None else np.arange(len(numbers))
        of_code = self.batch.partition == (code[0] if len(code) else -1)
        rows = np.flatnonzero(of_code & (self.batch.offset == offset))
        if not len(rows):
            where = f"partition {partition}, offset {offset}" if partition is not None else f"offset {offset}"
            mine = self.batch.offset[of_code]
            want = f"an offset from {mine[0]} to {mine[-1]}" if len(mine) else "a partition of this run"
            raise UnknownRecord(problem("this record is not in the run", where, want))
        return int(rows[0])

    def records(self) -> pa.Table:
        """One row a record: where it stood, key, times, decision, reason, window_id, merged_count (it ended)."""
        batch, none = self.batch, self.window < 0
        merged_count = np.zeros(len(self), np.int32)
        np.add.at(merged_count, self.merges.at, 1)
        window_id = np.append(self.window_columns.opened_by, NOT_YET)[self.window]
        return pa.table(
            {
                "partition": batch.partitions[batch.partition],
                "offset": batch.offset,
                "key": self.keys.take(pa.array(batch.key, mask=batch.key < 0)),
                "timestamp_ms": pa.array(batch.timestamp_ms, mask=np.isin(self.decision, (BAD_TIME,))),
                "stream_time_ms": self.stream_time_ms,
                "decision": _words(np.minimum(self.decision, LATE), {**DECISIONS, LATE: "dropped"}),
                "reason": _words(self.decision, REASONS),
                "window_id": pa.array(window_id, mask=none),
                "merged_count": merged_count,
            }
        )

    def windows(self, rows: npt.NDArray[np.int64] | None = None) -> pa.Table:
        """One row a window: window_id, partition, key, bounds, opened_by, closed_by, merged_into, parents, status."""
        windows = self.window_columns
        rows = np.arange(len(windows.key)) if rows is None else rows
        into, closed_by = windows.merged_into[rows], self.closed_by[rows]
        opened_by = np.append(windows.opened_by, NOT_YET)
        return pa.table(
            {
                "window_id": windows.opened_by[rows],
                "partition": self.batch.partitions[windows.partition[rows]],
                "key": self.keys.take(pa.array(windows.key[rows])),
                "window_start_ms": windows.start_ms[rows],
                "window_end_ms": windows.end_ms[rows],
                "opened_by": windows.opened_by[rows],
                "closed_by": pa.array(closed_by, mask=(closed_by < 0) | (into >= 0)),
                "merged_into": pa.array(opened_by[into], mask=into < 0),
                "parents": self._parents(rows),
                "status": status_words(into >= 0, closed_by >= 0),
            }
        )

    def _parents(self, rows: npt.NDArray[np.int64]) -> pa.Array:
        """Ids of the sessions that each window absorbed, in the order in which it did."""
        order = np.argsort(self.merges.into, kind="stable")
        count = np.bincount(self.merges.into, minlength=len(self.window_columns.key))
        ends = np.cumsum(count)
        ids = self.window_columns.opened_by[self.merges.absorbed[order]]
        lists = pa.ListArray.from_arrays(pa.array(np.append(0, ends), pa.int32()), pa.array(ids))
        return lists.take(pa.array(rows))

    def where(self, decision: str | None = None, reason: str | None = None) -> pa.Table:
        """The rows of `records()` with this decision ("dropped", "merged", …) or this reason ("late", …)."""
        table = self.records()
        mask = np.ones(len(self), np.bool_)
        for name, wanted in (("decision", decision), ("reason", reason)):
            if wanted is not None:
                mask &= np.asarray(table[name].to_pandas() == wanted)
        return table.filter(pa.array(mask))

    def counts(self) -> dict[str, int]:
        """How many records did what, by decision and by reason; only what happened."""
        seen = np.bincount(self.decision, minlength=REPLAYED + 1)
        return {word: int(seen[code]) for code, word in {**DECISIONS, **REASONS}.items() if seen[code]}

    def check(self) -> None:
        """Verifies every law that can be told from the trace alone.

        Raises:
            BrokenTrace: one does not hold.
        """
        for law, holds in self._laws():
            if not holds:
                raise BrokenTrace(problem("a law of the trace does not hold", law, "this is a bug in sessionkit"))

    def _laws(self) -> Iterator[tuple[str, bool]]:
        """Each law with whether it holds. A law may rely on those before it."""
        windows, merges, opened = self.window_columns, self.merges, self.decision == OPENED
        loaded, count = windows.loaded_count, len(windows.key)
        known = np.isin(self.decision, [*DECISIONS, *REASONS])
        yield "each record is accepted or dropped, with a reason", bool(known.all())
        has_window = self.window >= 0
        yield "an accepted record has a window, a dropped one has none", bool((self.accepted == has_window).all())
        rows = np.concatenate([self.window[has_window], merges.into, merges.absorbed, self.reopenings.window])
        yield "each window that is named is there", not len(rows) or 0 <= rows.min() <= rows.max() < count
        in_order = np.array_equal(self.window[opened], np.arange(loaded, count))
        yield "windows are numbered as they are opened", in_order
        bridges = np.flatnonzero(self.decision == MERGED)
        yield "a record that merges absorbs a session", np.array_equal(np.unique(merges.at), bridges)
        yield "a session is absorbed once", len(np.unique(merges.absorbed)) == len(merges.absorbed)
        marked = np.flatnonzero(windows.merged_into >= 0)
        yield "what was absorbed is marked so", np.array_equal(np.sort(merges.absorbed), marked)
        yield from self._laws_of_time()

    def _laws_of_time(self) -> Iterator[tuple[str, bool]]:
        windows, batch, kept = self.window_columns, self.batch, self.accepted
        yield "stream time never falls", self._stream_time_rises()
        same_key = windows.key[self.window[kept]] == batch.key[kept]
        same_partition = windows.partition[self.window[kept]] == batch.partition[kept]
        yield "a record stays with its key and partition", bool((same_key & same_partition).all())
        start, end = (bound[kept] for bound in self.bounds_after)
        inside = (start <= batch.timestamp_ms[kept]) & (end >= batch.timestamp_ms[kept])
        yield "a record lies in its window", bool(inside.all())
        yield "a record is kept by a session that is open", bool((end >= self.close_time_ms[kept]).all())
        late = self.decision == LATE
        older = batch.timestamp_ms[late] < self.close_time_ms[late]
        yield "a late record is older than the close line", bool(older.all())
        yield "bounds end where the last touch left them", self._bounds_agree()
        final = self.closes.window[self.closes.until == INT64_MAX]
        yield "a session closes once, unless it is re-opened", len(np.unique(final)) == len(final)

    def _stream_time_rises(self) -> bool:
        by_partition = (self.stream_time_ms[self.batch.partition == p] for p in range(len(self.batch.partitions)))
        return all(bool((np.diff(times) >= 0).all()) for times in by_partition)

    def _bounds_agree(self) -> bool:
        start, end = self.loaded_start_ms, self.loaded_end_ms
        size = len(self.window_columns.key)
        lowest, highest = np.full(size, INT64_MAX), np.full(size, -1)
        lowest[: len(start)], highest[: len(end)] = start, end
        kept = self.accepted
        np.minimum.at(lowest, self.window[kept], self.bounds_after[0][kept])
        np.maximum.at(highest, self.window[kept], self.bounds_after[1][kept])
        return bool((lowest == self.window_columns.start_ms).all() and (highest == self.window_columns.end_ms).all())

    def __repr__(self) -> str:
        counts = ", ".join(f"{count:,} {word}" for word, count in self.counts().items())
        windows = plural(len(self.window_columns.key), "window")
        return f"Trace of {plural(len(self), 'record')} ({counts or 'none'}), {windows}"

    def _repr_html_(self) -> str:
        text = escape_html(repr(self))
        return html_block(f"<p>{text}; <code>.records()</code> and <code>.windows()</code> are tables.</p>")


def status_words(absorbed: npt.NDArray[np.bool_], closed: npt.NDArray[np.bool_]) -> pa.Array:
    """ "merged", "closed" or "open" for each window."""
    code = np.where(absorbed, 2, np.where(closed, 1, 0)).astype(np.int8)
    return pa.DictionaryArray.from_arrays(pa.array(code), pa.array(["open", "closed", "merged"])).cast(pa.string())


def _words(codes: npt.NDArray[np.uint8], words: dict[int, str]) -> pa.Array:
    place = np.full(256, -1, np.int8)
    for number, code in enumerate(words):
        place[code] = number
    index = place[codes]
    return pa.DictionaryArray.from_arrays(pa.array(index, mask=index < 0), pa.array(list(words.values()))).cast(
        pa.string()
    )
