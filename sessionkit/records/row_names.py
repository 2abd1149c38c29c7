"""Words on rows: their names in errors, which are numbers unless only a part of them is at hand; what some lack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Codes, Flags, Longs, Rows
from sessionkit.base.text import plural
from sessionkit.errors import shorten
from sessionkit.records.source import Source

_NAME: ContextVar[Callable[[int], str]] = ContextVar("row_name", default="row {}".format)


def row_name(row: int) -> str:
    """The name of a row at hand in an error: "row 17", or "partition 2, offset 4403"."""
    return _NAME.get()(row)


def counted_rows(mask: Flags) -> str:
    """How many rows the mask has, and which: "2 (rows 3, 9)", or "2 (the first: partition 2, offset 4403)"."""
    rows = np.flatnonzero(mask).tolist()
    if rows and row_name(rows[0]) != f"row {rows[0]}":
        return f"{len(rows):,} ({'the first: ' if len(rows) > 1 else ''}{row_name(rows[0])})"
    return f"{len(rows):,} (rows {', '.join(map(str, rows[:3]))}{', …' if len(rows) > 3 else ''})"


@contextmanager
def rows_named(name: Callable[[int], str]) -> Iterator[None]:
    """Has errors call a row what `name` says, as their readers do not know the number that the row has here."""
    token = _NAME.set(name)
    try:
        yield
    finally:
        _NAME.reset(token)


@contextmanager
def rows_moved(order: Rows | None) -> Iterator[None]:
    """Has errors call each row by the name of the row that `order` moved to its place; None moves nothing."""
    before = _NAME.get()
    with rows_named(before if order is None else lambda row: before(int(order[row]))):
        yield


@contextmanager
def rows_by_place(table: pa.Table, source: Source, offset: str | None) -> Iterator[None]:
    """Has errors call a row of the table by its partition and offset, or else by its key."""

    def name(row: int) -> str:
        if source.partition is not None and offset is not None:
            return f"partition {table[source.partition][row]}, offset {table[offset][row]}"
        named = ", ".join(f"{key} {shorten(repr(table[key][row].as_py()))}" for key in source.keys)
        return f"a row of {named}" if named else "a row"

    with rows_named(name):
        yield


def lacking_remarks(
    counts: Mapping[int, int], records: int, causes: Mapping[int, tuple[str, Iterable[str | None]]]
) -> list[str]:
    """A sentence on each cause for which some records are rejected: what they lack, in which columns, and how many."""
    return [
        f"{counts[code]:,} of {plural(records, 'record')} {'has' if counts[code] == 1 else 'have'} no {what} "
        f"({', '.join(shorten(repr(name)) for name in names)}) and {'is' if counts[code] == 1 else 'are'} in no window."
        for code, (what, names) in causes.items()
        if counts.get(code)
    ]


def arrival_remarks(arrival_ms: Longs | None, partition: Codes, source: Source) -> list[str]:
    """A sentence if more than one row of a hundred arrived before the row ahead of it in its partition."""
    if arrival_ms is None or source.offset is not None:
        return []
    order, name = np.argsort(partition, kind="stable"), repr(source.arrival)
    back = (np.diff(arrival_ms[order]) < 0) & (np.diff(partition[order]) == 0)
    said = f"The rows do not stand in the order of {name}: df.sort_values({name}) puts them as they arrived."
    return [said] if 100 * np.count_nonzero(back) > len(order) else []
