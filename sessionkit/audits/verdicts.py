"""How the results of two sides compare, window by window."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.audits.sides import NOT_RESULTS, Results, Sent, Sides, WindowId, Windows, python_list, windows_of
from sessionkit.base.arrays import Codes, Column, Flags, Longs, arrow_array, is_null, joined, taken
from sessionkit.deployed.compiled.sent import SentResults
from sessionkit.engine.sent_values import with_nulls
from sessionkit.run import Run
from sessionkit.suppression.stage import numbered
from sessionkit.views.comparison.comparison import are_equal

VERDICTS = ("as it should be", "lost", "sent twice", "other value", "only in Kafka", "late")
AS_IT_SHOULD, LOST, SENT_TWICE, OTHER_VALUE, ONLY_IN_KAFKA, COMES_LATE = VERDICTS
AGAIN, WAITING = range(2)  # the windows that are looked for among those that are compared
CAME = (AS_IT_SHOULD, SENT_TWICE, COMES_LATE)  # with the right value


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
        every = Windows(**joined(*(each._asdict() for each in sides.windows)))
        begins = np.cumsum([len(each.start_ms) for each in sides.windows])[:-1]
        names = [name for name in sides.columns[0] if name not in NOT_RESULTS]
        number, some = numbered(every.partition, every.key.indices.to_numpy(), every.start_ms, every.end_ms)
        codes = np.split(number, begins)
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


def verdicts_on(compared: Compared) -> npt.NDArray[np.object_]:
    """How each window that is compared came out."""
    expected, kafka, again = compared.expected, compared.sent, compared.among(AGAIN)
    out = np.array([AS_IT_SHOULD, COMES_LATE], object)[(kafka.offset > expected.offset).view(np.int8)]
    out[~kafka.is_there], out[~expected.is_there] = LOST, ONLY_IN_KAFKA
    is_compared = expected.is_there & kafka.is_there
    rows = np.flatnonzero(is_compared & (~compared.are_same | again | (kafka.times != 1)))
    sides = zip(expected.sent(rows), kafka.sent(rows), again[rows].tolist(), strict=True)
    out[rows] = [verdict_on(one, other, is_sent_again=is_again) for one, other, is_again in sides]
    # of a window whose value waits in the buffer of suppress, an older value may have been sent before
    out[(out == OTHER_VALUE) & compared.among(WAITING)] = LOST
    return out


def wrong_of(compared: Compared, verdicts: npt.NDArray[np.object_]) -> Windows:
    """The windows that never come, or with another value."""
    wrong = ~np.isin(verdicts, CAME) & ~((verdicts == LOST) & compared.among(WAITING))
    return compared.windows.take(np.flatnonzero(wrong))


def wrong_in(sides: Sides) -> Windows:
    """The same, part by part."""
    parts = map(Compared.of_part, sides.parts())
    return Windows(**joined(*(wrong_of(part, verdicts_on(part))._asdict() for part in parts)))


def holders_of(compared: Compared, verdicts: npt.NDArray[np.object_]) -> list[WindowId]:
    """For each lost result that is part of a larger session: that session, which Kafka sent instead."""
    larger: dict[tuple[int, Any], list[WindowId]] = {}
    is_lost = (verdicts == LOST) & ~compared.among(WAITING)
    only, gone = (np.flatnonzero(each) for each in (verdicts == ONLY_IN_KAFKA, is_lost))
    if not len(only):
        return []
    for id in compared.windows.take(compared.in_order(only)).ids():
        larger.setdefault((id.partition, id.key), []).append(id)
    holders = []
    for lost in compared.windows.take(gone).ids():
        of_key = larger.get((lost.partition, lost.key), [])
        place = bisect_left(of_key, lost.end_ms, key=lambda id: id.end_ms)
        holders += [id for id in of_key[place : place + 1] if id.start_ms <= lost.start_ms]
    return holders


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
