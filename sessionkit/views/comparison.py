"""Two runs of the same records beside each other: which records and windows differ, and how."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sessionkit.base.calls import not_offered
from sessionkit.base.decisions import REASONS
from sessionkit.base.text import plural
from sessionkit.errors import InvalidArgument, problem
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Trace, words
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views import tables
from sessionkit.views.shown import picture_bundle

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from sessionkit.records.batch import RecordBatch
    from sessionkit.run import Run
    from sessionkit.views.charts.drawing.palettes import Theme

SAME, CHANGED, SPLIT, JOINED, REGROUPED, LOST, GAINED = CHANGES = (
    "same",
    "changed",
    "split",
    "joined",
    "regrouped",
    "lost",
    "gained",
)


class Group(NamedTuple):
    """Windows of the two runs that have records in common, as rows of their windows; and what became of them."""

    what: str
    before: tuple[int, ...]
    after: tuple[int, ...]


@not_offered("bounds", "groups", "key_of", "newest_ms")
@dataclass(frozen=True, repr=False)
class Comparison:
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

    before: Run
    after: Run

    # ---- what it says

    def counts(self) -> dict[str, int]:
        """Records and windows by what happened to them.

        `records_…` add up to all records. A `split` is one window before and several after, a `joined` the reverse,
        `regrouped` is several on both sides; `…_before` and `…_after` add up to the windows of each run.
        """
        kept, keeps = self._accepted
        found: Counter[str] = Counter()
        for group in self.groups:
            found[group.what] += 1
            found[f"{group.what}_before"] += len(group.before)
            found[f"{group.what}_after"] += len(group.after)
        return {
            "records_kept_by_both": int((kept & keeps).sum()),
            "records_lost": int((kept & ~keeps).sum()),
            "records_gained": int((~kept & keeps).sum()),
            "records_kept_by_none": int((~kept & ~keeps).sum()),
            **{f"{what}{side}": found[f"{what}{side}"] for what in CHANGES for side in ("", "_before", "_after")},
        }

    def table(self) -> Any:
        """One row for each group of windows that have records in common: what happened to it, and where it is.

        Columns: what, partition, the key columns, start, end (of all its windows), before_count, after_count, and
        the bounds before and after as lists.
        """
        placed = sorted(((self._place(group), group) for group in self.groups), key=itemgetter(0))
        places, groups = [place for place, _ in placed], [group for _, group in placed]
        bounds = [[self.bounds(side, group) for group in groups] for side in (0, 1)]
        columns = {
            "what": pa.array([group.what for group in groups], pa.string()),
            "partition": np.array([place[0] for place in places], np.int64),
            "key": pa.array([self.key_of(group) for group in groups], self.before.outcome.keys.type),
            "start_ms": np.array([place[2] for place in places], np.int64),
            "end_ms": np.array([max(end for _, end in (*b, *a)) for b, a in zip(*bounds, strict=True)], np.int64),
            "before_count": np.array([len(group.before) for group in groups], np.int64),
            "after_count": np.array([len(group.after) for group in groups], np.int64),
        }
        for name, side in zip(("before", "after"), bounds, strict=True):
            columns[f"{name}_bounds_ms"] = pa.array([[[*each] for each in found] for found in side], _BOUNDS)
        return tables.frame_of(columns, self.before.outcome.batch, _SHOWN)

    def records(self) -> Any:
        """One row for each record that one run keeps and the other drops: what happened to it, and the reason."""
        kept, keeps = self._accepted
        rows = np.flatnonzero(kept != keeps)
        batch = self.before.outcome.batch
        decision = np.where(kept[rows], self.after.trace.decision[rows], self.before.trace.decision[rows])
        columns = {
            "what": pa.array(np.where(kept[rows], LOST, GAINED).tolist(), pa.string()),
            "partition": batch.partitions[batch.partition[rows]],
            "offset": batch.offset[rows],
            "key": batch.keys.take(pa.array(batch.key[rows], mask=batch.key[rows] < 0)),
            "timestamp_ms": batch.timestamp_ms[rows],
            "reason": words(decision, REASONS),
        }
        return tables.frame_of(columns, batch)

    def words(self) -> list[str]:
        """The change as sentences."""
        c, noun = self.counts(), self.before.plan.windows.noun
        said = [
            f"From {self.before.plan.windows.in_words()} to {self.after.plan.windows.in_words()}: "
            f"{plural(c['records_gained'], 'record')} gained, {c['records_lost']:,} lost.",
        ]
        told = [
            f"{c[CHANGED]:,} changed",
            *([f"{c['split_before']:,} split into {c['split_after']:,}"] if c[SPLIT] else []),
            *([f"{c['joined_before']:,} joined into {c['joined_after']:,}"] if c[JOINED] else []),
            *([f"{c['regrouped_before']:,} regrouped as {c['regrouped_after']:,}"] if c[REGROUPED] else []),
            f"{c[LOST]:,} lost, {c[GAINED]:,} gained",
        ]
        return [*said, f"Of the {noun}s {c[SAME]:,} stay as they are; {', '.join(told)}."]

    def figure(self, *, theme: Theme | None = None, most: int = 8) -> go.Figure:
        """The windows of the keys that change most, with those before above those after."""
        from sessionkit.views.charts.comparison import comparison_figure

        return comparison_figure(self, theme=theme, most=most)

    def __repr__(self) -> str:
        return " ".join(self.words())

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return picture_bundle(self.figure(), repr(self))

    # ---- how it is found

    @cached_property
    def groups(self) -> list[Group]:
        """Every window of both runs in one group."""
        return list(_GROUPS[type(self.before.trace)](self))

    @cached_property
    def _accepted(self) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        return self.before.trace.accepted, self.after.trace.accepted

    def _groups_by_records(self) -> Iterator[Group]:
        """Sessions hang together where they share a record."""
        kept, keeps = self._accepted
        both = kept & keeps
        sides = [run.trace.survivor for run in (self.before, self.after)]
        pairs = np.unique(np.stack([side[both] for side in sides]), axis=1)
        alive = [np.unique(side[mask]) for side, mask in zip(sides, (kept, keeps), strict=True)]
        label = _components(pairs, len(self.before.outcome.window_columns.key))
        groups: dict[int, tuple[list[int], list[int]]] = {}
        for row in alive[0].tolist():
            groups.setdefault(label.get((0, row), -1 - row), ([], []))[0].append(row)
        lone = -1 - len(self.before.outcome.window_columns.key)
        for row in alive[1].tolist():
            groups.setdefault(label.get((1, row), lone - row), ([], []))[1].append(row)
        differing = self._differing_records
        for before, after in groups.values():
            yield Group(self._what(before, after, differing), tuple(before), tuple(after))

    @cached_property
    def _differing_records(self) -> tuple[set[int], set[int]]:
        """Rows of the windows on each side that hold a record which the other run drops."""
        kept, keeps = self._accepted
        return (
            set(self.before.trace.survivor[kept & ~keeps].tolist()),
            set(self.after.trace.survivor[~kept & keeps].tolist()),
        )

    def _what(self, before: list[int], after: list[int], differing: tuple[set[int], set[int]]) -> str:
        if not after:
            return LOST
        if not before:
            return GAINED
        if len(before) == len(after) == 1:
            is_same = (
                self._is_same(before[0], after[0]) and before[0] not in differing[0] and after[0] not in differing[1]
            )
            return SAME if is_same else CHANGED
        if len(before) == 1:
            return SPLIT
        return JOINED if len(after) == 1 else REGROUPED

    def _groups_by_place(self) -> Iterator[Group]:
        """Time and sliding windows are known by partition, key and bounds."""
        sides = [
            {place: row for row, place in enumerate(zip(*(column.tolist() for column in _places(run)), strict=True))}
            for run in (self.before, self.after)
        ]
        for place, row in sides[0].items():
            other = sides[1].get(place)
            if other is None:
                yield Group(LOST, (row,), ())
            else:
                yield Group(SAME if self._is_same(row, other) else CHANGED, (row,), (other,))
        yield from (Group(GAINED, (), (row,)) for place, row in sides[1].items() if place not in sides[0])

    def _is_same(self, before: int, after: int) -> bool:
        """True if bounds and results are the same."""
        one, other = self.before.outcome.window_columns, self.after.outcome.window_columns
        if (one.start_ms[before], one.end_ms[before]) != (other.start_ms[after], other.end_ms[after]):
            return False
        return all(
            tables.are_equal(values[before], self._results[1][name][after]) for name, values in self._results[0].items()
        )

    @cached_property
    def _results(self) -> list[dict[str, list[Any]]]:
        found = []
        for run in (self.before, self.after):
            rows = np.arange(len(run.outcome.window_columns.key))
            columns = {name: fold.results(rows) for name, fold in run.outcome.folds.items()}
            found.append({n: c.to_pylist() if isinstance(c, pa.Array) else c.tolist() for n, c in columns.items()})
        shared = found[0].keys() & found[1].keys()
        return [{name: side[name] for name in shared} for side in found]

    @property
    def newest_ms(self) -> int:
        """The last event time of all records."""
        return int(self.before.outcome.batch.timestamp_ms.max(initial=0))

    def bounds(self, side: int, group: Group) -> list[tuple[int, int]]:
        """(start, end) of the group's windows before (0) or after (1)."""
        columns = (self.before, self.after)[side].outcome.window_columns
        rows = group.before if side == 0 else group.after
        return sorted((int(columns.start_ms[row]), int(columns.end_ms[row])) for row in rows)

    def _place(self, group: Group) -> tuple[int, str, int]:
        run, row = (self.before, group.before[0]) if group.before else (self.after, group.after[0])
        columns = run.outcome.window_columns
        start = min(start for start, _ in (*self.bounds(0, group), *self.bounds(1, group)))
        return int(run.outcome.batch.partitions[columns.partition[row]]), str(self.key_of(group)), start

    def key_of(self, group: Group) -> Any:
        """The key of a group's windows."""
        run, row = (self.before, group.before[0]) if group.before else (self.after, group.after[0])
        return run.outcome.keys[int(run.outcome.window_columns.key[row])].as_py()


_BOUNDS = pa.list_(pa.list_(pa.int64()))
_SHOWN = {name: name.removesuffix("_ms") for name in ("start_ms", "end_ms", "before_bounds_ms", "after_bounds_ms")}
# What makes windows of two runs belong together: the records that sessions share, or the same place.
_GROUPS: dict[type[Trace], Callable[[Comparison], Iterator[Group]]] = {
    SessionTrace: Comparison._groups_by_records,
    WindowTrace: Comparison._groups_by_place,
}


def compare(before: Run, after: Run) -> Comparison:
    """The comparison of two runs over the same records.

    Raises:
        InvalidArgument: the records are not the same, the windows are of different kinds, or it is a run on Spark.
    """
    if not hasattr(after, "outcome"):
        want = "another run in this process, such as run.local(0) of a run on Spark"
        raise InvalidArgument(problem("compare takes local runs", type(after).__name__, want))
    differing = _difference(before.outcome.batch, after.outcome.batch)
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
        counts = len(np.unique(here)), len(np.unique(there))
        if counts[0] != counts[1]:
            return f"the records in {plural(counts[0], 'partition')} and in {counts[1]:,}"
        return f"{_how_many(here != there)} in another partition"
    if not one.keys.equals(other.keys) or not np.array_equal(one.key, other.key):
        names = [np.array([*batch.keys.to_pylist(), None], object)[batch.key] for batch in (one, other)]
        return f"{_how_many(names[0] != names[1])} with another key"
    if not np.array_equal(one.timestamp_ms, other.timestamp_ms):
        return f"{_how_many(one.timestamp_ms != other.timestamp_ms)} with another time"
    return ""


def _how_many(differs: npt.NDArray[np.bool_]) -> str:
    return f"{np.count_nonzero(differs):,} of {plural(len(differs), 'record')}"


def _places(run: Run) -> list[npt.NDArray[np.signedinteger[Any]]]:
    columns = run.outcome.window_columns
    partition = run.outcome.batch.partitions[columns.partition]
    return [partition, columns.key, columns.start_ms, columns.end_ms]


def _components(pairs: npt.NDArray[np.int64], shift: int) -> dict[tuple[int, int], int]:
    """A label for each (side, row): rows that pairs tie together share one."""
    parent: dict[int, int] = {}

    def root(node: int) -> int:
        while parent.setdefault(node, node) != node:
            parent[node] = node = parent[parent[node]]
        return node

    for before, after in pairs.T.tolist():
        parent[root(before)] = root(shift + after)
    return {(int(node >= shift), node - shift if node >= shift else node): root(node) for node in list(parent)}
