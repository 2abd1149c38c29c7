"""Five shapes of data that people have, each from its seed: Parquet files as pandas and Arrow write them by default.

Visits of 6 records on average, 7 days of them for every 10 million records; 5 % of the records arrive late, by two
minutes on average. Keys are text of 24 to 30 bytes or 64-bit integers, of very different weight (Zipf) or uniform.
In "sparse" no record knows of another one: three of four open a session of their own.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.data import FOLDER, PARTITIONS, START_MS, write_files

SHAPES = ("zipf-text", "uniform-text", "zipf-integers", "uniform-integers", "sparse-integers")

KEYS, RECORDS_A_VISIT, PAUSE_MS = 100_000, 6, 120_000
LATE, LATE_BY_MS = 0.05, 120_000
MS_A_RECORD = 7 * 86_400_000 / 10_000_000
Numbers = npt.NDArray[np.int64]


def shape(
    name: str, records: int, *, keys: int = KEYS, partitions: int = 4, late: float = LATE, nulls: float = 0.0
) -> Path:
    """The file of one shape. Columns: partition, key, ts (microseconds, UTC), value.

    `late` is the share of records that arrive late, `nulls` that of records whose key and value are missing.
    """
    path = FOLDER / f"{name}-{records}-{keys}-{partitions}-{late}-{nulls}.parquet"
    if path.exists():
        return path
    rng = np.random.default_rng(SHAPES.index(name) + 21)
    weight, kind = name.split("-")
    key, time_ms = _sparse(rng, records, keys) if weight == "sparse" else _visits(rng, records, keys, weight == "zipf")
    late_ms = np.where(rng.random(records) < late, rng.exponential(LATE_BY_MS, records), 0).astype(np.int64)
    arrival = np.argsort(time_ms + late_ms, kind="stable")
    key, time_ms = key[arrival], START_MS + time_ms[arrival]
    value = np.round(rng.gamma(2.0, 10.0, records), 2)
    names = _texts(rng, keys) if kind == "text" else pa.array(_integers(rng, keys, weight))
    columns = {
        "partition": (key % partitions).astype(np.int32),
        "key": names.take(pa.array(key, mask=rng.random(records) < nulls)),
        "ts": pa.array(time_ms * 1000, pa.timestamp("us", tz="UTC")),
        "value": pa.array(value, mask=rng.random(records) < nulls),
    }
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    pq.write_table(pa.table(columns), part)
    part.rename(path)
    return path


def for_spark(name: str, records: int, files: int) -> Path:
    """A shape with offsets: so many files with rows in no order; 0: a file for each partition, in
    order; -6: six files, each later than the one before, with rows in no order.
    """
    folder = FOLDER / f"spark-{name}-{records}-{files}"
    if folder.exists():
        return folder
    table = pq.read_table(shape(name, records))
    number, offset = table["partition"].to_numpy(), np.empty(records, np.int64)
    for p in range(PARTITIONS):
        offset[number == p] = np.arange((number == p).sum())
    table = table.append_column("offset", pa.array(offset))
    rng, order = np.random.default_rng(2013), np.arange(records)
    if files > 0:
        parts = np.array_split(rng.permutation(order), files)
    elif files < 0:
        parts = [rng.permutation(part) for part in np.array_split(order, -files)]
    else:
        parts = [order[number == p] for p in range(PARTITIONS)]
    write_files(folder, [table.take(pa.array(rows)) for rows in parts])
    return folder


def _visits(rng: np.random.Generator, records: int, keys: int, zipf: bool) -> tuple[Numbers, Numbers]:
    visit, time_ms, count = visits_in_time(rng, records, RECORDS_A_VISIT, 1.1)
    return _drawn(rng, count, keys, zipf)[visit], time_ms


def visits_in_time(rng: np.random.Generator, records: int, length: float, spare: float) -> tuple[Numbers, Numbers, int]:
    """(visit, time) of the first so many records of visits that begin at any time, and how many visits were drawn.

    A visit has `length` records on average. `spare` times the records are drawn, so that they are enough.
    """
    count = int(records / length * spare) + 100
    lengths = rng.geometric(1 / length, count)
    first = np.cumsum(lengths) - lengths
    visit = np.repeat(np.arange(count), lengths)
    pause = rng.exponential(PAUSE_MS, len(visit)).astype(np.int64)
    pause[first] = 0
    since = np.cumsum(pause)
    time_ms = rng.integers(0, int(records * MS_A_RECORD * 1.1), count)[visit] + since - since[first][visit]
    earliest = np.argsort(time_ms, kind="stable")[:records]
    return visit[earliest], time_ms[earliest], count


def _sparse(rng: np.random.Generator, records: int, keys: int) -> tuple[Numbers, Numbers]:
    return rng.integers(0, keys, records), rng.integers(0, int(records * MS_A_RECORD), records)


def _drawn(rng: np.random.Generator, count: int, keys: int, zipf: bool) -> Numbers:
    if not zipf:
        return rng.integers(0, keys, count)
    weight = np.cumsum(1.0 / np.arange(1, keys + 1) ** 1.1)
    rank = np.searchsorted(weight, rng.random(count) * weight[-1])
    return rng.permutation(keys)[np.minimum(rank, keys - 1)]


def _texts(rng: np.random.Generator, keys: int) -> pa.Array:
    """Text of 24 to 30 bytes, such as a session cookie or a device's name."""
    letters = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz0123456789", np.uint8)
    drawn = letters[rng.integers(0, len(letters), (keys, 22))].tobytes()
    return pa.array([f"{drawn[22 * i : 22 * i + 14 + i % 7].decode()}-{i:09d}" for i in range(keys)])


def _integers(rng: np.random.Generator, keys: int, weight: str) -> Numbers:
    """Identifiers as a database numbers them; of the sparse ones anywhere in 40 bits."""
    if weight != "sparse":
        return np.arange(keys) + 1_000_000
    return rng.integers(0, 2**40, keys)
