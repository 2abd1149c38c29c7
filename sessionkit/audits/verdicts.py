"""What runs sent downstream, window by window, and how the results of two sides compare."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Codes, Column, Flags, Longs, arrow_array, is_null, joined, order_by, taken
from sessionkit.deployed.compiled.sent import SentResults
from sessionkit.engine.sent_values import with_nulls
from sessionkit.run import Run
from sessionkit.suppression.stage import can_be_null, numbered
from sessionkit.trace.loops import grouped
from sessionkit.trace.sent import last_of_places, last_updates
from sessionkit.views import tables
from sessionkit.views.comparison.comparison import are_equal

VERDICTS = ("as it should be", "lost", "sent twice", "other value", "only in Kafka", "late")
AS_IT_SHOULD, LOST, SENT_TWICE, OTHER_VALUE, ONLY_IN_KAFKA, COMES_LATE = VERDICTS
NOT_RESULTS = ("what", "offset")  # columns of what a side sent
ROWS_AT_ONCE = 1_000_000
CAME = (AS_IT_SHOULD, SENT_TWICE, COMES_LATE)  # with the right value


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

    `windows` are those of the rows of both sides and of others, which are looked for among them; `begins` is where each
    of them begins.
    """

    windows: Windows
    begins: Longs
    columns: Sequence[Mapping[str, Column]]

    @classmethod
    def of(cls, expected: Sequence[Run], sent: Sequence[Run], *others: Windows) -> Sides:
        """The results of these runs."""
        names = list(expected[0]._outcome.folds)
        (ours, one), (theirs, other) = (_sent_by_all(runs, names) for runs in (expected, sent))
        places = (ours, theirs, *others)
        begins = np.cumsum([0, *(len(each.start_ms) for each in places)])[:-1]
        return cls(Windows(**joined(*(each._asdict() for each in places))), begins, (one, other))

    def parts(self) -> Iterator[Sides]:
        """The same of some keys after the others: what is made of a part takes less memory."""
        key = self.windows.key.indices.to_numpy()
        count = 1 + len(key) // ROWS_AT_ONCE
        first, rows = grouped(key % count, count)
        for own in np.split(rows, first[1:-1]):
            begins = np.searchsorted(own, self.begins)
            of = [own[begins[i] : begins[i + 1]] - self.begins[i] for i in range(2)]
            columns = [taken(side, rows) for side, rows in zip(self.columns, of, strict=True)]
            yield Sides(self.windows.take(own), begins, columns)


@dataclass(frozen=True)
class Compared:
    """The windows of which one of two sides sent results that count, a row each."""

    windows: Windows
    expected: Results
    sent: Results
    others: Sequence[Longs]  # the rows of other windows, which were looked for

    @classmethod
    def of(cls, sides: Sides) -> Compared:
        """The windows, a part of their keys after the other."""
        parts = [cls.of_part(each) for each in sides.parts()]
        windows = Windows(**joined(*(each.windows._asdict() for each in parts)))
        begins = np.cumsum([0, *(len(each.windows.start_ms) for each in parts)])[:-1]
        others = [
            np.concatenate([each.others[i] + begin for each, begin in zip(parts, begins, strict=True)])
            for i in range(len(parts[0].others))
        ]
        expected, sent = ([getattr(each, side) for each in parts] for side in ("expected", "sent"))
        return cls(windows, Results.joined(expected), Results.joined(sent), others)

    @classmethod
    def by_rows(cls, expected: Run, sent: Sequence[Run], *others: Windows) -> Compared | None:
        """The same of time or sliding windows that both sides made, each in the same row; else None.

        Where both send each update at once, they have sent the same, by the same records.
        """
        columns, trace = expected._outcome.window_columns, expected._outcome.kept_trace
        if len(sent) != 1 or not _made_the_same(expected, sent[0]):
            return None
        ours, theirs = np.zeros((2, len(columns.key)), np.int64)
        if (finals := sent[0].deployed.forwarded.finals) is not None:  # type: ignore[union-attr]
            ours[:] = theirs[:] = -1
            for own, (window, at) in ((ours, trace._finals), (theirs, finals())):
                own[window] = at
        rows = np.flatnonzero((ours >= 0) | (theirs >= 0)).astype(np.int32)
        windows = windows_of(expected, rows, columns.start_ms[rows], columns.end_ms[rows])
        wanted, came = _finals_at(expected, rows, ours[rows]), _finals_at(sent[0], rows, theirs[rows])
        return cls(windows, wanted, came, [_places_of(windows, each) for each in others])

    @classmethod
    def of_part(cls, sides: Sides) -> Compared:
        """The windows as they come."""
        every, names = sides.windows, [name for name in sides.columns[0] if name not in NOT_RESULTS]
        number, some = numbered(every.partition, every.key.indices.to_numpy(), every.start_ms, every.end_ms)
        codes = np.split(number, sides.begins[1:])
        last = [_last_results(side, code, len(some)) for side, code in zip(sides.columns, codes, strict=False)]
        found = np.flatnonzero((last[0] >= 0) | (last[1] >= 0))
        expected, sent = (
            _results(side, code, rows[found], found, names)
            for side, code, rows in zip(sides.columns, codes, last, strict=False)
        )
        place = np.full(len(some), -1)
        place[found] = np.arange(len(found))
        others = [rows[rows >= 0] for rows in (place[code] for code in codes[2:])]
        return cls(every.take(some[found]), expected, sent, others)

    @cached_property
    def are_same(self) -> Flags:
        """True where the values of both sides are plainly the same."""
        columns = zip(self.expected.values.values(), self.sent.values.values(), strict=True)
        same: Flags = np.logical_and.reduce([_are_same(*pair) for pair in columns])
        return same & self.expected.is_there & self.sent.is_there

    def among(self, other: int) -> Flags:
        """True for each window that is one of these others."""
        out = np.zeros(len(self.windows.start_ms), np.bool_)
        out[self.others[other]] = True
        return out

    def in_order(self, rows: Longs) -> Longs:
        """These rows by partition, end, start and key."""
        return rows[self.windows.take(rows).order()]

    def columns(self, rows: Longs, word: tuple[str, npt.NDArray[np.object_]], prefix: str) -> dict[str, Any]:
        """A row a window, in order: its bounds, a word on it, how often it was sent, and each result on both sides.

        `word` is the name of its column and the word on each window; `prefix` stands before the results sent.
        """
        rows = self.in_order(rows)
        windows, sent = self.windows.take(rows), self.sent
        columns: dict[str, Any] = {
            "key": windows.key.to_pylist(),
            "window_start_ms": windows.start_ms,
            "window_end_ms": windows.end_ms,
            word[0]: word[1][rows].tolist(),
            "sent_count": np.where(sent.is_there, sent.times, 0)[rows].astype(np.int64),
            "partition": windows.partition,
        }
        wanted, came = taken(self.expected.values, rows), taken(sent.values, rows)
        for name in wanted:
            columns[name], columns[f"{prefix}_{name}"] = python_list(wanted[name]), python_list(came[name])
        return columns


def _made_the_same(expected: Run, run: Run) -> bool:
    """Whether the windows of two runs are the same, row by row, and nothing holds back what they send."""
    results = None if run.deployed is None else run.deployed.forwarded
    if type(results) is not SentResults or run.plan._complete_windows.holds != "windows":
        return False
    if (results.finals is None and results.flushed) or not run._outcome.keys.equals(expected._outcome.keys):
        return False
    if not np.array_equal(expected.trace.decision, run.trace.decision):
        return False
    pairs: Any = zip(expected._outcome.window_columns, run._outcome.window_columns, strict=True)
    return all(np.array_equal(ours, theirs) for ours, theirs in pairs)


def _finals_at(run: Run, rows: Codes, at: Longs) -> Results:
    """The final results of these windows, sent by the records `at`; -1 for none."""
    outcome, is_there = run._outcome, at >= 0
    values = {name: _as_arrow_if_plain(fold.results(rows)) for name, fold in outcome.folds.items()}
    if not is_there.all():
        values = with_nulls(values, np.arange(len(rows)), ~is_there)
    return Results(is_there, is_there.view(np.int8), np.where(is_there, outcome.batch.offset[at], -1), values)


def _places_of(windows: Windows, others: Windows) -> Longs:
    """Where these others are among the windows; those that are not there are left out."""
    if not len(others.start_ms):
        return np.empty(0, np.int64)
    some = np.flatnonzero(np.isin(windows.start_ms, others.start_ms))
    both = Windows(**joined(windows.take(some)._asdict(), others._asdict()))
    number, _ = numbered(both.partition, both.key.indices.to_numpy(), both.start_ms, both.end_ms)
    place = np.full(int(number.max()) + 1, -1)
    place[number[: len(some)]] = some
    found = place[number[len(some) :]]
    return found[found >= 0]


def _sent_by_all(runs: Sequence[Run], names: Sequence[str]) -> tuple[Windows, Mapping[str, Column]]:
    """(the windows of which these runs sent results, row by row; what they sent)."""
    windows, columns = [], []
    for sent in map(_sent_by, runs):
        windows.append(windows_in(sent)._asdict())
        columns.append({name: sent[name] for name in (*NOT_RESULTS, *names)})
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


def _last_results(columns: Mapping[str, Column], code: Longs, size: int) -> Longs:
    """The row of the last result of each window, -1 where there is none, or it was withdrawn."""
    last = np.full(size, -1)
    last[code] = np.arange(len(code))
    withdrawn = np.flatnonzero(np.asarray(pc.equal(columns["what"], "tombstone")))
    last[np.isin(last, withdrawn)] = -1
    return last


def _results(columns: Mapping[str, Column], code: Longs, last: Longs, found: Longs, names: Sequence[str]) -> Results:
    """What a side sent for the windows `found`, whose last results are at these rows."""
    is_there = last >= 0
    rows = np.maximum(last, 0)
    times = np.where(is_there, 1, 0)
    if len(code):
        is_final = np.asarray(pc.equal(columns["what"], "final"))[rows]
        times = np.where(is_there & is_final, np.bincount(code, minlength=int(found.max(initial=-1)) + 1)[found], times)
    offset = np.full(len(last), -1)
    offset[is_there] = np.asarray(columns["offset"])[last[is_there]]
    values = {name: _as_arrow_if_plain(columns[name]) for name in names}
    return Results(is_there, times, offset, with_nulls(values, last, ~is_there))


def _as_arrow_if_plain(column: Column) -> Column:
    return arrow_array(column) if isinstance(column, np.ndarray) and column.dtype != object else column


def _are_same(one: Column, other: Column) -> Flags:
    """True where two values are plainly the same: of columns of numbers, texts and times."""
    if isinstance(one, np.ndarray) or one.type != other.type or pa.types.is_nested(one.type):
        return np.zeros(len(one), np.bool_)
    same = np.asarray(pc.fill_null(pc.equal(one, other), False)) | (is_null(one) & is_null(other))
    if pa.types.is_floating(one.type):
        same |= np.asarray(pc.fill_null(pc.and_(pc.is_nan(one), pc.is_nan(other)), False))
    return same


def python_list(column: Any) -> list[Any]:
    """The values of a column of the changelog, or of a table, as Python's own."""
    return list(column.to_pylist() if hasattr(column, "to_pylist") else column.tolist())


def verdict_on(expected: Sent | None, kafka: Sent | None, *, is_sent_again: bool) -> str:
    """How what was sent for a window compares with what should have been."""
    if expected is None:
        return ONLY_IN_KAFKA
    if kafka is None:
        return LOST
    if kafka.times > 1 or is_sent_again:
        return SENT_TWICE
    if not are_equal(kafka.value, expected.value):
        return OTHER_VALUE
    return COMES_LATE if kafka.offset > expected.offset else AS_IT_SHOULD
