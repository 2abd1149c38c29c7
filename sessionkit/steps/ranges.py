"""Rows of files by ranges of keys, and those of one key by ranges of time: each fits into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc

from sessionkit.base.arrays import Codes, Longs, arrow_array, numpy_array
from sessionkit.base.process import check_room
from sessionkit.records.keys import key_ranks, keys_in
from sessionkit.records.row_names import rows_named
from sessionkit.records.source import Source
from sessionkit.records.times import to_milliseconds

PART_ROWS = 4_000_000  # that are looked at together
STEP_ROWS = 1_000_000  # that are read and written together
MOST_RANGES = 64  # whose files are written side by side
ROW_BYTES = 150  # that a row takes while its part is looked at
ROW = "sessionkit row"  # a column of row numbers; no user names one so
_SAMPLE = 16_384  # rows that show which ranges there should be
_EARLIEST_MS = 2**62  # added to times, so that none is negative: as bytes, negative numbers come last


class Ranges:
    """Rows, which go to a file for each range until its turn comes.

    Args:
        schema: of the rows with their numbers.
        writing: around what writes to the folder.
    """

    def __init__(
        self, source: Source, schema: pa.Schema, folder: Path, writing: Callable[[], AbstractContextManager[None]]
    ) -> None:
        self._source, self._schema, self._folder, self._writing, self._files = source, schema, folder, writing, 0
        # to know what goes on takes one order of time for all rows of a key
        self._levels = len(source.keys) + (source.partition is None)

    def parts(
        self,
        tables: Iterator[pa.Table],
        rows: int | None,
        *,
        sample: pa.Table | None = None,
        level: int = 0,
        goes_on: bool = False,
    ) -> Iterator[tuple[pa.Table, bool]]:
        """Tables of moderate size, each with all rows of its keys; or, if true is beside it, without the later ones.

        The keys of a table follow those of the one before, in the order of their bytes.

        Args:
            rows: how many there are, if that is known.
            sample: of the rows; None: the first ones.
            level: the place of the key column that tells ranges apart, and behind the last one time: in the columns
                before it all rows have the same.
            goes_on: rows of the same key come later than all of these.
        """
        held: list[pa.Table] = []
        for table in tables:
            held.append(table)
            found = sum(map(len, held))
            if found > PART_ROWS and level < self._levels:
                break
            check_room(found, ROW_BYTES, "rows that cannot be told apart", "rows whose keys or times differ")
        else:
            if held:
                yield pa.concat_tables(each.cast(self._schema) for each in held), goes_on
            return
        sample = pa.concat_tables(held) if sample is None else sample
        most = MOST_RANGES if rows is None else min(MOST_RANGES, max(2, 2 * rows // PART_ROWS))
        bounds = _Bounds(*self._values(sample, level), most)
        files = [self._file() for _ in bounds.is_one]
        for table in chain(held, tables):
            self._share(table, bounds.numbers(*self._values(table, level)), files)
        held.clear()
        filled = [place for place, file in enumerate(files) if file.rows]
        for place in filled:
            file, more = files[place], goes_on or (level == len(self._source.keys) and place < filled[-1])
            with self._writing():
                file.close()
            if place == 0:  # without a key or a time: in no session
                yield from ((table, more) for table in file.tables())
            else:
                deeper = level + bounds.is_one[place]
                yield from self.parts(file.tables(), file.rows, sample=file.sample(), level=deeper, goes_on=more)
            file.path.unlink()

    def _values(self, table: pa.Table, level: int) -> tuple[pa.Array, Codes]:
        """(distinct values, code of each row; -1 for a missing one) of the column that tells ranges apart."""
        source = self._source
        if level < len(source.keys):
            return keys_in(table, (source.keys[level],), None)
        with rows_named(lambda place: f"row {table[ROW][place]}"):
            time_ms, bad = to_milliseconds(table[source.timestamp], source)
        coded = arrow_array(time_ms + _EARLIEST_MS, bad).dictionary_encode()
        return coded.dictionary, numpy_array(coded.indices, absent=-1)

    def _file(self) -> _File:
        self._files += 1
        return _File(self._folder / f"{self._files}.arrow", self._schema)

    def _share(self, table: pa.Table, number: Longs, files: list[_File]) -> None:
        order = np.argsort(number, kind="stable")
        ordered = table.cast(self._schema).take(arrow_array(order))
        ends = np.searchsorted(number[order], np.arange(len(files) + 1)).tolist()
        with self._writing():
            for file, (begin, end) in zip(files, pairwise(ends), strict=True):
                file.add(ordered.slice(begin, end - begin))


class _Bounds:
    """Where ranges of values begin that about equally many rows have. A value that many rows have is one by itself."""

    def __init__(self, values: pa.Array, code: Codes, most: int) -> None:
        rank = key_ranks(values)
        own = np.sort(rank[code[code >= 0]])
        each, rows = np.unique(own, return_counts=True)
        is_alone = rows * most > len(own)
        begins = is_alone | np.isin(each, own[len(own) * np.arange(1, most) // most] if len(own) else own)
        self._begins, self._is_alone = values.take(arrow_array(np.argsort(rank)[each[begins]])), is_alone[begins]
        # of each range, whether it is one value: that of no value, what comes before the first that begins one, what
        # begins with each of these, and what comes after each that is by itself
        after = chain.from_iterable([True, False] if alone else [False] for alone in self._is_alone)
        self.is_one = [False, False, *after]

    def numbers(self, values: pa.Array, code: Codes) -> Longs:
        """The range of each row."""
        both = pa.concat_arrays([self._begins, values]).dictionary_encode()
        rank = 2 * key_ranks(both.dictionary)[numpy_array(both.indices)]
        begins = rank[: len(self._begins)]
        bounds = np.sort(np.append(begins, begins[self._is_alone] + 2))
        return np.append(1 + np.searchsorted(bounds, rank[len(begins) :] + 1), 0)[code]


class _File:
    """Rows that are kept."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path, self.rows, self._schema = path, 0, schema
        self._writer: Any = None

    def add(self, table: pa.Table) -> None:
        if len(table):
            self._writer = self._writer or ipc.new_file(self.path, self._schema)
            self._writer.write_table(table)
            self.rows += len(table)

    def close(self) -> None:
        self._writer.close()

    def tables(self) -> Iterator[pa.Table]:
        """All rows, about `STEP_ROWS` at a time."""
        held: list[pa.RecordBatch] = []
        for batch in batches_of(self.path):
            held.append(batch)
            if sum(each.num_rows for each in held) >= STEP_ROWS:
                yield pa.Table.from_batches(held)
                held = []
        if held:
            yield pa.Table.from_batches(held)

    def sample(self) -> pa.Table:
        """Some of them, from everywhere."""
        every = max(1, self.rows // _SAMPLE)
        return pa.Table.from_batches(
            each.take(arrow_array(np.arange(0, each.num_rows, every))) for each in batches_of(self.path)
        )


def batches_of(path: Path) -> Iterator[pa.RecordBatch]:
    """What a file holds, which is read as it is wanted."""
    reader = ipc.open_file(pa.memory_map(str(path)))
    return map(reader.get_batch, range(reader.num_record_batches))
