"""Row groups that are read side by side are the file, whatever its columns hold; times may come in milliseconds."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.records.files import parquet
from sessionkit.records.files.parquet import Landing, parquet_table

NUMBERS = (pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64())
OTHERS = (pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary(), pa.date32(), pa.decimal128(10, 2))
TIMES = tuple(pa.timestamp(unit, zone) for unit in ("ms", "us", "ns") for zone in (None, "UTC", "Asia/Tokyo"))


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small row groups are read one by one."""
    monkeypatch.setattr(parquet, "_READ_TOGETHER", 1)


def _column(rng: np.random.Generator, kind: pa.DataType, rows: int) -> pa.Array:
    """Random values, negative ones too; of a third of the columns some are missing, or all of a row group are."""
    numbers = pa.array(rng.integers(-99 if "u" not in str(kind)[:1] else 0, 100, rows))
    if pa.types.is_timestamp(kind):
        wide = rng.integers(-(10**9), 10**18 // {"ms": 10**6, "us": 10**3, "ns": 1}[kind.unit], rows)
        column = pa.array(wide).cast(kind)
    elif pa.types.is_floating(kind):
        column = pa.array(rng.choice([0.0, -0.0, np.nan, np.inf, 1.5], rows)).cast(kind)
    elif pa.types.is_date(kind):
        column = numbers.cast(pa.int32()).cast(kind)
    elif pa.types.is_decimal(kind):
        column = numbers.cast(pa.decimal128(21, 2)).cast(kind)
    elif kind in (pa.string(), pa.binary()):
        column = numbers.cast(pa.string()).cast(kind)
    else:
        column = numbers.cast(kind) if kind != pa.bool_() else pc.greater(numbers, 0)
    missing = rng.random(rows) < rng.choice([0, 0, 0.1])
    if rng.random() < 0.1:
        missing[: rows // 3] = True
    return pc.if_else(pa.array(missing), pa.scalar(None, kind), column)


def _table(seed: int) -> pa.Table:
    rng = np.random.default_rng([seed, 31])
    rows = int(rng.integers(0, 60))
    kinds = (*NUMBERS, *OTHERS, *TIMES)
    return pa.table({f"{at} {kind}": _column(rng, kind, rows) for at, kind in enumerate(kinds)})


def _shown(table: pa.Table) -> list[list[str]]:
    """NaN is equal to itself here, and zeros have their signs."""
    return [[repr(value) for value in column.cast(_as_number(column.type)).to_pylist()] for column in table.columns]


def _as_number(kind: pa.DataType) -> pa.DataType:
    return pa.int64() if pa.types.is_timestamp(kind) else kind


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(40))
def test_row_groups_are_the_file(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SESSIONKIT_THREADS", str(1 + seed % 3))
    path = str(tmp_path / "t.parquet")
    monkeypatch.setattr(parquet, "_READ_TOGETHER", (1, 7, 25, 10**6)[seed % 4])
    pq.write_table(_table(seed), path, row_group_size=1 + seed // 2)
    whole, parts = pq.read_table(path), parquet_table(path)
    assert parts.schema.equals(whole.schema)
    assert _shown(parts) == _shown(whole)


@pytest.mark.lengthy
@pytest.mark.parametrize("seed", range(40))
def test_times_with_a_zone_come_in_milliseconds_rounded_down(seed: int, tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    pq.write_table(_table(seed), path, row_group_size=1 + seed % 20)
    whole = pq.read_table(path)
    parts = parquet_table(path, milliseconds=whole.column_names)
    is_alone = pq.ParquetFile(path).num_row_groups < 2  # nothing is joined, so it stays as Arrow gives it
    for name in whole.column_names:
        given, found = whole[name], parts[name]
        scaled = pa.types.is_timestamp(given.type) and given.type.tz is not None and not is_alone
        assert found.type == (pa.timestamp("ms", given.type.tz) if scaled else given.type), name
        if scaled:
            finer = {"ms": 1, "us": 1_000, "ns": 1_000_000}[given.type.unit]
            numbers = given.cast(pa.int64()).to_pylist()
            assert found.cast(pa.int64()).to_pylist() == [None if n is None else n // finer for n in numbers], name


def test_numbers_lie_in_one_piece(tmp_path: Path) -> None:
    path = str(tmp_path / "t.parquet")
    pq.write_table(pa.table({"n": range(10), "m": [None, *range(9)], "t": list("abcdefghij")}), path, row_group_size=3)
    parts = parquet_table(path)
    assert [parts[name].num_chunks for name in ("n", "m", "t")] == [1, 4, 4]


def test_a_row_group_of_another_size_is_refused() -> None:
    landing = Landing([2, 3])
    with pytest.raises(pa.ArrowInvalid, match="row groups have 2 rows in place of 3"):
        landing.land(1, pa.table({"n": [1, 2]}))


@pytest.mark.parametrize("rows", [2**40, 2**62])
def test_a_number_of_rows_that_cannot_be_is_refused(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_memory(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr("sessionkit.records.files.parquet.np.empty", no_memory)
    with pytest.raises(pa.ArrowInvalid, match="rows, for which there is no memory"):
        Landing([2, rows]).land(0, pa.table({"n": [1, 2]}))


def test_a_column_that_is_time_and_value_keeps_all_of_it(tmp_path: Path) -> None:
    """Milliseconds would do for the time alone."""
    path = str(tmp_path / "t.parquet")
    times = pa.array([1_500, 2_750, 3_999], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"k": ["a"] * 3, "at": times}), path, row_group_size=2)
    windows = sk.SessionWindows(inactivity_gap="1s", grace="0s")
    plan = sk.group_by_key("k", timestamp="at").windowed_by(windows).aggregate(last=sk.last("at"), all=sk.collect("at"))
    found = plan.run(path, frame="arrow").table()
    assert found["last"].cast(pa.int64()).to_pylist() == [3_999]
    assert found["window_start"].cast(pa.int64()).to_pylist() == [1]
