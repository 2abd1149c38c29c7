"""What each record is to a reader: the column that a plan names as its label. It decides nothing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from sessionkit.base.arrays import arrow_array
from sessionkit.base.text import OF_ALL, key_name
from sessionkit.errors import attempted
from sessionkit.records.inputs.plain_columns import check_text

if TYPE_CHECKING:
    from sessionkit.records.batch import RecordBatch

LABEL_LETTERS = 24  # of a label among other words


class Labels(NamedTuple):
    """The label of each record, in its own type; no column where the plan names none."""

    column: Any = None  # a pa.ChunkedArray

    @classmethod
    def of(cls, table: Any, name: str) -> Labels:
        """The labels in the column of this name."""
        check_text(table[name], name)
        return cls(table[name])

    def at(self, rows: Any) -> Labels:
        """The labels of these rows: a slice, or places in any order."""
        if self.column is None:
            return self
        return Labels(self.column[rows] if isinstance(rows, slice) else self.column.take(arrow_array(rows)))

    def words(self, row: int) -> str:
        """The label of a record in one short line, not escaped; "" if it has none."""
        label = None if self.column is None else attempted(self.column[row].as_py, but=(ValueError, OverflowError))
        return "" if label is None else key_name(label, LABEL_LETTERS)

    def quoted(self, row: int) -> str:
        """The label of a record in quotation marks, not escaped; "" if it has none."""
        return f"“{words}”" if (words := self.words(row)) else ""

    def steps(self, rows: list[int], pauses: list[str]) -> Iterator[tuple[str, int]]:
        """(words, how many records) for each step: equal labels in a row are one; (the pause, 0) stands between them.

        `pauses` are the words for the pause before each record, "" where none is said. A missing label is a dash.
        """
        told = zip(accumulate(map(bool, pauses)), rows, pauses, strict=True)
        for _, alike in groupby(told, lambda each: (each[0], self.column[each[1]])):
            (_, row, pause), *more = alike
            yield from [(pause, 0)] if pause else []
            yield (self.words(row) or "–") + (f" ×{len(more) + 1:,}" if more else ""), len(more) + 1


NO_LABELS = Labels()


def record_name(batch: RecordBatch, row: int, told: str | None = None) -> str:
    """A record by its offset, in the middle of a sentence; where rows were sorted by time, by its row, too.

    `told` is what else is said of it, in brackets, beside its label; without it, its key.
    """
    key = batch.key_at(row)
    number = f"{batch.offset[row]}" if batch.row is None else f"{batch.offset[row]:,} in order of time"
    place = "" if batch.row is None else f"row {batch.row[row]:,} of the data"
    partition = f"partition {batch.partitions[batch.partition[row]]}" if len(batch.partitions) > 1 else ""
    told = told if told is not None else "no key" if key is None else "" if key == OF_ALL else f"key {key_name(key)}"
    brackets = ", ".join(filter(None, (batch.labels.quoted(row), place, partition, told)))
    return f"record {number} ({brackets})" if brackets else f"record {number}"
