"""What two sides of a comparison sent downstream, window by window."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Codes, Column, Flags, Longs, Rows, arrow_array, joined, of_type, order_by, taken
from sessionkit.deployed.compiled.sent import SentResults
from sessionkit.run import Run
from sessionkit.suppression.stage import can_be_null
from sessionkit.trace.loops import grouped
from sessionkit.trace.sent import last_of_places, last_updates
from sessionkit.views import tables

NOT_RESULTS = ("what", "offset")  # columns of what a side sent
ROWS_AT_ONCE = 1_000_000


class WindowId(NamedTuple):
    """The identity of a result: its partition, its key and its bounds."""

    partition: int
    key: Any
    start_ms: int
    end_ms: int


class Sent(NamedTuple):
    """The results sent for a window: how often, the last value, and by which record."""

    times: int
    value: tuple[Any, ...]
    offset: int


class Windows(NamedTuple):
    """Windows as columns, a row each."""

    partition: Longs
    key: pa.DictionaryArray
    start_ms: Longs
    end_ms: Longs

    def take(self, rows: Longs) -> Windows:
        """Those at `rows`."""
        numbers = (column[rows] for column in (self.partition, self.start_ms, self.end_ms))
        partition, start_ms, end_ms = numbers
        return Windows(partition, self.key.take(arrow_array(rows)), start_ms, end_ms)

    def ids(self) -> list[WindowId]:
        """The windows one by one."""
        columns = (self.partition.tolist(), self.key.to_pylist(), self.start_ms.tolist(), self.end_ms.tolist())
        return [WindowId(*place) for place in zip(*columns, strict=True)]

    def order(self) -> Longs:
        """The rows by partition, end, start and key, of which the text counts."""
        code, rank = self.key.indices.to_numpy(), np.full(len(self.key.dictionary), -1)
        rank[code] = 0
        there = np.flatnonzero(rank == 0)  # of all keys
        texts = [str(key) for key in self.key.dictionary.take(arrow_array(there)).to_pylist()]
        rank[there[sorted(range(len(texts)), key=texts.__getitem__)]] = np.arange(len(texts))
        return order_by(self.partition, self.end_ms, self.start_ms, rank[code])


def windows_of(run: Run, row: Codes, start_ms: Longs, end_ms: Longs) -> Windows:
    """Windows of a run, by their rows and the bounds that they had at some time."""
    trace, columns = run.trace, run.trace.window_columns
    partition = trace.batch.partitions[columns.partition[row]].astype(np.int64)
    code = arrow_array(columns.key[row])
    are_few = len(row) < len(trace.keys)  # then their keys alone
    key = trace.keys.take(code).dictionary_encode() if are_few else pa.DictionaryArray.from_arrays(code, trace.keys)
    return Windows(partition, key, start_ms, end_ms)


def no_windows(run: Run) -> Windows:
    """None of a run's windows."""
    none = np.empty(0, np.int64)
    return windows_of(run, none.astype(np.int32), none, none)


def windows_in(columns: Mapping[str, Any]) -> Windows:
    """The window of each row of a changelog, or of a table."""
    names = ("partition", "window_start_ms", "window_end_ms")
    partition, start_ms, end_ms = (np.asarray(columns[name], np.int64) for name in names)
    key = columns["key"]
    key = key.combine_chunks() if isinstance(key, pa.ChunkedArray) else key
    return Windows(partition, key.dictionary_encode(), start_ms, end_ms)


SentRows = tuple[Windows, Mapping[str, Column]]  # the window of each row, and what was sent


class Results(NamedTuple):
    """What one side sent for each window of a comparison."""

    is_there: Flags
    times: Longs
    offset: Longs
    values: Mapping[str, Column]  # null where nothing is there

    @classmethod
    def joined(cls, parts: Sequence[Results]) -> Results:
        """Those of all parts, one after the other."""
        is_there, times, offset = (np.concatenate(column) for column in zip(*(p[:3] for p in parts), strict=True))
        return cls(is_there, times, offset, joined(*(each.values for each in parts)))

    def sent(self, rows: Longs) -> list[Sent | None]:
        """What it sent for these windows, one by one."""
        values = zip(*(python_list(column) for column in taken(self.values, rows).values()), strict=True)
        told = zip(*(column[rows].tolist() for column in (self.is_there, self.times, self.offset)), values, strict=True)
        return [Sent(times, value, offset) if is_there else None for is_there, times, offset, value in told]


class Sides(NamedTuple):
    """What two sides sent, row by row: runs one after the other, final results or updates and tombstones.

    `windows` are those of the rows of both sides, and others, which are looked for among them.
    """

    windows: Sequence[Windows]
    columns: Sequence[Mapping[str, Column]]

    @classmethod
    def of(cls, expected: Sequence[Run], sent: Sequence[Run], *others: Windows) -> Sides:
        """The results of these runs."""
        return cls.beside(sent_by_all(sent), expected, *others)  # made first: it takes most memory meanwhile

    @classmethod
    def beside(cls, sent: SentRows, expected: Sequence[Run], *others: Windows) -> Sides:
        """What was sent, beside what should have been."""
        ours, one = sent_by_all(expected)
        return cls((ours, sent[0], *others), (one, sent[1]))

    def parts(self) -> Iterator[Sides]:
        """The same of some keys after the others: what is made of a part takes less memory."""
        keys = [of_type(each.key, self.windows[0].key.type) for each in self.windows]
        keys = pa.chunked_array(keys).unify_dictionaries().chunks
        every = [each._replace(key=key) for each, key in zip(self.windows, keys, strict=True)]
        count = 1 + sum(map(len, keys)) // ROWS_AT_ONCE
        for own in zip(*(_by_part(key.indices.to_numpy() % count, count) for key in keys), strict=True):
            windows = [each.take(rows) for each, rows in zip(every, own, strict=True)]
            yield Sides(windows, [taken(side, rows) for side, rows in zip(self.columns, own, strict=False)])


def _by_part(part: Codes, count: int) -> list[Rows]:
    """The rows of each part."""
    first, rows = grouped(part, count)
    return np.split(rows, first[1:-1])


def sent_by_all(runs: Sequence[Run]) -> SentRows:
    """(the windows of which these runs sent results, row by row; what they sent)."""
    windows, columns = [], []
    for run in runs:
        sent = _sent_by(run)
        windows.append(windows_in(sent)._asdict())
        columns.append({name: sent[name] for name in (*NOT_RESULTS, *run._outcome.folds)})
    return Windows(**joined(*windows)), joined(*columns)


def _sent_by(run: Run) -> Mapping[str, Column]:
    """The changelog of a run; on update only what decides to what each window comes, where the trace tells that."""
    plan, trace = run.plan, dataclasses.replace(run._outcome.kept_trace)  # it forgets what it works out for this
    done = None if run.deployed is None else run.deployed.forwarded
    if type(done) is SentResults and done.flushed and plan._suppression is None:
        return tables.sent_table(run._outcome, last_of_places(done.make_sent(), trace), old_values=False)
    is_told = done is None or type(done) is SentResults
    is_told &= not run._outcome.window_columns.loaded_count  # what it withdraws of a life before is told by that alone
    if plan._strategy == "on_window_close" or plan._suppression is not None or not is_told:
        return run._changelog_with(old_values=False)  # which nobody has asked for yet
    if can_be_null(dict(plan._aggregations)):  # then a window can be withdrawn
        return run._changelog_with(old_values=False)
    return tables.sent_table(run._outcome, last_updates(trace), old_values=False)


def python_list(column: Any) -> list[Any]:
    """The values of a column of the changelog, or of a table, as Python's own."""
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column.tolist())
