"""Which Parquet files tasks may read by themselves: one partition a row group, proved by the files, or not at all."""

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sessionkit.errors import InvalidData
from sessionkit.spark.reading import row_groups as parquet_layout
from sessionkit.spark.reading.row_groups import NotApart, ParquetFile, Wanted, read, row_groups

SCHEMA = pa.schema(
    [("c0", pa.string()), ("c1", pa.timestamp("us", "America/New_York")), ("c2", pa.int32()), ("c3", pa.int64())]
)
WANTED = Wanted(("key", "at", "partition", "offset"), SCHEMA, 2, 3)


def table(partition: int | list[int | None], /, *offsets: int | None, **changes: Any) -> pa.Table:
    size = len(offsets)
    columns: dict[str, Any] = {
        "offset": pa.array(offsets, pa.int64()),
        "other": np.zeros(size),
        "key": pa.array([f"k{i}" for i in range(size)], pa.string()),
        "at": pa.array([datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)] * size, pa.timestamp("us", "UTC")),
        "partition": pa.array([partition] * size if isinstance(partition, int) else partition, pa.int32()),
    }
    return pa.table({**columns, **changes})


def written(folder: Path, *tables: pa.Table, **options: Any) -> list[ParquetFile]:
    """A file a table."""
    files = []
    for number, each in enumerate(tables):
        path = folder / f"{number}.parquet"
        pq.write_table(each, path, **options)
        files.append(ParquetFile(str(path), path.stat().st_size))
    return files


def test_row_groups_come_by_partition_and_offset(tmp_path: Path) -> None:
    files = written(tmp_path, table(1, 7, 9), table(0, 5, 3, 4), table(1, 2), table(4).slice(0, 0))
    groups = row_groups(files, WANTED)
    assert [group[:4] for group in groups] == [(0, 3, 5, 3), (1, 2, 2, 1), (1, 7, 9, 2)]
    batches = list(read(groups, WANTED))
    assert all(batch.schema == SCHEMA for batch in batches)
    got = pa.Table.from_batches(batches)
    assert got["c3"].to_pylist() == [3, 4, 5, 2, 7, 9]
    assert got["c0"].to_pylist() == ["k1", "k2", "k0", "k0", "k0", "k1"]
    assert str(got["c1"][0]) == "2025-12-31 19:00:00-05:00"


@pytest.mark.parametrize(
    ("tables", "options", "reason"),
    [
        ([table([0, 1], 1, 2)], {}, "holds partitions 0 to 1"),
        ([table(0, 1, 5), table(0, 5, 9)], {}, "offsets of partition 0 overlap in 0.parquet and 1.parquet"),
        ([table([0, None], 1, 2)], {}, "missing in a record"),
        ([table(0, 1, None)], {}, "missing in a record"),
        ([table(0, 1, 2)], {"write_statistics": False}, "no statistics"),
        ([table(-1, 1)], {}, "below 0"),
        ([table(0, 1), table(0, 2).drop_columns("key")], {}, "1.parquet has no column 'key'"),
        ([table(0, 1, KEY=["a"])], {}, "no column 'key'"),  # Spark would not know which
        ([table(0, 1, key=[b"a"])], {}, "column 'key' is binary in 0.parquet, and string in Spark"),
        ([table(0, 1, partition=pa.array([0], pa.int64()))], {}, "column 'partition' is int64"),
        ([table(0, 1, at=pa.array([0], pa.timestamp("us")))], {}, "column 'at' is timestamp"),
        ([table(0, 1, at=pa.array([0], pa.timestamp("ns", "UTC")))], {}, "column 'at' is timestamp"),
        ([table(0, 1)], {"use_deprecated_int96_timestamps": True}, "column 'at' is timestamp"),
        ([table(0, 1).replace_schema_metadata({"org.apache.spark.legacyDateTime": ""})], {}, "an old version of Spark"),
        ([table(0, 1).replace_schema_metadata({"org.apache.spark.version": "2.4.8"})], {}, "an old version of Spark"),
    ],
)
def test_anything_else_is_left_to_spark(
    tmp_path: Path, tables: list[pa.Table], options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(NotApart, match=reason):
        row_groups(written(tmp_path, *tables, **options), WANTED)


def test_row_groups_that_a_task_cannot_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_layout, "ROW_GROUP_BYTES", 100)
    with pytest.raises(NotApart, match="larger than 100 bytes"):
        row_groups(written(tmp_path, table(0, 1, 2)), WANTED)


def test_times_as_spark_usually_writes_them(tmp_path: Path) -> None:
    """As 96 bits, in UTC; the version says that it was Spark."""
    path, records = tmp_path / "0.parquet", table(0, 1)
    with pq.ParquetWriter(path, records.schema, use_deprecated_int96_timestamps=True, store_schema=False) as writer:
        writer.write_table(records)
        writer.add_key_value_metadata({"org.apache.spark.version": "4.2.1"})
    files = [ParquetFile(str(path), path.stat().st_size)]
    got = pa.Table.from_batches(read(row_groups(files, WANTED), WANTED))
    assert got["c1"][0].value == table(0, 1)["at"][0].value


def test_text_of_any_form(tmp_path: Path) -> None:
    for kind in (pa.large_string(), pa.dictionary(pa.int8(), pa.string())):
        files = written(tmp_path, table(0, 1, 2, key=pa.array(["a", None]).cast(kind)))
        got = pa.Table.from_batches(read(row_groups(files, WANTED), WANTED))
        assert got["c0"].to_pylist() == ["a", None]


def test_the_partition_of_a_folder(tmp_path: Path) -> None:
    file = written(tmp_path, table(0, 2, 1).drop_columns("partition"))[0]._replace(partition=7)
    groups = row_groups([file], WANTED)
    assert groups[0].partition == 7
    got = pa.Table.from_batches(read(groups, WANTED))
    assert got["c2"].to_pylist() == [7, 7]
    assert got["c3"].to_pylist() == [1, 2]


def test_a_file_that_changed_is_not_read(tmp_path: Path) -> None:
    files = written(tmp_path, table(0, 1, 2))
    with pytest.raises(NotApart, match="changed since Spark listed it"):
        row_groups([files[0]._replace(size=1)], WANTED)
    groups = row_groups(files, WANTED)
    with pytest.raises(InvalidData, match=r"has changed since the run was created; got 0.parquet was written again"):
        list(read([groups[0]._replace(changed_ns=1)], WANTED))
    with pytest.raises(InvalidData, match="statistics of a Parquet file are wrong"):
        list(read([groups[0]._replace(last=1)], WANTED))
    Path(files[0].path).unlink()
    with pytest.raises(NotApart, match="a file cannot be read here"):
        row_groups(files, WANTED)
