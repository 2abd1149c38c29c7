"""Random streams of every shape that has mattered, from a seed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import sessionkit as sk
from sessionkit.aggregations.contract import Aggregation
from sessionkit.records.batch import RecordBatch, read_records
from sessionkit.records.source import Source
from sessionkit.windows.session import SessionWindows


class Stream(NamedTuple):
    """Windows, retention and records drawn from one seed."""

    windows: SessionWindows
    retention_ms: int
    table: pa.Table

    def batch(self, lo: int = 0, hi: int | None = None) -> RecordBatch:
        """The records from `lo` to `hi` as the engine takes them."""
        part = self.table.slice(lo, None if hi is None else hi - lo)
        source = Source(
            keys=("key",), timestamp="time", unit="ms", partition="partition", offset="offset", on_bad_time="drop"
        )
        return read_records(part, source, ("value", "real"))


def rows_of(columns: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    lists = [c.to_pylist() if isinstance(c, pa.Array | pa.ChunkedArray) else list(c) for c in columns.values()]
    return list(zip(*lists, strict=True))


AGGREGATIONS: dict[str, Aggregation] = {
    "count": sk.count(), "sum": sk.sum("value"), "real_sum": sk.sum("real"), "mean": sk.mean("real"),
    "min": sk.min("value"), "max": sk.max("real"), "first": sk.first("value"), "last": sk.last("value"),
    "earliest": sk.earliest("value"), "latest": sk.latest("value"), "distinct": sk.count_distinct("value"),
    "collect": sk.collect("value"),
    "own": sk.aggregation(
        initializer=lambda: ("start",),
        aggregator=lambda key, value, aggregate: (*aggregate, value),
        merger=lambda key, older, newer: (*older, "+", *newer),
        value="value",
    ),
    "reduced": sk.reduce(lambda older, newer: (older or 0) * 3 + (newer or 0), "value"),
}  # fmt: skip


def draw(seed: int, most: int = 60) -> Stream:
    """The stream of a seed: few keys and partitions, all kinds of disorder, nulls, zero gap and grace, times near 0."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, most + 1))
    gap = int(rng.choice([0, 1, 3, 10, 50]))
    grace = int(rng.choice([0, 0, 1, 5, 40, 10_000]))
    extra = int(rng.choice([0, 0, 1, 7, 60, 10_000]))
    partitions = rng.choice([0, 1, 5, 7][: int(rng.integers(1, 5))], size)
    times = _times(rng, size, gap)
    offsets = np.empty(size, np.int64)
    for p in np.unique(partitions):
        mine = partitions == p
        offsets[mine] = np.cumsum(rng.integers(1, 4, int(mine.sum()))) - 1
    keys = rng.choice(["a", "b", "ab", "é", ""][: int(rng.integers(1, 6))], size)
    null_share = rng.choice([0.0, 0.1])
    windows, retention = SessionWindows(inactivity_gap_ms=gap, grace_ms=grace), gap + grace + extra
    if rng.random() < 0.15:  # segments are a minute long at least, so all is
        times = np.maximum(times, 0) % 2**55 * 60_000
        retention = (gap + extra) * 60_000
        windows = SessionWindows.until(inactivity_gap_ms=gap * 60_000, retention_ms=retention)
    table = pa.table(
        {"partition": pa.array(partitions, pa.int32()), "offset": offsets,
         "key": pa.array(keys.tolist(), pa.string(), mask=rng.random(size) < null_share),
         "time": pa.array(times, mask=rng.random(size) < null_share / 3),
         "value": pa.array(rng.integers(-9, 10, size), mask=rng.random(size) < null_share),
         "real": pa.array(rng.normal(size=size), mask=rng.random(size) < null_share)},
    )  # fmt: skip
    return Stream(windows, retention, table)


def _times(rng: np.random.Generator, size: int, gap: int) -> np.ndarray:
    shape = rng.integers(0, 5)
    base = int(rng.choice([0, 0, 1_000, 2**55]))
    if shape == 0:  # anything goes
        times = rng.integers(0, 40 * (gap + 1), size)
    elif shape == 1:  # in order, with ties
        times = np.cumsum(rng.integers(0, 2 * gap + 2, size))
    elif shape == 2:  # mostly in order, some far behind
        times = np.cumsum(rng.integers(0, gap + 2, size)) - np.where(
            rng.random(size) < 0.3, rng.integers(0, 6 * gap + 6), 0
        )
    elif shape == 3:  # many sessions open at once, then bridges
        times = rng.permutation(size) * (gap + 1) // 2 * 3
    else:  # backwards, with the occasional leap
        times = 30 * size - np.arange(size) * (gap + 2) + np.where(rng.random(size) < 0.1, 100 * gap, 0)
    return np.maximum(times, 0 if rng.random() < 0.9 else -3).astype(np.int64) + base
