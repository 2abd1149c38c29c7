"""Records of any length, read a step at a time: what a plan reads, and what it needs all records at once for."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeVar

import numpy as np
import pyarrow as pa

from sessionkit.base.decisions import NULL_VALUE
from sessionkit.base.process import handing_over
from sessionkit.errors import NotBuilt, problem
from sessionkit.records.batch import RecordBatch, batch_of, without_null_values
from sessionkit.records.inputs.opened import Opened
from sessionkit.records.inputs.pieces import Pieces
from sessionkit.records.loops import first_not_rising
from sessionkit.records.places import FROM_A_SOURCE, not_after
from sessionkit.records.row_names import lacking_remarks, rows_named
from sessionkit.records.source import Source
from sessionkit.windows.contract import WindowKind

Item = TypeVar("Item")
STEP_BYTES = 256 * 2**20  # wide values make a step smaller, not the memory larger
STEP_RECORDS = 2_000_000
_COUNTED = re.compile(r"\d records?\b")  # a remark on a piece that says how many: they are counted for all


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a plan reads, in pieces."""

    source: Source
    windows: WindowKind
    value_columns: tuple[str, ...]
    pieces: Pieces

    def batches(self, first: int, most: int) -> Iterator[tuple[pa.Table, RecordBatch]]:
        """The records from the row `first` on, about `most` at a time, as they came and as they are inside."""
        for opened in gathered(self.pieces.read(first, most), most):
            yield opened.table, self.read(opened, first)
            first += len(opened.table)

    def read(self, opened: Opened, first: int) -> RecordBatch:
        """The records of a piece, of which the first has this row of the data."""
        with rows_named(lambda row: f"row {first + row}"):
            batch = batch_of(opened, self.source, self.value_columns, "arrow")
        return batch if self.windows.takes_null_values else without_null_values(batch)

    @cached_property
    def none(self) -> RecordBatch:
        """No records, with all that the pieces have in common."""
        return self.read(self.pieces.head, 0)

    def lacking(self, counts: Mapping[int, int], records: int) -> list[str]:
        """The remarks on so many of the records that lack a key, a time or a value, by their reasons."""
        causes = self.source.lacks
        if not self.windows.takes_null_values:
            causes[NULL_VALUE] = ("value", self.value_columns)
        return lacking_remarks(counts, records, causes)


def add_remarks(remarks: list[str], batch: RecordBatch) -> None:
    """Adds what is new of the remarks on a piece, but for those that count its records."""
    remarks += [each for each in batch.remarks if each not in remarks and not _COUNTED.search(each)]


def check_rising(batch: RecordBatch, read: dict[int, int]) -> None:
    """Raises `InvalidData` if offsets are not behind those that were `read` of their partitions; moves these on."""
    if batch.given_offset is None:
        return
    last = np.array([read.get(number, -1) for number in batch.partitions.tolist()], np.int64)
    row, before = first_not_rising(batch.partition, batch.given_offset, last)
    if row >= 0:
        number, offset = int(batch.partitions[batch.partition[row]]), int(batch.given_offset[row])
        raise not_after(number, offset, int(before), want=FROM_A_SOURCE)
    read.update(zip(batch.partitions.tolist(), last.tolist(), strict=True))


def needs_all(source: Source) -> dict[str, str]:
    """What this plan asks of its records that takes all of them at once, each with the way without it."""
    order = "no sort=, and rows sorted before: by df.sort_values, or a database's COPY (SELECT … ORDER BY …) TO …"
    asked = {
        f"sort={source.sort!r}": (source.sort, order),
        "ambiguous='infer'": (source.ambiguous == "infer", 'ambiguous="earliest" or "latest"'),
        f"on_bad_time={source.on_bad_time!r}": (source.on_bad_time == "partition_time", 'on_bad_time="drop"'),
        f"idle_after={source.idle_after!r}": (source.idle_after is not None, "a plan without idle_after="),
    }
    return {got: way for got, (is_asked, way) in asked.items() if is_asked}


def check_source(source: Source, what: str = "write", other: str = "plan.run") -> None:
    """Refuses what takes all records at once, with the way (`NotBuilt`), or the `other` call."""
    for got, way in needs_all(source).items():
        raise NotBuilt(problem(f"{what} looks at a part of the records at a time", got, f"{way}; or {other}"))


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The items, each made in a second thread while the one before is at work."""
    with handing_over() as hand:
        following = hand(partial(next, items, None))
        while (item := following()) is not None:
            following = hand(partial(next, items, None))
            yield item


def gathered(pieces: Iterator[Opened], most: int) -> Iterator[Opened]:
    """Pieces of about `most` records, or of as many bytes as a step has: small ones joined, large ones cut."""
    held: list[Opened] = []

    def joined() -> Opened:
        return dataclasses.replace(held[0], table=pa.concat_tables([each.table for each in held]))

    for piece in pieces:
        a_row = max(1, piece.table.nbytes // max(1, len(piece.table)))
        size = max(1, min(most, STEP_BYTES // a_row))
        for at in range(0, len(piece.table), size):
            part = dataclasses.replace(piece, table=piece.table.slice(at, size))
            rows = sum(len(each.table) for each in held)
            if held and (rows + len(part.table) > size or held[0].table.schema != part.table.schema):
                yield joined()
                held = []
            held.append(part)
    if held:
        yield joined()
