"""What a life behind a record cache has, whatever its windows are: its commits, and the cache as it is at the end."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from sessionkit.aggregations.contract import Aggregation
from sessionkit.aggregations.folds import value_column
from sessionkit.base.arrays import Codes, Longs, Rows
from sessionkit.base.durations import INT64_MAX
from sessionkit.deployed.compiled.life import CompiledLife
from sessionkit.deployed.deployment import Life, commit_rows
from sessionkit.deployed.processor_run import CACHES
from sessionkit.records.batch import RecordBatch
from sessionkit.records.keys import key_bytes
from sessionkit.stores.cache.sessions import CachingSessionStore
from sessionkit.stores.cache.windows import CachingWindowStore
from sessionkit.stores.contract import StoredColumns
from sessionkit.stores.rows import as_stored
from sessionkit.trace.loops import grouped

_LONGS = ("count", "sum", "min", "max")  # of numbers


def most_bytes(how: Life) -> float | None:
    """The bytes that fit into the cache; None: any number, and they are not counted."""
    return None if how.caching is True else how.caching


def most_in_loops(how: Life) -> int:
    """The bytes that fit into the cache as loops take them: INT64_MAX where all do."""
    most = most_bytes(how)
    return INT64_MAX if most is None else int(min(most, INT64_MAX))


def all_commits(how: Life, count: int) -> Longs:
    """The records after which all is written: when the task commits, and at the end."""
    return np.append(commit_rows(how, count), np.arange(count)[-1:])


def has_zeros(keys: pa.Array) -> bool:
    """Whether a key has a zero byte: where it goes on with one, Kafka can take it for another key that ends there."""
    return not pa.types.is_integer(keys.type) and any(b"\0" in key_bytes(key) for key in keys.to_pylist())


def has_fixed_size(aggregations: Mapping[str, Aggregation], batch: RecordBatch) -> bool:
    """Whether each aggregate is one number, of eight bytes."""
    only = next(iter(aggregations.values()))
    if len(aggregations) > 1 or only.built_in not in _LONGS:
        return False
    column = value_column(only, batch.values, batch.timestamp_ms)
    kind = only.result_type(None if column is None else column.type)
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


class CachedLife(CompiledLife):
    """Of windows behind a cache: a value is sent when it is written to the store."""

    @property
    def most(self) -> float | None:
        """The bytes that fit into the cache; None: any number, and they are not counted."""
        return most_bytes(self._how)

    @property
    @abstractmethod
    def cached_rows(self) -> Rows:
        """The windows that are in the cache at the end; of each partition those that were used last come last."""

    @property
    @abstractmethod
    def _newest_put_ms(self) -> Longs:
        """The largest time of what was put into the cache of each partition; -1: there is nothing."""

    @property
    @abstractmethod
    def _most_held(self) -> int:
        """The most bytes that were in the cache at once."""

    @property
    def _seen_rows(self) -> Rows:
        is_seen = np.zeros(len(self._outcome.window_columns.key), np.bool_)
        is_seen[super()._seen_rows] = is_seen[self.cached_rows] = True
        return np.flatnonzero(is_seen)

    def _last_records(self, at: Longs, window: Codes) -> Longs:
        """The last record of the partition of each window until a record."""
        last, own = np.empty(len(at), np.int64), self._outcome.window_columns.partition[window]
        first, rows = grouped(self._trace.batch.partition, len(self._before))
        for code in range(len(self._before)):
            mine = np.flatnonzero(own == code)
            of_partition = rows[first[code] : first[code + 1]]
            last[mine] = of_partition[np.searchsorted(of_partition, at[mine], "right") - 1]
        return last

    def in_front_of(self, store: Any) -> CachingSessionStore | CachingWindowStore:
        """The cache as it is at the end; its entries are made when somebody asks for them."""
        front = CACHES[self._windows.holds](store, None, self.most)
        front.take_over(self._most_held, self._fill)
        front.shown = self._shown
        return front

    def _shown(self, number: int) -> StoredColumns:
        """What reads of a partition see at the end."""
        seen = self._seen_rows
        return self._columns(seen[self._outcome.window_columns.partition[seen] == list(self._before).index(number)])

    def _fill(self, front: Any) -> None:
        columns, cached = self._outcome.window_columns, self.cached_rows
        for code, (number, time_ms) in enumerate(zip(self._before, self._newest_put_ms.tolist(), strict=True)):
            held = self._columns(cached[columns.partition[cached] == code])
            for _, each in as_stored(held):
                front.write(each, partition=number)
            if time_ms >= 0:
                front.are_written(number, time_ms)
