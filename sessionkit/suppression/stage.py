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


# Places in `state`: the largest timestamp, how many keys wait, the most that did, how many rows went out.
CLOCK, WAITING, MOST_WAITING, SENT = range(4)
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
def suppress_rows(  # type: ignore[no-untyped-def]
    rows, carried, key, rank, given_place, timestamp_ms, silent, waits_ms, most, shuts_down, is_final,
    place, held, heap, state, sent, sent_at,
):  # fmt: skip
    """Takes the rows of one partition in; returns the row at which the buffer was full, -1 where it never stopped.

    `rows` integers (r,), the first `carried` of which waited before: they move no clock. `key`, `given_place`,
    `timestamp_ms`, `silent` and `size` are those of all rows, `rank` of all windowed keys. `limits` int64 (3,): how
    long a place waits, the most records, the most bytes. `place` and `held` int64 receive the place of each key, and
    the row that waits for it; `heap` int64 is scratch, `state` int64 (4,). What goes out: row `sent[j]`, after
    `sent_at[j]`.
    """
    for n in range(rows.shape[0]):
        row = rows[n]
        k = key[row]
        if held[k] == NOT_HELD:
            place[k] = given_place[row]
            _push(heap, state[WAITING], k, place, rank)
            state[WAITING] += 1
        held[k] = row
        state[MOST_WAITING] = max(state[MOST_WAITING], state[WAITING])
        if n < carried:
            continue
        state[CLOCK] = max(state[CLOCK], timestamp_ms[row])
        while state[WAITING] > 0:
            is_over = state[WAITING] > most
            if place[heap[0]] > state[CLOCK] - waits_ms:
                if is_over and shuts_down:
                    return row
                if not is_over:
                    break
            first = _pop(heap, state[WAITING], place, rank)
            state[WAITING] -= 1
            if not (silent[held[first]] and is_final):
                sent[state[SENT]], sent_at[state[SENT]] = held[first], row
                state[SENT] += 1
            held[first] = NOT_HELD
    return -1


NOT_RESULTS = ("partition", "offset", "what", "key", "window_start_ms", "window_end_ms", "timestamp_ms")


class Waiting(NamedTuple):
    """Results that wait: their rows of the changelog, by partition in the order in which they go out, with places."""

    columns: Mapping[str, Column]
    place_ms: Longs


class Suppressor:
    """The buffers of all partitions, which go on from one part of a changelog to the next. Bytes are not counted.

    Its results are told by the record that made them go out; a result that waits by the record that it came with.
    """

    def __init__(self, settings: Suppression, windows: WindowKind, aggregations: Mapping[str, Aggregation]) -> None:
        self._settings, self._windows = settings, windows
        # what is made of several parts is there, even if what is shown of it is null
        self._can_be_null = all(len(aggregation.parts) < 2 for aggregation in aggregations.values())
        self._state: dict[int, Longs] = {}  # of each partition, as `suppress_rows` has it
        self.waiting: Waiting | None = None

    @property
    def most_in_each(self) -> dict[int, int]:
        return {partition: int(state[MOST_WAITING]) for partition, state in self._state.items()}

    @property
    def most_records(self) -> int:
        """How many results waited at once in any partition, at most."""
        return max(self.most_in_each.values(), default=0)

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
        held, key_place = np.full(rows.key_count, NOT_HELD), np.zeros(rows.key_count, np.int64)
        out, after, stopped = [], [], []
        first, order = grouped(code, len(partitions))
        for number, partition in enumerate(partitions.tolist()):
            of_partition = order[first[number] : first[number + 1]]
            of_before = int(np.searchsorted(of_partition, carried))
            full, sent_rows, sent_at = self._partition(partition, of_partition, of_before, rows, place, held, key_place)
            stopped += [(full, partition)] if full >= 0 else []
            out.append(sent_rows)
            after.append(sent_at)
        if stopped:
            row, partition = min(stopped)
            raise buffer_full(self._settings, partition, rows.offset[row], int(self._state[partition][WAITING]))
        self._wait(columns, held, key_place, rows.rank)
        return self._out(columns, _whole(out), _whole(after))

    def _partition(
        self, partition: int, mine: Longs, carried: int, rows: _Rows, place: Longs, held: Longs, key_place: Longs
    ) -> tuple[int, Longs, Longs]:
        settings = self._settings
        state = self._state.setdefault(partition, np.array([-1, 0, 0, 0]))
        state[[WAITING, SENT]] = 0
        most = INT64_MAX if settings.most_records is None else settings.most_records
        sent, sent_at, heap = (np.empty(len(mine), np.int64) for _ in range(3))
        full = suppress_rows(
            mine, carried, rows.key, rows.rank, place, rows.timestamp_ms, rows.silent,
            settings.waits_ms(self._windows), most, settings.shuts_down, settings.is_final,
            key_place, held, heap, state, sent, sent_at,
        )  # fmt: skip
        return full, sent[: state[SENT]], sent_at[: state[SENT]]

    def _wait(self, columns: Mapping[str, Column], held: Longs, place: Longs, rank: Longs) -> None:
        keys = np.flatnonzero(held != NOT_HELD)
        keys = keys[np.lexsort((rank[keys], place[keys], np.asarray(columns["partition"])[held[keys]]))]
        self.waiting = Waiting(taken(columns, held[keys]), place[keys])

    def _out(self, columns: Mapping[str, Column], row: Longs, after: Longs) -> dict[str, Column]:
        order = np.argsort(after, kind="stable")
        row, after = row[order], after[order]
        shown = taken(columns, row)
        shown["offset"] = np.asarray(columns["offset"])[after]
        if self._settings.is_final:
            shown["what"] = repeated("final", len(row))
        return shown


class _Rows:
    """The rows of a changelog as the loop reads them: numbers of their windowed keys, ranks, times."""

    def __init__(self, columns: Mapping[str, Column], settings: Suppression, silent: Flags, holds: str) -> None:
        start_ms, end_ms = (np.asarray(columns[name], np.int64) for name in ("window_start_ms", "window_end_ms"))
        keys = columns["key"].dictionary_encode()
        code = keys.indices.to_numpy()
        self.key, some = _numbered(np.asarray(columns["partition"]), code, start_ms, end_ms)
        self.key_count = len(some)
        self.rank = ranks_of_windows(keys.dictionary, code[some], start_ms[some], end_ms[some], holds)
        self.timestamp_ms = np.asarray(columns["timestamp_ms"], np.int64)
        self.offset = np.asarray(columns["offset"])
        self.own_place_ms = end_ms if settings.is_final else self.timestamp_ms
        self.silent = silent


def _numbered(*columns: Longs) -> tuple[Longs, Longs]:
    """(the number of each row's values, a row for each number)."""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        coded = pa.array(column).dictionary_encode()
        pair = pa.array(number * max(1, len(coded.dictionary)) + coded.indices.to_numpy())
        number = pair.dictionary_encode().indices.to_numpy().astype(np.int64)
    rows = np.zeros(int(number.max(initial=-1)) + 1, np.int64)
    rows[number] = np.arange(len(number))
    return number, rows


def _is_null(column: Column) -> Flags:
    if not isinstance(column, np.ndarray):
        return np.asarray(column.is_null())
    if column.dtype != object:
        return np.zeros(len(column), np.bool_)
    return np.array([value is None for value in column.tolist()], np.bool_)


def _whole(parts: list[Longs]) -> Longs:
    return np.concatenate([np.empty(0, np.int64), *parts])


def buffer_full(
    settings: Suppression, partition: int, offset: int, records: int, size: int | None = None
) -> BufferFull:
    """The error for a buffer that is full at this record, which stops the application."""
    limits = {"max_records": settings.most_records, "max_bytes": settings.most_bytes}
    room = " and ".join(f"{name}={limit:,}" for name, limit in limits.items() if limit is not None)
    what = f"the buffer of suppress is full at partition {partition}, offset {offset}, with {room}"
    want = "more room, a shorter grace, or no limit; nothing of this run was committed"
    got = plural(records, "result") if size is None else f"{plural(records, 'result')} of {plural(size, 'byte')}"
    return BufferFull(problem(what, got, want))
