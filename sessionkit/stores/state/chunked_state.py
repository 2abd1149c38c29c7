"""A state that is written down as it changes: a log of chunks, the oldest written anew when much is gone."""

from __future__ import annotations

import io
import json
import uuid
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from sessionkit.base.arrays import Longs
from sessionkit.base.text import plural
from sessionkit.errors import StoreCorrupted, errors_as, problem
from sessionkit.records.frames import python_objects
from sessionkit.stores.contract import COLUMNS, SessionColumns, Snapshot, StoredColumns
from sessionkit.stores.state.column_state import ColumnState
from sessionkit.stores.typed_bytes import pack_value, unpack_value

FORMAT = 1
CHUNK_ROWS = 65_536  # so that the oldest chunk can be written anew without a pause
MOST_CHUNKS = 32  # that are not full: a log of many small ones takes long to read
MOVED_ROWS = 16_384  # rows that are written anew at a time, at least, when that is due
_UNWRITTEN = -1
_NUMBERS = ("start_ms", "length_ms", "opened_by", "closed_by")
_ROWS = "rows"  # left out where no window knows them
_AGGREGATE = "result "  # before the names of aggregations
_PACKED = {b"sessionkit": b"packed"}  # the values of a Python function, as the stores write them
_SMALL = pa.ipc.IpcWriteOptions(compression="zstd")


class Chunk(NamedTuple):
    """Rows that were written together, and which rows of older chunks are gone since."""

    number: int
    rows: bytes
    gone: bytes


class Change(NamedTuple):
    """A change of the log: what it has to write down, and what it may forget."""

    written: tuple[Chunk, ...]
    forgotten: tuple[int, ...]  # numbers of chunks


class ChunkedState(ColumnState):
    """The windows of one partition, and in which chunk of its log each was written.

    Chunks are read again in the order of their numbers, and forgotten from the oldest on: so where rows are gone has
    only to be known of chunks that are older than the one that says so.
    """

    def __init__(self, of: str, partition: int) -> None:
        super().__init__(of)
        self.partition = partition
        self._chunk: Longs = np.empty(0, np.int64)
        self._row: Longs = np.empty(0, np.int64)
        self._gone: list[Longs] = []  # rows of chunks that are gone since the last seal, as (chunk, row)
        self._written: dict[int, int] = {}  # how many rows were written into each chunk, the oldest first
        self._next = 0

    # ---- changes

    def commit(self, removes: StoredColumns, puts: StoredColumns, snapshots: Mapping[int, Snapshot]) -> None:
        gone, stays = self._loaded & (self._chunk != _UNWRITTEN), ~self._loaded
        self._gone.append(np.stack([self._chunk[gone], self._row[gone]]))
        super().commit(removes, puts, snapshots)
        new = np.full(len(puts.start_ms), _UNWRITTEN)
        self._chunk, self._row = np.append(self._chunk[stays], new), np.append(self._row[stays], new)

    def replace(self, rows: Longs, columns: StoredColumns, snapshot: Snapshot) -> None:
        """Takes these in the place of all: row `rows[j]` as it was, or where that is -1 one that is to be written."""
        gone = np.isin(np.arange(len(self)), rows, invert=True) & (self._chunk != _UNWRITTEN)
        self._gone.append(np.stack([self._chunk[gone], self._row[gone]]))
        self._chunk, self._row = (np.append(each, _UNWRITTEN)[rows] for each in (self._chunk, self._row))
        self._loaded = np.zeros(len(rows), np.bool_)
        self._held, self.snapshots = columns, {self.partition: snapshot}

    def seal(self) -> Change:
        """The changes since the last time, to be written down."""
        forgotten = self._doomed()
        moves = (self._chunk == _UNWRITTEN) | np.isin(self._chunk, forgotten)
        gone = np.concatenate([np.empty((2, 0), np.int64), *self._gone], axis=1)
        gone = gone[:, ~np.isin(gone[0], forgotten)]
        rows = np.flatnonzero(moves)
        self._gone = []
        for number in forgotten:
            del self._written[number]
        chunk, row, written = self._chunk.copy(), self._row.copy(), []
        for begin in range(0, len(rows) if not gone.size else max(len(rows), 1), CHUNK_ROWS):
            part = rows[begin : begin + CHUNK_ROWS]
            number, self._next = self._next, self._next + 1
            chunk[part], row[part] = number, np.arange(len(part))
            self._written[number] = len(part)
            rows_of_part = pa.table({}) if self._held is None else windows_table(self._held.take(part))
            lost = pa.table({"chunk": gone[0], "row": gone[1]})
            written.append(Chunk(number, _to_bytes(rows_of_part), _to_bytes(lost)))
            gone = gone[:, :0]
        self._chunk, self._row = chunk, row
        return Change(tuple(written), tuple(forgotten))

    def _doomed(self) -> list[int]:
        """The oldest chunks that are to be written anew: when a third of all is gone, or there are too many."""
        new = int((self._chunk == _UNWRITTEN).sum())
        numbers, counts = np.unique(self._chunk, return_counts=True)
        live = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
        stored, budget = sum(self._written.values()), max(new, MOVED_ROWS)
        doomed: list[int] = []
        most = MOST_CHUNKS + 2 * len(self) // CHUNK_ROWS
        for number, rows in self._written.items():
            is_due = stored + new > len(self) + len(self) // 2 + MOVED_ROWS or len(self._written) - len(doomed) >= most
            budget -= live.get(number, 0)
            if not is_due or (budget < 0 and doomed):
                break
            stored -= rows - live.get(number, 0)
            doomed.append(number)
        return doomed

    def token(self) -> str:
        """A new name for what was sealed, of 32 characters, and then a sum of which chunks it has."""
        return uuid.uuid4().hex + sum_of_chunks(self._written)

    # ---- reading the log again

    @classmethod
    def read(
        cls, of: str, partition: int, chunks: Iterable[Chunk], snapshot: Snapshot, *, windows: int = -1, token: str = ""
    ) -> ChunkedState:
        """The state that these chunks hold: so many windows, and the chunks of its token, if that is known."""
        state = cls(of, partition)
        parts: list[pa.Table] = []
        gone, chunk, row = [np.empty((2, 0), np.int64)], [state._chunk], [state._row]
        for each in sorted(chunks):
            part = _of_bytes(each.rows)
            parts.append(part)
            gone.append(np.stack([column.to_numpy() for column in _of_bytes(each.gone).columns]))
            chunk.append(np.full(part.num_rows, each.number))
            row.append(np.arange(part.num_rows))
            state._written[each.number], state._next = part.num_rows, each.number + 1
        state._chunk, state._row = np.concatenate(chunk), np.concatenate(row)
        rows = [part for part in parts if part.num_columns]
        if rows:
            state._held = windows_of(pa.concat_tables(rows, promote_options="default"), of, partition)
        state._drop(np.concatenate(gone, axis=1))
        state.snapshots = {partition: snapshot}
        if windows not in (-1, len(state)) or token[32:] not in ("", sum_of_chunks(state._written)):
            got = f"{plural(len(state), 'window')} of partition {partition} in {plural(len(parts), 'chunk')}"
            got += "" if windows in (-1, len(state)) else f", where {windows:,} were written"
            raise StoreCorrupted(problem("a state is incomplete", got, "the chunks that were written with it"))
        return state

    def _drop(self, gone: Longs) -> None:
        """Takes out the rows that the log says are gone; those of forgotten chunks went with them."""
        numbers, sizes = np.array([*self._written], np.int64), np.array([*self._written.values()], np.int64)
        at = np.searchsorted(numbers, gone[0])
        known = np.isin(gone[0], numbers)
        at, row = at[known], gone[1][known]
        if (row < 0).any() or (row >= sizes[at]).any():
            raise StoreCorrupted(problem("a state names rows that none of its chunks has", len(row), "its own chunks"))
        stays = np.ones(len(self), np.bool_)
        stays[(np.cumsum(sizes) - sizes)[at] + row] = False
        if self._held is not None:
            self._held = self._held.take(np.flatnonzero(stays))
        self._chunk, self._row = self._chunk[stays], self._row[stays]
        self._loaded = np.zeros(len(self), np.bool_)

    def to_table(self) -> pa.Table:
        """The windows as a table to look at: partition, key, bounds, and each accumulator by its name."""
        windows = self._held
        if windows is None:
            return pa.table({})
        last = "window_end_ms" if isinstance(windows, SessionColumns) else "timestamp_ms"
        numbers = {"window_start_ms": windows.start_ms, last: windows.timestamp_ms}
        aggregates = {
            name: column if isinstance(column, pa.Array) else pa.array(list(map(repr, column)), pa.string())
            for name, column in windows.aggregates.items()
        }
        return pa.table({"partition": windows.partition, "key": windows.key, **numbers, **aggregates})

    # ---- the whole state at once, for a process that goes on with it on this machine

    def save(self, sink: io.RawIOBase | pa.NativeFile) -> None:
        """Writes all of it, so that it can be used without being read; OSError where there is no room."""
        table = pa.table({}) if self._held is None else windows_table(self._held)
        facts = {
            "written": list(self._written.items()),
            "next": self._next,
            "snapshot": self.snapshot(self.partition).noted(),
        }
        metadata = {**(table.schema.metadata or {}), b"facts": json.dumps(facts).encode()}
        table = table.append_column("chunk", pa.array(self._chunk)).append_column("row", pa.array(self._row))
        table = table.replace_schema_metadata(metadata)
        with pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)

    @classmethod
    def opened(cls, of: str, partition: int, saved: pa.Buffer) -> ChunkedState:
        """The state that `save` wrote, used as it lies there: the caller has checked that it is whole."""
        state = cls(of, partition)
        table = pa.ipc.open_file(saved).read_all()
        facts = json.loads(table.schema.metadata[b"facts"])
        state._chunk, state._row = table["chunk"].to_numpy(), table["row"].to_numpy()
        table = table.drop_columns(["chunk", "row"])
        state._held = windows_of(table, of, partition) if table.num_columns else None
        state._loaded = np.zeros(len(state), np.bool_)
        state._written, state._next = dict(facts["written"]), facts["next"]
        state.snapshots = {partition: Snapshot(*facts["snapshot"])}
        return state


def sum_of_chunks(numbers: Iterable[int]) -> str:
    """A checksum of the chunks' numbers, which shows if one was lost; tokens of older versions lack it."""
    return f"{zlib.crc32(repr(sorted(numbers)).encode()):08x}"


def windows_table(columns: StoredColumns) -> pa.Table:
    """Windows of one partition as a table; lengths in place of ends, as they take less room."""
    lengths = columns.timestamp_ms - columns.start_ms
    numbers = zip(_NUMBERS, (columns.start_ms, lengths, columns.opened_by, columns.closed_by), strict=True)
    found = {"key": columns.key, **{name: pa.array(column) for name, column in numbers}}
    if columns.rows is not None:
        found[_ROWS] = pa.array(columns.rows)
    fields = [pa.field(name, column.type) for name, column in found.items()]
    for name, column in columns.aggregates.items():
        metadata = None if isinstance(column, pa.Array) else _PACKED
        if not isinstance(column, pa.Array):
            column = pa.array([pack_value(value) for value in column], pa.large_binary())
        fields.append(pa.field(_AGGREGATE + name, column.type, metadata=metadata))
        found[_AGGREGATE + name] = column
    return pa.Table.from_arrays([*found.values()], schema=pa.schema(fields, {b"format": str(FORMAT).encode()}))


def windows_of(table: pa.Table, of: str, partition: int) -> StoredColumns:
    """The windows in a table that `windows_table` made; StoreCorrupted where it is of another format."""
    found = (table.schema.metadata or {}).get(b"format", b"none").decode()
    if found != str(FORMAT):
        raise StoreCorrupted(problem("a state is of another format", found, f"{FORMAT}, as this version writes"))
    table = table.combine_chunks()
    start_ms, length_ms, opened_by, closed_by = (table[name].to_numpy() for name in _NUMBERS)
    aggregates: dict[str, Any] = {}
    for field in table.schema:
        if field.name.startswith(_AGGREGATE):
            column = _one(table[field.name])
            if field.metadata == _PACKED:
                column = python_objects([unpack_value(raw) for raw in column.to_pylist()])
            aggregates[field.name.removeprefix(_AGGREGATE)] = column
    partitions = np.full(len(start_ms), partition)
    rows = table[_ROWS].fill_null(-1).to_numpy() if _ROWS in table.column_names else None
    return COLUMNS[of](
        _one(table["key"]), partitions, start_ms, start_ms + length_ms, opened_by, closed_by, aggregates, rows
    )


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks or [pa.array([], column.type)])


def _to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_SMALL) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _of_bytes(raw: bytes) -> pa.Table:
    causes = (pa.ArrowException, OSError)
    with errors_as(StoreCorrupted, "a chunk of a state cannot be read", "a chunk as it was written", causes):
        return pa.ipc.open_stream(raw).read_all()
