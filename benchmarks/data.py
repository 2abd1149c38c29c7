"""Makes the streams that the benchmarks read: Parquet files in arrival order, always the same for the same size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.settings import GAP_MS, GRACE_MS, SLIDING_GRACE_MS

FOLDER = Path(__file__).parent / "data"
KEYS, PARTITIONS = 100_000, 4
DAY_RECORDS, DAY_US = 10_000_000, 86_400_000_000
START_MS = 1_700_000_000_000


def visits(records: int) -> Path:
    """Visits of about 8 records, 8 s apart, by 100,000 keys of very different weight, over a day.

    5 % arrive out of order by up to three gaps, 0.5 % after gap and grace. Columns: partition, offset, key, ts, value.
    """
    path = FOLDER / f"visits-{records}.parquet"
    if path.exists():
        return path
    rng = np.random.default_rng(2013)
    count = records // 8 + records // 200 + 100
    weight = np.cumsum(1.0 / np.arange(1, KEYS + 1) ** 1.1)
    rank = np.searchsorted(weight, rng.random(count) * weight[-1])
    key_of_visit = rng.permutation(KEYS)[np.minimum(rank, KEYS - 1)]
    length = rng.geometric(1 / 8, count)
    first = np.cumsum(length) - length
    visit = np.repeat(np.arange(count), length)
    pause = rng.exponential(8_000, len(visit)).astype(np.int64)
    pause[first] = 0
    since = np.cumsum(pause)
    time = rng.integers(0, 86_400_000, count)[visit] + since - since[first][visit]
    earliest = np.argsort(time, kind="stable")[:records]
    time, key = time[earliest], key_of_visit[visit][earliest]
    luck = rng.random(records)
    delay = np.where(luck < 0.05, rng.integers(1, 3 * GAP_MS, records), 0)
    delay = np.where(luck > 0.995, rng.integers(GAP_MS + GRACE_MS, 10 * GAP_MS + GRACE_MS, records), delay)
    arrival = np.argsort(time + delay, kind="stable")
    return _write(path, key[arrival], START_MS + time[arrival], np.round(rng.gamma(2.0, 10.0, records), 2))


def days(count: int) -> Path:
    """A folder with at least so many files: the visits of a day again and again, each after the one before."""
    folder = FOLDER / "days"
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{day:03}.parquet" for day in range(count)]
    missing = [day for day, file in enumerate(files) if not file.exists()]
    table = pq.read_table(visits(DAY_RECORDS), columns=["key", "ts", "value"]) if missing else None
    for day in missing:
        assert table is not None
        later = pc.add(table["ts"], pa.scalar(day * DAY_US, pa.duration("us")))
        part = FOLDER / "day.part"
        pq.write_table(table.set_column(1, "ts", later), part, row_group_size=1_000_000, compression="zstd")
        part.rename(files[day])
    return folder


def shuffled(records: int) -> Path:
    """`visits` in eight files, the rows in no order."""
    folder = FOLDER / f"shuffled-{records}"
    if not folder.exists():
        table = pq.read_table(visits(records))
        order = np.random.default_rng(2013).permutation(len(table))
        write_files(folder, [table.take(pa.array(rows)) for rows in np.array_split(order, 8)])
    return folder


def kept_apart(records: int) -> Path:
    """`visits` in a file for each partition."""
    folder = FOLDER / f"apart-{records}"
    if not folder.exists():
        table = pq.read_table(visits(records))
        number = table["partition"].to_numpy()
        write_files(folder, [table.filter(pa.array(number == p)) for p in range(PARTITIONS)])
    return folder


def write_files(folder: Path, tables: list[pa.Table]) -> None:
    """A file for each table, in a folder that is there as a whole or not at all."""
    aside = folder.with_name(f".{folder.name}")
    aside.mkdir(parents=True, exist_ok=True)
    for number, table in enumerate(tables):
        pq.write_table(table, aside / f"{number}.parquet", row_group_size=1_000_000, compression="zstd")
    aside.rename(folder)


def one_busy_key(records: int) -> Path:
    """One key, a session for nearly every record, all of them open, arriving in no order."""
    path = FOLDER / f"one-key-{records}.parquet"
    if path.exists():
        return path
    rng = np.random.default_rng(2013)
    time = rng.permutation(records) * (2 * GAP_MS)
    return _write(path, np.zeros(records, np.int64), START_MS + time, np.ones(records))


SLIDING_KEYS = 5_000


def steady(records: int) -> Path:
    """5,000 keys, a record a second each; 1 % of the records come up to 4 s after the grace: partly late, if windows
    are longer than that. Columns as of `visits`, but `value` is a whole number, and there is one partition.
    """
    path = FOLDER / f"steady-{records}.parquet"
    if path.exists():
        return path
    rng = np.random.default_rng(2013)
    time = np.sort(rng.integers(0, max(records // SLIDING_KEYS, 1) * 1_000, records))
    late = rng.random(records) < 0.01
    delay = np.where(late, SLIDING_GRACE_MS + rng.integers(1, 4_000, records), rng.integers(0, 500, records))
    arrival = np.argsort(time + delay, kind="stable")
    key = rng.integers(0, SLIDING_KEYS, records)[arrival]
    return _write(path, key, START_MS + time[arrival], rng.integers(0, 1_000, records), partitions=1)


def _write(path: Path, key: np.ndarray, time_ms: np.ndarray, value: np.ndarray, partitions: int = PARTITIONS) -> Path:
    partition = (key % partitions).astype(np.int32)
    offset = np.empty(len(key), np.int64)
    for p in range(partitions):
        mine = partition == p
        offset[mine] = np.arange(int(mine.sum()))
    names = pa.array([f"user-{number:07d}" for number in range(KEYS)])
    table = pa.table(
        {
            "partition": partition,
            "offset": offset,
            "key": pa.DictionaryArray.from_arrays(pa.array(key), names).cast(pa.string()),
            "ts": pa.array(time_ms * 1000, pa.timestamp("us", tz="UTC")),
            "value": value,
        }
    )
    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(".part")
    pq.write_table(table, part, row_group_size=1_000_000, compression="zstd")
    part.rename(path)
    return path
