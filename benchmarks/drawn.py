"""Shapes of data that nobody chose: each is drawn from its number, in all that data of keys and times can differ in."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import FOLDER, START_MS
from benchmarks.shapes import visits_in_time

SHAPES, SEED = 20, 2026
LATE_BY_MS = 60_000
LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", np.uint8)


class Drawn(NamedTuple):
    """One shape."""

    keys: int
    text_bytes: int  # of each key; 0: integers
    spread: int  # integers are drawn from so many times as many
    zipf: float  # the exponent of the keys' weights; 0: all alike
    visit: float  # records in a visit, on average
    late: float  # share of the records that arrive late
    values: int  # columns of numbers, of which one is summed
    group_rows: int  # rows in a row group of the file
    partitions: int

    @property
    def words(self) -> str:
        kind = f"text of {self.text_bytes} bytes" if self.text_bytes else f"integers, {self.spread} times as wide"
        return (
            f"{self.keys:,} keys ({kind}), Zipf {self.zipf:.1f}, visits of {self.visit:.0f}, {self.late:.0%} late, "
            f"values {self.values}, row groups of {self.group_rows:,}, partitions {self.partitions}"
        )


def drawn(number: int, records: int) -> Drawn:
    """The shape of this number."""
    rng = np.random.default_rng([SEED, number])

    def between(low: float, high: float) -> int:
        """A whole number, of which each power of ten is as likely."""
        return round(float(np.exp(rng.uniform(np.log(low), np.log(high)))))

    return Drawn(
        keys=between(1, records),
        text_bytes=int(rng.integers(4, 41)) if rng.random() < 0.5 else 0,
        spread=between(1, 1_000),
        zipf=float(rng.choice([0.0, rng.uniform(0, 1.3)])),
        visit=float(between(1, 200)),
        late=float(rng.uniform(0, 0.2)),
        values=int(rng.integers(1, 5)),
        group_rows=between(10_000, 10_000_000),
        partitions=between(1, 256),
    )


def file_of(number: int, records: int) -> Path:
    """Records of this shape, in order of arrival. Columns: partition, key, ts (microseconds, UTC), value, value_1…"""
    path = FOLDER / f"drawn-{SEED}-{number}-{records}.parquet"
    if path.exists():
        return path
    shape, rng = drawn(number, records), np.random.default_rng([SEED, number, records])
    visit, time_ms, count = visits_in_time(rng, records, shape.visit, 1.2)
    weight = np.cumsum(1.0 / np.arange(1, shape.keys + 1) ** shape.zipf)
    key = rng.permutation(shape.keys)[np.searchsorted(weight, rng.random(count) * weight[-1])][visit]
    late_ms = np.where(rng.random(records) < shape.late, rng.exponential(LATE_BY_MS, records), 0)
    order = np.argsort(time_ms + late_ms.astype(np.int64), kind="stable")
    key, time_ms = key[order], START_MS + time_ms[order]
    values = {f"value_{n}" if n else "value": np.round(rng.gamma(2, 10, records), 2) for n in range(shape.values)}
    columns = {
        "partition": (key % shape.partitions).astype(np.int32),
        "key": _names(rng, shape).take(pa.array(key)),
        "ts": pa.array(time_ms * 1000, pa.timestamp("us", tz="UTC")),
        **values,
    }
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    pq.write_table(pa.table(columns), part, row_group_size=shape.group_rows)
    part.rename(path)
    return path


def _names(rng: np.random.Generator, shape: Drawn) -> pa.Array:
    if not shape.text_bytes:
        return pa.array(rng.choice(shape.keys * shape.spread, shape.keys, replace=False) + 1)
    size = max(shape.text_bytes, len(f"{shape.keys:x}"))
    letters = LETTERS[rng.integers(0, len(LETTERS), (shape.keys, size))].tobytes().decode()
    own = (f"{number:x}" for number in range(shape.keys))  # no two are the same
    return pa.array([f"{letters[at * size : (at + 1) * size - len(each)]}{each}" for at, each in enumerate(own)])
