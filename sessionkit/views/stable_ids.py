"""Ids of sessions and windows that stay when rows are added behind: made of the key and the start."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sessionkit.base.arrays import Longs, arrow_array, arrow_table, is_null, numpy_array
from sessionkit.base.result_columns import ResultForm
from sessionkit.base.text import one_of
from sessionkit.records.inputs.plain_columns import decoded, plain_column

Ids = Literal["number", "key", "hash"]
_COARSER = {"us": "ms", "ns": "us"}
IDS: tuple[Ids, ...] = ("number", "key", "hash")


def with_ids(added: pa.Table, rows: pa.Table, names: Sequence[str], ids: Ids) -> pa.Table:
    """The columns of `assigned`, which count sessions from 0, with ids of the key and the start instead.

    An id is JSON of the values in the columns `names` (of the key, and the partition where the plan has one) and of the
    start in UTC, to the millisecond or as fine as it is: `["ada","2026-03-01T23:50:00.000Z"]`. The second of several
    that begin at once, as rules may cut them, ends in `#2`. The hash is the first eight bytes of its SHA-256, as a
    signed integer whose greatest byte comes first.
    """
    if ids == "number":
        return added
    number, none = numpy_array(added[0], absent=0), is_null(added[0])
    own = np.flatnonzero(~none)
    if not len(own):
        return added.set_column(0, added.field(0).name, pa.nulls(len(added), _as(ids, []).type))
    some_row = np.zeros(int(number.max()) + 1, np.int64)
    some_row[number[own]] = own
    at = arrow_array(some_row)
    start_ms = added[1].take(at)
    texts, codes = _texts(start_ms, (plain_column(rows[name]).take(at) for name in names))
    for place, nth in _among_equals(numpy_array(start_ms.cast(pa.int64())), *codes):
        texts[place] += f"#{nth}"
    found = _as(ids, texts).take(arrow_array(number, none if none.any() else None))
    return added.set_column(0, added.field(0).name, found)


def with_ids_of_merges(merges: pa.Table, parts: Sequence[str], form: ResultForm, ids: Ids) -> pa.Table:
    """The columns of `run.merges`, with the ids of the two sessions before the record and of the one in the end.

    `parts` are the columns that stand before the start in an id, as `form` shows them.
    """
    one_of("ids", ids, IDS)
    if ids == "number":
        return merges
    made_of = arrow_table(form.shown({name: merges[name] for name in parts})).columns
    for name, start in (
        ("earlier_id", "earlier_start_ms"),
        ("later_id", "later_start_ms"),
        ("session_id", "window_start_ms"),
    ):
        merges = merges.append_column(name, _as(ids, _texts(merges[start], made_of)[0]))
    return merges


def _texts(start: pa.ChunkedArray, made_of: Iterable[pa.ChunkedArray]) -> tuple[list[str], list[Longs]]:
    """The id of each row, and the codes of its parts."""
    moment = pc.strftime(start.cast(pa.timestamp("ms"), safe=False), format='"%Y-%m-%dT%H:%M:%SZ"]')
    for unit in ("us", "ns") if pa.types.is_timestamp(start.type) else ():  # no more digits than a start has
        exact = start.cast(pa.timestamp(unit), safe=False)
        is_finer = pc.not_equal(exact, exact.cast(pa.timestamp(_COARSER[unit]), safe=False).cast(pa.timestamp(unit)))
        moment = pc.if_else(is_finer, pc.strftime(exact, format='"%Y-%m-%dT%H:%M:%SZ"]'), moment)
    parts = [_json(column) for column in made_of]
    texts = pc.binary_join_element_wise(*[part for part, _ in parts], moment, ",")
    return pc.binary_join_element_wise("[", texts, "").to_pylist(), [codes for _, codes in parts]


def _as(ids: Ids, texts: list[str]) -> pa.Array:
    return pa.array(texts, pa.string()) if ids == "key" else pa.array(map(_hash, texts), pa.int64())


def _json(column: pa.ChunkedArray) -> tuple[pa.Array, Longs]:
    """(JSON of each value, its code)."""
    coded = decoded(column).dictionary_encode().combine_chunks()
    words = [json.dumps(_plain(value), ensure_ascii=False) for value in coded.dictionary.to_pylist()]
    codes = numpy_array(coded.indices).astype(np.int64)
    return pa.array(words, pa.string()).take(arrow_array(codes)), codes


def _plain(value: Any) -> Any:
    """The value as JSON has it; a whole number is one whatever held it, and what JSON lacks is text."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, str | int | float | None) else str(value)


def _among_equals(*columns: Longs) -> list[tuple[int, int]]:
    """(place, nth) of each place that holds the same as those before it; equal ones stand together."""
    same = np.ones(max(0, len(columns[0]) - 1), np.bool_)
    for column in columns:
        same &= column[1:] == column[:-1]
    found: list[tuple[int, int]] = []
    for place in (np.flatnonzero(same) + 1).tolist():
        nth = found[-1][1] + 1 if found and found[-1][0] == place - 1 else 2
        found.append((place, nth))
    return found


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big", signed=True)
