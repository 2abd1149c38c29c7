"""Two runs of the same records beside each other: which records and windows differ, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Flags, Longs, distinct
from sessionkit.base.calls import answers_calls
from sessionkit.base.decisions import REASONS
from sessionkit.base.text import plural
from sessionkit.errors import InvalidArgument, problem
from sessionkit.records.frames import Frame
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace, words
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views import tables
from sessionkit.views.comparison.groups import (
    CHANGES,
    AreSame,
    Groups,
    Side,
    groups_by_place,
    groups_by_records,
    ranks_as_text,
)
from sessionkit.views.html import Pictured
from sessionkit.windows.contract import WindowKind

if TYPE_CHECKING:
    from sessionkit.records.batch import RecordBatch
    from sessionkit.run import Run
    from sessionkit.views.drawing.palettes import Figure, Theme


@answers_calls("comparison")
@dataclass(frozen=True, repr=False)
class Comparison(Pictured, Generic[Frame]):
    """What changes from the run `before` to the run `after`.

    Example:
        >>> wider = waves.with_windows(inactivity_gap="2h").run(flights)
        >>> found = waves.run(flights).compare(wider)
        >>> found.counts()["joined"] > 100
        True
        >>> print(found.words()[0])
        From gap 1 h, grace 30 min to gap 2 h, grace 30 min: 716 records gained, 0 lost.
        >>> len(found.table()), len(found.records())
        (2521, 716)
        >>> figure = found.figure()
    """

    before: Run[Frame]
    after: Run[Frame]

    # ---- what it says

    def counts(self) -> dict[str, int]:
        """Records and windows by what happened to them.

        `records_…` add up to all records. A `split` is one window before and several after, a `joined` the reverse,
        `regrouped` is several on both sides; `…_before` and `…_after` add up to the windows of each run.
        """
        kept, keeps = self._accepted
        groups = self._groups
        found: dict[str, int] = {}
        for end, weights in (("", None), ("_before", groups.before.counts), ("_after", groups.after.counts)):
            counted = np.bincount(groups.what, weights, len(CHANGES)).astype(int).tolist()
            found |= {f"{what}{end}": count for what, count in zip(CHANGES, counted, strict=True)}
        return {
            "records_kept_by_both": int((kept & keeps).sum()),
            "records_lost": int((kept & ~keeps).sum()),
            "records_gained": int((~kept & keeps).sum()),
            "records_kept_by_none": int((~kept & ~keeps).sum()),
            **{f"{what}{side}": found[f"{what}{side}"] for what in CHANGES for side in ("", "_before", "_after")},
        }

    def table(self) -> Frame:
        """One row for each group of windows that have records in common: what happened to it, and where it is.

        Columns: what, partition, the key columns, start, end (of all its windows), before_count, after_count, and
        the bounds before and after as lists.
        """
        groups, keys = self._groups, self.before._outcome.keys
        order = np.lexsort((groups.start_ms, ranks_as_text(keys)[groups.key], groups.partition))
        columns = {
            "what": pa.DictionaryArray.from_arrays(groups.what[order], pa.array(CHANGES)).cast(pa.string()),
            "partition": groups.partition[order],
            "key": keys.take(pa.array(groups.key[order])),
            "start_ms": groups.start_ms[order],
            "end_ms": groups.end_ms[order],
            "before_count": groups.before.counts[order],
            "after_count": groups.after.counts[order],
            "before_bounds_ms": _bounds(groups.before).take(pa.array(order)),
            "after_bounds_ms": _bounds(groups.after).take(pa.array(order)),
        }
        return tables.frame_of(columns, self.before._outcome.batch, _SHOWN)

    def records(self) -> Frame:
        """One row for each record that one run keeps and the other drops: what happened to it, and the reason."""
        kept, keeps = self._accepted
        rows = np.flatnonzero(kept != keeps)
        batch = self.before._outcome.batch.without_ticks()
        before, after = (run.trace.decision[run.trace.is_record][rows] for run in (self.before, self.after))
        decision = np.where(kept[rows], after, before)
        columns = {
            "what": pa.array(np.where(kept[rows], "lost", "gained").tolist(), pa.string()),
            "partition": batch.partitions[batch.partition[rows]],
            "offset": batch.offset[rows],
            "key": batch.keys.take(pa.array(batch.key[rows], mask=batch.key[rows] < 0)),
            "timestamp_ms": batch.timestamp_ms[rows],
            "reason": words(decision, REASONS),
        }
        return tables.frame_of(columns, batch)

    def words(self) -> list[str]:
        """The change as sentences."""
        return changed_words(self.counts(), *(run.plan._complete_windows for run in (self.before, self.after)))

    def figure(self, *, theme: Theme | None = None, most: int = 8) -> Figure:
        """The windows of the keys that change most, with those before above those after."""
        from sessionkit.views.comparison.figure import comparison_figure

        return comparison_figure(self, theme=theme, most=most)

    # ---- how it is found

    @cached_property
    def _groups(self) -> Groups:
        return _GROUPS[type(self.before.trace)](self.before.trace, self.after.trace, self._are_same)

    @cached_property
    def _accepted(self) -> tuple[Flags, Flags]:
        kept, keeps = (run.trace.accepted[run.trace.is_record] for run in (self.before, self.after))
        return kept, keeps

    def _are_same(self, before: Longs, after: Longs) -> Flags:
        """True for each pair of windows whose bounds and results are the same."""
        one, other = self.before._outcome, self.after._outcome
        here, there = one.window_columns, other.window_columns
        same = (here.start_ms[before] == there.start_ms[after]) & (here.end_ms[before] == there.end_ms[after])
        for name in one.folds.keys() & other.folds.keys():
            same &= equal_results(one.folds[name].results(before), other.folds[name].results(after))
        return same


_SHOWN = {name: name.removesuffix("_ms") for name in ("start_ms", "end_ms", "before_bounds_ms", "after_bounds_ms")}
# What makes windows of two runs belong together: the records that sessions share, or the same place.
_GROUPS: dict[type[Trace], Callable[[Any, Any, AreSame], Groups]] = {
    SessionTrace: groups_by_records,
    WindowTrace: groups_by_place,
}


def changed_words(c: Mapping[str, int], before: WindowKind, after: WindowKind) -> list[str]:
    """The change from windows of one setting to those of another, by its counts, as sentences."""
    noun = before.noun
    said = [
        f"From {before.in_words()} to {after.in_words()}: "
        f"{plural(c['records_gained'], 'record')} gained, {c['records_lost']:,} lost."
    ]
    told = [
        f"{c['changed']:,} changed",
        *([f"{c['split_before']:,} split into {c['split_after']:,}"] if c["split"] else []),
        *([f"{c['joined_before']:,} joined into {c['joined_after']:,}"] if c["joined"] else []),
        *([f"{c['regrouped_before']:,} regrouped as {c['regrouped_after']:,}"] if c["regrouped"] else []),
        f"{c['lost']:,} lost, {c['gained']:,} gained",
    ]
    stay = "one stays as it is" if c["same"] == 1 else f"{c['same']:,} stay as they are"
    return [*said, f"Of the {noun}s {stay}; {', '.join(told)}."]


def compare(before: Run, after: Run) -> Comparison:
    """The comparison of two runs over the same records.

    Raises:
        InvalidArgument: the records are not the same, the windows are of different kinds, or it is a run on Spark.
    """
    if not hasattr(after, "_outcome"):
        want = "another run in this process, such as run.local(0) of a run on Spark"
        raise InvalidArgument(problem("compare takes local runs", type(after).__name__, want))
    differing = _difference(before._outcome.batch.without_ticks(), after._outcome.batch.without_ticks())
    if differing:
        want = "run both on one frame, with the same key, times and partitions"
        raise InvalidArgument(problem("only runs of the same records can be compared", differing, want))
    if type(before.trace) is not type(after.trace):
        got = f"{before.plan.windows!r} and {after.plan.windows!r}"
        raise InvalidArgument(problem("only windows of one kind can be compared", got, "sessions with sessions"))
    return Comparison(before, after)


def _difference(one: RecordBatch, other: RecordBatch) -> str:
    """In what the records of two runs differ, in words; "" if they are the same."""
    if len(one) != len(other):
        return f"{plural(len(one), 'record')} and {len(other):,}"
    here, there = (batch.partitions[batch.partition] for batch in (one, other))
    if not np.array_equal(here, there):
        counts = len(distinct(here)), len(distinct(there))
        if counts[0] != counts[1]:
            return f"the records in {plural(counts[0], 'partition')} and in {counts[1]:,}"
        return f"{_how_many(here != there)} in another partition"
    if not one.keys.equals(other.keys) or not np.array_equal(one.key, other.key):
        names = [np.array([*batch.keys.to_pylist(), None], object)[batch.key] for batch in (one, other)]
        return f"{_how_many(names[0] != names[1])} with another key"
    if not np.array_equal(one.timestamp_ms, other.timestamp_ms):
        return f"{_how_many(one.timestamp_ms != other.timestamp_ms)} with another time"
    return ""


def _how_many(differs: Flags) -> str:
    return f"{np.count_nonzero(differs):,} of {plural(len(differs), 'record')}"


def _bounds(side: Side) -> pa.Array:
    """(start, end) of the windows of each group, as lists of lists."""
    ends = np.stack([side.start_ms, side.end_ms], axis=1).ravel()
    pairs = pa.ListArray.from_arrays(pa.array(np.arange(0, len(ends) + 1, 2), pa.int32()), pa.array(ends))
    return pa.ListArray.from_arrays(pa.array(side.first, pa.int32()), pairs)


def equal_results(one: tables.Column, other: tables.Column) -> Flags:
    """`are_equal` of each row of two columns: at once where both hold numbers, or texts, of one type."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and one.dtype == other.dtype != object:
        return (one == other) | ((one != one) & (other != other))
    are_arrays = isinstance(one, pa.Array) and isinstance(other, pa.Array)
    if are_arrays and one.type == other.type and not pa.types.is_nested(one.type):
        equal = pc.or_(pc.equal(one, other).fill_null(False), pc.and_(one.is_null(), other.is_null()))
        if pa.types.is_floating(one.type):
            equal = pc.or_(equal, pc.and_(pc.is_nan(one), pc.is_nan(other)).fill_null(False))
        return equal.to_numpy(zero_copy_only=False)
    rows = zip(*(column.tolist() for column in (one, other)), strict=True)
    return np.fromiter((are_equal(*row) for row in rows), np.bool_, len(one))


def are_equal(one: Any, other: Any) -> bool:
    """True if two results are equal: whatever they hold, and what is not a number on both sides is the same."""
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.shape == other.shape and are_equal(one.tolist(), other.tolist())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(are_equal, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(are_equal(value, other[name]) for name, value in one.items())
    return bool(one == other or (one != one and other != other))
