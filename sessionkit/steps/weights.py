"""What Kafka counts of results that wait in the buffer of suppress, over the columns of a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation
from sessionkit.base.arrays import Column, Flags
from sessionkit.base.decisions import COPIED_ADDED, OPENED
from sessionkit.engine.outcome import Outcome
from sessionkit.records.keys import key_bytes
from sessionkit.stores.sizes import value_bytes
from sessionkit.suppression.stage import FIXED_BYTES, OLD, OLD_SIZE, SIZE, TIMES, can_be_null
from sessionkit.trace.sent import LOADED, NO_VALUE, TOMBSTONE, Sent, sent_by_sessions, sent_by_windows
from sessionkit.trace.window_trace import WindowTrace
from sessionkit.views import tables

_PREFIX = "sessionkit old "  # of columns of old values: no user names results so


def weighed_updates(outcome: Outcome, named: Mapping[str, Aggregation], holds: str) -> dict[str, Column]:
    """The updates that a step sends, with the bytes of each and those of the value that it replaces.

    A window that is new replaces what its aggregation begins with, a sliding one what the window held that it was
    copied from.

    Source:
        KStreamWindowAggregate, KStreamSlidingWindowAggregate, KStreamSessionWindowAggregate.
    """
    trace: Any = outcome.kept_trace
    if isinstance(trace, WindowTrace):
        sent, begins = _sent_by_windows(trace)
    else:
        sent = sent_by_sessions(trace)
        begins = np.zeros(len(sent.at), np.bool_)
    columns = tables.sent_table(outcome, sent, old_values=True, prefix=_PREFIX)
    old_columns = [columns.pop(f"{_PREFIX}{name}") for name in named]
    new = _values([columns[name] for name in named], sent.what != TOMBSTONE, named)
    begun = [aggregation.initializer() for aggregation in named.values()]
    first = _value([each.result(a) for each, a in zip(named.values(), begun, strict=True)], named)
    first = None if all(aggregate is None for aggregate in begun) else first
    replaced = _values(old_columns, ~begins & (sent.old() != NO_VALUE), named)
    old = [first if is_new else value for is_new, value in zip(begins.tolist(), replaced, strict=True)]
    bare = FIXED_BYTES + 8 * len(TIMES[holds](0, 0))
    size = [
        bare + len(key_bytes(key)) + value_bytes(value)
        for key, value in zip(columns["key"].to_pylist(), new, strict=True)
    ]
    columns[SIZE], columns[OLD_SIZE] = np.array(size, np.int64), np.array([*map(value_bytes, old)], np.int64)
    columns[OLD] = pa.array([*map(repr, old)], pa.large_string())
    return columns


def _sent_by_windows(trace: WindowTrace) -> tuple[Sent, Flags]:
    """(what time and sliding windows send, with what each replaces by Kafka's rules; which begin)."""
    sent, touches = sent_by_windows(trace), trace.touches
    effect, source, old = touches.effect[sent.step], touches.source[sent.step].astype(np.int64), sent.old()
    copied = np.flatnonzero(effect == COPIED_ADDED)
    order = np.lexsort((touches.record, touches.window))
    place = touches.window.astype(np.int64) * len(trace) + touches.record  # in the order of windows, then of records
    at = np.searchsorted(place[order], source[copied] * len(trace) + sent.at[copied]) - 1
    before = order[at]  # the last touch of the source by an earlier record
    old[copied] = np.where((at >= 0) & (touches.window[before] == source[copied]), before, LOADED)
    window = np.where(effect == COPIED_ADDED, source, sent.window)
    return sent._replace(window=window.astype(sent.window.dtype), old=lambda: old), effect == OPENED


def _values(columns: Sequence[Column], is_there: Flags, named: Mapping[str, Aggregation]) -> list[Any]:
    """The value of each row as Kafka's serializers get it: None, the only result, or a dict of several."""
    lists = [column.tolist() if isinstance(column, np.ndarray) else column.to_pylist() for column in columns]
    nullable = can_be_null(named)
    return [
        _value(row, named) if there and not (nullable and all(each is None for each in row)) else None
        for there, row in zip(is_there.tolist(), zip(*lists, strict=True), strict=True)
    ]


def _value(results: Sequence[Any], named: Mapping[str, Aggregation]) -> Any:
    return results[0] if len(named) == 1 else dict(zip(named, results, strict=True))
