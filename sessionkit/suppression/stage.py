"""Suppress over the columns of a changelog: what waits in it, and what goes out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Column, Flags, Longs, joined, repeated, taken
from sessionkit.base.compiled import compiled_loop
from sessionkit.base.durations import INT64_MAX
from sessionkit.base.text import plural
from sessionkit.errors import BufferFull, problem
from sessionkit.records.keys import key_bytes, key_ranks
from sessionkit.stores.sizes import RECORD_BYTES
from sessionkit.suppression.settings import Suppression
from sessionkit.trace.loops import grouped
from sessionkit.windows.contract import WindowKind

FIXED_BYTES = 8 + RECORD_BYTES  # of each entry: the time that it lies at, and where its record was


# What follows the key in the bytes of a windowed one, by what a store of the windows holds.
TIMES: Mapping[str, Callable[[Any, Any], tuple[Any, ...]]] = {
    "sessions": lambda start, end: (end, start),
    "windows": lambda start, end: (start,),
}


def windowed_key(key: Any, start_ms: int, end_ms: int, holds: str) -> bytes:
    """The key of a window as Kafka's stores write it.

    Source:
        WindowKeySchema.toBinary (without a number), SessionKeySchema.toBinary.
    """
    return key_bytes(key) + b"".join(time.to_bytes(8, "big") for time in TIMES[holds](start_ms, end_ms))


def ranks_of_windows(keys: pa.Array, code: Longs, start_ms: Longs, end_ms: Longs, holds: str) -> Longs:
    """The place of each of these windows in the order of the bytes of its windowed key; `code` is into `keys`."""
    times = TIMES[holds](start_ms, end_ms)
    if pa.types.is_integer(keys.type) or _stay_in_order(keys, end_ms):
        order = np.lexsort([*reversed(times), key_ranks(keys)[code]])
    else:
        parts = [keys.cast(pa.large_binary()).take(pa.array(code)), *map(_big_endian, times)]
        order = np.asarray(pc.sort_indices(pc.binary_join_element_wise(*parts, pa.scalar(b"", pa.large_binary()))))
    ranks = np.empty(len(code), np.int64)
    ranks[order] = np.arange(len(code))
    return ranks


def _stay_in_order(keys: pa.Array, end_ms: Longs) -> bool:
    """Whether keys that are followed by times keep their order: no key goes on with what times begin with."""
    has_nul = pc.any(pc.match_substring(keys.cast(pa.large_binary()), b"\0")).as_py()
    return not has_nul and int(end_ms.max(initial=0)) < 2**56


def _big_endian(times_ms: Longs) -> pa.Array:
    raw = pa.py_buffer(times_ms.astype(">i8").tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(8), len(times_ms), [None, raw]).cast(pa.large_binary())


# Places in `state`: the largest timestamp, how many keys wait, the most that did, rows that went out, bytes, the most.
CLOCK, WAITING, MOST_WAITING, SENT, BYTES, MOST_BYTES = range(6)
NOT_HELD = -1


@compiled_loop
def _comes_first(one, other, place, rank):  # type: ignore[no-untyped-def]
    return place[one] < place[other] or (place[one] == place[other] and rank[one] < rank[other])


@compiled_loop
def _push(heap, count, key, place, rank):  # type: ignore[no-untyped-def]
    at = count
    while at > 0 and _comes_first(key, heap[(at - 1) // 2], place, rank):
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = key


@compiled_loop
def _pop(heap, count, place, rank):  # type: ignore[no-untyped-def]
    first, last, at = heap[0], heap[count - 1], 0
    while 2 * at + 1 < count - 1:
        child = 2 * at + 1
        if child + 1 < count - 1 and _comes_first(heap[child + 1], heap[child], place, rank):
            child += 1
        if _comes_first(last, heap[child], place, rank):
            break
        heap[at] = heap[child]
        at = child
    heap[at] = last
    return first


@compiled_loop
def _weight(row, first, size, old_size, old):  # type: ignore[no-untyped-def]
    """The bytes of a row that waits for a key for which row `first` was the first to wait: see `Entry.size`."""
    return size[row] + old_size[first] + (0 if old[row] == old[first] else old_size[row])


@compiled_loop
def suppress_rows(  # type: ignore[no-untyped-def]
    rows, carried, key, rank, given_place, timestamp_ms, silent, size, old_size, old, waits_ms, most, most_bytes,
    shuts_down, is_final, place, held, first_held, heap, state, sent, sent_at,
):  # fmt: skip
    """Takes the rows of one partition in; returns the row at which the buffer was full, -1 where it never stopped.

    `rows` integers (r,), the first `carried` of which waited before: they move no clock. `key`, `given_place`,
    `timestamp_ms`, `silent`, `size`, `old_size` and `old` (equal where the old values are) are those of all rows,
    `rank` of all windowed keys. `place`, `held` and `first_held` int64 receive the place of each key, the row that
    waits for it and the first that did; `heap` int64 is scratch, `state` int64 (6,). What goes out: row `sent[j]`,
    after `sent_at[j]`.
    """
    for n in range(rows.shape[0]):
        row = rows[n]
        k = key[row]
        if held[k] == NOT_HELD:
            place[k], first_held[k] = given_place[row], row
            _push(heap, state[WAITING], k, place, rank)
            state[WAITING] += 1
        else:
            state[BYTES] -= _weight(held[k], first_held[k], size, old_size, old)
        held[k] = row
        state[BYTES] += _weight(row, first_held[k], size, old_size, old)
        state[MOST_WAITING] = max(state[MOST_WAITING], state[WAITING])
        state[MOST_BYTES] = max(state[MOST_BYTES], state[BYTES])
        if n < carried:
            continue
        state[CLOCK] = max(state[CLOCK], timestamp_ms[row])
        while state[WAITING] > 0:
            is_over = state[WAITING] > most or state[BYTES] > most_bytes
            if place[heap[0]] > state[CLOCK] - waits_ms:
                if is_over and shuts_down:
                    return row
                if not is_over:
                    break
            first = _pop(heap, state[WAITING], place, rank)
            state[WAITING] -= 1
            state[BYTES] -= _weight(held[first], first_held[first], size, old_size, old)
            if not (silent[held[first]] and is_final):
                sent[state[SENT]], sent_at[state[SENT]] = held[first], row
                state[SENT] += 1
            held[first] = NOT_HELD
    return -1


# Columns of a changelog whose bytes count: those of a result without its old value, and of that, which is told as text.
# Of a result that waits, the old value is that of the first result of its window that waited. No user names results so.
SIZE, OLD_SIZE, OLD = WEIGHTS = ("sessionkit size", "sessionkit old size", "sessionkit old")
NOT_RESULTS = ("partition", "offset", "what", "key", "window_start_ms", "window_end_ms", "timestamp_ms", *WEIGHTS)


def without_weights(columns: Mapping[str, Column]) -> dict[str, Column]:
    """The columns that a changelog shows."""
    return {name: column for name, column in columns.items() if name not in WEIGHTS}


class Waiting(NamedTuple):
    """Results that wait: their rows of the changelog, by partition in the order in which they go out, with places."""

    columns: Mapping[str, Column]
    place_ms: Longs
    before: Longs  # which of those that waited before the last step each is, -1 for those that came with it


class Suppressor:
    """The buffers of all partitions, which go on from one part of a changelog to the next.

    Its results are told by the record that made them go out; a result that waits by the record that it came with.
    Bytes are counted where the changelog has the columns for it.
    """

    def __init__(self, settings: Suppression, windows: WindowKind, aggregations: Mapping[str, Aggregation]) -> None:
        self._settings, self._windows = settings, windows
        self._can_be_null = can_be_null(aggregations)
        self._state: dict[int, Longs] = {}  # of each partition, as `suppress_rows` has it
        self.waiting: Waiting | None = None

    @property
    def most_in_each(self) -> dict[int, int]:
        return {partition: int(state[MOST_WAITING]) for partition, state in self._state.items()}

    @property
    def most_records(self) -> int:
        """How many results waited at once in any partition, at most."""
        return max(self.most_in_each.values(), default=0)

    @property
    def most_bytes(self) -> int:
        """The bytes that waited at once in any partition, at most, where they are counted."""
        return max(self.most_bytes_in_each.values(), default=0)

    @property
    def most_bytes_in_each(self) -> dict[int, int]:
        return {partition: int(state[MOST_BYTES]) for partition, state in self._state.items()}

    def clock_ms(self, partition: int) -> int:
        """The largest timestamp of the partition's results, -1 before the first."""
        return int(self._state[partition][CLOCK]) if partition in self._state else -1

    def go_on(self, partition: int, clock_ms: int, waiting: Waiting | None) -> None:
        """Begins with what waited in one partition, and its clock then."""
        self._state[partition] = np.array([clock_ms, 0, 0, 0, 0, 0])
        self.waiting = waiting

    def step(self, sent: Mapping[str, Column]) -> dict[str, Column]:
        """Results that go out of the next rows of the changelog on update; BufferFull if more has to wait than may."""
        carried = 0 if self.waiting is None else len(self.waiting.place_ms)
        columns = dict(sent) if self.waiting is None else joined(self.waiting.columns, sent)
        results = {name: column for name, column in columns.items() if name not in NOT_RESULTS}
        silent = np.asarray(pc.equal(columns["what"], "tombstone"))
        if self._can_be_null:
            silent = silent | np.logical_and.reduce([_is_null(column) for column in results.values()])
        rows = _Rows(columns, self._settings, silent, self._windows.holds)
        place = rows.own_place_ms.copy()
        if self.waiting is not None:
            place[:carried] = self.waiting.place_ms
        partitions, code = np.unique(np.asarray(columns["partition"]), return_inverse=True)
        out, after, stopped = [], [], []
        first, order = grouped(code, len(partitions))
        for number, partition in enumerate(partitions.tolist()):
            of_partition = order[first[number] : first[number + 1]]
            of_before = int(np.searchsorted(of_partition, carried))
            full, sent_rows, sent_at = self._partition(partition, of_partition, of_before, rows, place)
            stopped += [(full, partition)] if full >= 0 else []
            out.append(sent_rows)
            after.append(sent_at)
        if stopped:
            row, partition = min(stopped)
            state = self._state[partition]
            raise buffer_full(self._settings, partition, rows.offset[row], int(state[WAITING]), int(state[BYTES]))
        self._wait(columns, carried, rows)
        return self._out(columns, _whole(out), _whole(after))

    def _partition(
        self, partition: int, mine: Longs, carried: int, rows: _Rows, place: Longs
    ) -> tuple[int, Longs, Longs]:
        settings = self._settings
        state = self._state.setdefault(partition, np.array([-1, 0, 0, 0, 0, 0]))
        state[[WAITING, SENT, BYTES]] = 0
        limits = (INT64_MAX if limit is None else limit for limit in (settings.most_records, settings.most_bytes))
        sent, sent_at, heap = (np.empty(len(mine), np.int64) for _ in range(3))
        full = suppress_rows(
            mine, carried, rows.key, rows.rank, place, rows.timestamp_ms, rows.silent, rows.size, rows.old_size,
            rows.old, settings.waits_ms(self._windows), *limits, settings.shuts_down, settings.is_final,
            rows.key_place, rows.held, rows.first_held, heap, state, sent, sent_at,
        )  # fmt: skip
        return full, sent[: state[SENT]], sent_at[: state[SENT]]

    def _wait(self, columns: Mapping[str, Column], carried: int, rows: _Rows) -> None:
        keys, place = np.flatnonzero(rows.held != NOT_HELD), rows.key_place
        keys = keys[np.lexsort((rows.rank[keys], place[keys], np.asarray(columns["partition"])[rows.held[keys]]))]
        held, first = rows.held[keys], rows.first_held[keys]
        waiting = taken(columns, held)
        if SIZE in columns:
            waiting[SIZE] = rows.size[held] + np.where(rows.old[held] == rows.old[first], 0, rows.old_size[held])
            waiting |= taken({name: columns[name] for name in (OLD_SIZE, OLD)}, first)
        self.waiting = Waiting(waiting, place[keys], np.where(held < carried, held, -1))

    def _out(self, columns: Mapping[str, Column], row: Longs, after: Longs) -> dict[str, Column]:
        order = np.argsort(after, kind="stable")
        row, after = row[order], after[order]
        shown = taken(without_weights(columns), row)
        shown["offset"] = np.asarray(columns["offset"])[after]
        if self._settings.is_final:
            shown["what"] = repeated("final", len(row))
        return shown


class _Rows:
    """The rows of a changelog as the loop reads them, and what it finds for each windowed key: rows, and its place."""

    def __init__(self, columns: Mapping[str, Column], settings: Suppression, silent: Flags, holds: str) -> None:
        start_ms, end_ms = (np.asarray(columns[name], np.int64) for name in ("window_start_ms", "window_end_ms"))
        keys = columns["key"].dictionary_encode()
        code = keys.indices.to_numpy()
        self.key, some = numbered(np.asarray(columns["partition"]), code, start_ms, end_ms)
        self.held = np.full(len(some), NOT_HELD)
        self.first_held, self.key_place = np.zeros((2, len(some)), np.int64)
        self.rank = ranks_of_windows(keys.dictionary, code[some], start_ms[some], end_ms[some], holds)
        self.timestamp_ms = np.asarray(columns["timestamp_ms"], np.int64)
        self.offset = np.asarray(columns["offset"])
        self.own_place_ms = end_ms if settings.is_final else self.timestamp_ms
        self.silent = silent
        self.size = self.old_size = self.old = np.zeros(len(silent), np.int64)
        if SIZE in columns:
            self.size, self.old_size = columns[SIZE], columns[OLD_SIZE]
            self.old = columns[OLD].dictionary_encode().indices.to_numpy().astype(np.int64)


def can_be_null(aggregations: Mapping[str, Aggregation]) -> bool:
    """Whether a window whose results are all null has no aggregate, which is then none for Kafka.

    An aggregate that begins as a list or as several parts is there, even if what is shown of it is null.
    """
    return all(not each.parts or each.initializer() is None for each in aggregations.values())


def numbered(*columns: Longs) -> tuple[Longs, Longs]:
    """(the number of each row's values, a row for each number)."""
    number, size = np.zeros(len(columns[0]), np.int64), 1
    for column in columns:
        code, count = _coded(column)
        if size > INT64_MAX // max(1, count):
            number, size = _coded(number)
        number, size = number * count + code, size * max(1, count)
    number, _ = _coded(number)
    rows = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    rows[number] = np.arange(len(number))
    return number, rows


def _coded(column: Longs) -> tuple[Longs, int]:
    """(the number of each row's value, how many there are)."""
    coded = pa.array(column).dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)


def _is_null(column: Column) -> Flags:
    if not isinstance(column, np.ndarray):
        return np.asarray(column.is_null())
    if column.dtype != object:
        return np.zeros(len(column), np.bool_)
    return np.array([value is None for value in column.tolist()], np.bool_)


def _whole(parts: list[Longs]) -> Longs:
    return np.concatenate([np.empty(0, np.int64), *parts])


def buffer_full(settings: Suppression, partition: int, offset: int, records: int, size: int) -> BufferFull:
    """The error for a buffer that is full at this record, which stops the application."""
    limits = {"max_records": settings.most_records, "max_bytes": settings.most_bytes}
    room = " and ".join(f"{name}={limit:,}" for name, limit in limits.items() if limit is not None)
    what = f"the buffer of suppress is full at partition {partition}, offset {offset}, with {room}"
    want = "more room, a shorter grace, or no limit; nothing of this run was committed"
    got = plural(records, "result") + (f" of {plural(size, 'byte')}" if settings.counts_bytes else "")
    return BufferFull(problem(what, got, want))
