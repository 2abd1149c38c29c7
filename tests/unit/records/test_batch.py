"""Records from any frame: columns found, checked and coded; the parameters of a source."""

import io
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sessionkit.base.decisions import BAD_TIME, NEGATIVE_TIME, NULL_KEY
from sessionkit.errors import InvalidArgument, InvalidData, MissingColumn, UnsupportedData
from sessionkit.records.batch import PythonObjects, read_records
from sessionkit.records.frames import FrameKind, to_frame
from sessionkit.records.places import partition_for
from sessionkit.records.source import Source

TABLE = pa.table(
    {"user": ["ada", "bob", None, "ada"], "at": pa.array([5, 3, 9, 7], pa.timestamp("ms", "UTC")),
     "partition": pa.array([7, 2, 7, 2], pa.int32()), "offset": [10, 0, 12, 5], "amount": [1.5, None, 2.5, 3.5],
     "unused": [[1], [2], [3], [4]]},
)  # fmt: skip


def source(**options: Any) -> Source:
    return Source(**{"keys": ("user",), "timestamp": "at", **options})


def placed(**options: Any) -> Source:
    return source(partition="partition", offset="offset", **options)


def frames(tmp_path: Path) -> dict[str, tuple[Any, FrameKind]]:
    table, file = TABLE, tmp_path / "records.parquet"
    pq.write_table(table, file)
    pandas = table.to_pandas()
    return {
        "pyarrow": (table, "arrow"), "record batch": (table.combine_chunks().to_batches()[0], "arrow"),
        "reader": (table.to_reader(max_chunksize=3), "arrow"),
        "chunks": (pa.concat_tables([table.slice(0, 1), table.slice(1)]), "arrow"), "pandas": (pandas, "pandas"),
        "pandas with other types": (pandas.convert_dtypes(), "pandas"),
        "pandas with categories": (pandas.astype({"user": "category"}), "pandas"),
        "polars": (pl.from_arrow(table), "polars"), "duckdb": (duckdb.from_arrow(table), "arrow"),
        "path": (file, "pandas"), "path as text": (str(file), "pandas"),
    }  # fmt: skip


FRAMES = ["pyarrow", "record batch", "reader", "chunks", "pandas", "pandas with other types", "pandas with categories"]


@pytest.mark.parametrize("kind", [*FRAMES, "polars", "duckdb", "path", "path as text"])
def test_every_frame_gives_the_same_records(kind: str, tmp_path: Path) -> None:
    data, frame = frames(tmp_path)[kind]
    batch = read_records(data, placed(), ("amount",))
    assert batch.frame == frame
    assert len(batch) == 4
    keys = batch.keys.to_pylist()
    assert [None if code < 0 else keys[code] for code in batch.key] == ["ada", "bob", None, "ada"]
    assert batch.timestamp_ms.tolist() == [5, 3, 9, 7]
    assert batch.partitions.tolist() == [2, 7]
    assert batch.partition.tolist() == [1, 0, 1, 0]
    assert batch.offset.tolist() == [10, 0, 12, 5]
    assert batch.rejected is not None
    assert batch.rejected.tolist() == [0, 0, NULL_KEY, 0]
    assert list(batch.values) == ["amount"]
    assert batch.values["amount"].to_pylist() == [1.5, None, 2.5, 3.5]
    types = [column.dtype.name for column in (batch.key, batch.timestamp_ms, batch.partition, batch.offset)]
    assert types == ["int32", "int64", "int32", "int64"]


@pytest.mark.parametrize(("data", "telling"), [
    (None, "NoneType; a frame (pandas, polars, pyarrow, DuckDB), the path of a file, folder or glob, an open"),
    (17, "int; a frame (pandas, polars, pyarrow, DuckDB)"), (object, "type; a frame (pandas, polars, pyarrow, DuckDB)"),
    (np.zeros(3), "ndarray; pandas.DataFrame(array, columns=[…])"),
    (pl.Series("user", ["ada"]), "Series; data.to_frame()"), (pd.Series(["ada"]), "Series; data.to_frame()"),
    (b"user,at", "bytes; io.BytesIO(data) if these are the bytes of a file"),
    (io.StringIO("user,at"), 'StringIO; a file opened as binary: open(path, "rb")'),
    (iter([{"user": "ada"}]), "list_iterator; list(rows), if these are dicts"),
])  # fmt: skip
def test_what_is_no_frame(data: Any, telling: str) -> None:
    with pytest.raises(UnsupportedData) as caught:
        read_records(data, source(), ())
    assert str(caught.value).startswith(f"these are not records; got {telling}")


def test_a_column_alone_is_no_frame() -> None:
    with pytest.raises(UnsupportedData, match="the frame cannot be read as columns"):
        read_records(pa.chunked_array([[1, 2]]), source(), ())


def test_a_missing_column_is_named_beside_those_there_are() -> None:
    for data in (TABLE, TABLE.to_pandas(), pl.from_arrow(TABLE), duckdb.from_arrow(TABLE)):
        with pytest.raises(MissingColumn) as caught:
            read_records(data, source(timestamp="when"), ())
        have = "'user', 'at', 'partition', 'offset', 'amount', 'unused'"
        assert str(caught.value) == f"column 'when' is not in the data; got {have}; name one of these"
        assert isinstance(caught.value, KeyError)
        with pytest.raises(MissingColumn, match="column 'price' is not in the data"):
            read_records(data, source(), ("price",))
        with pytest.raises(MissingColumn, match="column 'place' is not in the data"):
            read_records(data, source(offset="place"), ())


def test_no_columns_at_all() -> None:
    for data in (pd.DataFrame(index=range(3)), pl.DataFrame(), pa.table({})):
        with pytest.raises(MissingColumn, match="column 'user' is not in the data; got no columns"):
            read_records(data, source(), ())


def test_a_column_that_is_there_twice() -> None:
    twice = pa.table([["a"], [1], [2]], names=["user", "at", "at"])
    for data in (twice, twice.to_pandas()):
        with pytest.raises(InvalidData, match=r"column 'at' appears 2 times; got .*; rename all but one"):
            read_records(data, source(unit="ms"), ())
    spare = pa.table([["a"], [1], [2], [3]], names=["user", "at", "spare", "spare"])
    assert len(read_records(spare, source(unit="ms"), ())) == 1
    assert len(read_records(spare.to_pandas(), source(unit="ms"), ())) == 1


def test_one_column_may_have_several_uses() -> None:
    batch = read_records(TABLE, placed(), ("offset", "user", "at"))
    assert batch.values["offset"].to_pylist() == [10, 0, 12, 5]


@pytest.mark.parametrize(
    "data",
    [TABLE.slice(0, 0), TABLE.slice(0, 0).to_pandas(), pl.from_arrow(TABLE.slice(0, 0)),
     TABLE.schema.empty_table().to_reader(), pd.DataFrame({name: [] for name in TABLE.column_names}),
     pl.DataFrame({name: [] for name in TABLE.column_names})],
    ids=["pyarrow", "pandas", "polars", "reader", "pandas without types", "polars without types"],
)  # fmt: skip
def test_no_rows(data: Any) -> None:
    batch = read_records(data, source(), ("amount",))
    assert (len(batch), len(batch.keys), len(batch.offset)) == (0, 0, 0)
    assert batch.partitions.tolist() == [0]


def test_no_rows_of_named_partitions() -> None:
    assert read_records(TABLE.slice(0, 0), placed(), ()).partitions.tolist() == []


def test_offsets_count_up_where_none_are_given() -> None:
    batch = read_records(TABLE, source(), ())
    assert (batch.offset.tolist(), batch.partitions.tolist()) == ([0, 1, 2, 3], [0])
    batch = read_records(TABLE, source(partition="partition"), ())
    assert batch.offset.tolist() == [0, 0, 1, 1]
    later = batch.replace(first_offset=np.array([5, 50]))
    assert later.offset.tolist() == [50, 5, 51, 6]


def test_kafka_s_partitioner_places_the_keys() -> None:
    batch = read_records(TABLE, source(partitions=4), ())
    ada, bob = partition_for("ada", 4), partition_for("bob", 4)
    assert batch.partitions.tolist() == [0, 1, 2, 3]
    assert batch.partition.tolist() == [ada, bob, 0, ada]


@pytest.mark.parametrize(("column", "values", "telling"), [
    ("offset", [0, 1, 1, 2], "an offset appears twice; got partition 2, row 2: offset 1 after 1; remove the duplicate"),
    ("offset", [0, 2, 1, 3],
     "offsets must increase within a partition; got partition 2, row 2: offset 1 after 2; give"),
    ("offset", [0, None, 1, None], "offset column 'offset' has missing values; got 2 (rows 1, 3)"),
    ("offset", [0, 1, -5, 2], "offset column 'offset' has a negative number; got -5 in row 2; Kafka counts from 0"),
    ("offset", [0.0, 1.0, 2.0, 3.0], "offset column 'offset' must hold integers; got double; cast it"),
    ("offset", ["0", "1", "2", "3"], "offset column 'offset' must hold integers; got string"),
    ("offset", pa.array([0, 1, 2, 2**63], pa.uint64()), "offset column 'offset' has a number that is too large"),
    ("partition", [0, -1, 0, 0], "partition column 'partition' has a negative number; got -1 in row 1"),
    ("partition", ["a", "b", "c", "d"], "partition column 'partition' must hold integers; got string"),
    ("partition", [0, None, 0, 0], "partition column 'partition' has missing values; got 1 (rows 1)"),
])  # fmt: skip
def test_places_that_cannot_be(column: str, values: Any, telling: str) -> None:
    table = TABLE.set_column(2, "partition", pa.array([2] * 4)).set_column(3, "offset", pa.array(range(4)))
    table = table.set_column(
        table.column_names.index(column), column, pa.array(values) if isinstance(values, list) else values
    )
    with pytest.raises((InvalidData, UnsupportedData)) as caught:
        read_records(table, placed(), ())
    assert telling in str(caught.value)


@pytest.mark.parametrize("numbers", [[5_000, 2, 5_000, 9], [2**40, 0, 2**40, 1], [4_095, 4_096, 4_095, 0]])
@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
def test_large_partition_numbers(numbers: list[int], kind: pa.DataType) -> None:
    table = TABLE.set_column(2, "partition", pa.array(numbers, kind))
    batch = read_records(table, source(partition="partition"), ())
    assert batch.partitions.tolist() == sorted(set(numbers))
    assert batch.partitions[batch.partition].tolist() == numbers


@given(st.permutations(range(8)), st.lists(st.integers(0, 2), min_size=8, max_size=8))
def test_sorting_gives_each_partition_its_order(order: list[int], partitions: list[int]) -> None:
    table = pa.table({"user": ["a"] * 8, "at": order, "partition": partitions, "offset": order})
    batch = read_records(table, placed(unit="ms", sort=True), ())
    for p in set(partitions):
        mine = batch.timestamp_ms[batch.partitions[batch.partition] == p].tolist()
        assert mine == sorted(t for t, q in zip(order, partitions, strict=True) if q == p)


def test_sorting_keeps_duplicates_refused() -> None:
    table = pa.table({"user": ["a"] * 3, "at": [1, 2, 3], "offset": [4, 2, 4]})
    with pytest.raises(InvalidData, match="an offset appears twice"):
        read_records(table, source(unit="ms", offset="offset", sort=True), ())


def test_why_a_record_is_rejected() -> None:
    table = pa.table({"user": ["a", None, None, "a", None], "at": [1, 2, None, -1, -1]})
    batch = read_records(table, source(unit="ms", on_bad_time="drop"), ())
    assert batch.rejected is not None
    assert batch.rejected.tolist() == [0, NULL_KEY, BAD_TIME, NEGATIVE_TIME, NEGATIVE_TIME]
    assert read_records(table.slice(0, 1), source(unit="ms", on_bad_time="drop"), ()).rejected is None


class Custom:
    """Something that Arrow does not know."""


def test_python_objects_come_through_for_python_functions() -> None:
    objects = [{1, 2}, (1, "two"), Custom(), 2**80, b"x", "x", {"a": 1}, None, float("nan"), pd.NaT]
    frame = pd.DataFrame({"user": ["a"] * 10, "at": range(10), "thing": pd.Series(objects, dtype=object)})
    column = read_records(frame, source(unit="ms"), ("thing",)).values["thing"]
    assert isinstance(column, PythonObjects)
    assert all(one is other for one, other in zip(column.to_pylist()[:7], objects[:7], strict=True))
    assert column.to_pylist()[7:] == [None] * 3
    assert column.slice(2, 1).to_pylist() == column[2:3].to_pylist() == [objects[2]]
    assert len(column) == 10


@pytest.mark.parametrize("things", [[{"a": 1}, {"b": 2}], [(1,), (2, 3)], [[1], [2]], [b"x", "x"], [1, "x"]])
def test_objects_that_arrow_would_change_stay_as_they_are(things: list[Any]) -> None:
    frame = pd.DataFrame({"user": ["a", "a"], "at": [1, 2], "thing": pd.Series(things, dtype=object)})
    assert read_records(frame, source(unit="ms"), ("thing",)).values["thing"].to_pylist() == things


def test_objects_are_sorted_with_their_records() -> None:
    things = [{3}, {1}, {2}]
    frame = pd.DataFrame({"user": ["a"] * 3, "at": [3, 1, 2], "offset": [3, 1, 2], "thing": things})
    batch = read_records(frame, source(unit="ms", offset="offset", sort=True), ("thing",))
    assert batch.values["thing"].to_pylist() == [{1}, {2}, {3}]


@pytest.mark.parametrize("frame", ["pandas", "polars", "arrow"])
def test_what_goes_in_comes_out(frame: FrameKind) -> None:
    kinds = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.Table}
    assert isinstance(to_frame(TABLE, frame), kinds[frame])


@pytest.mark.parametrize(("options", "telling"), [
    ({"keys": (["a", "b"],)},
     'key 0 must be text; got [\'a\', \'b\']; group_by_key("a", "b", sep="@", timestamp="at")'),
    ({"keys": ("a", 5), "sep": "@"}, "key 1 must be text; got 5"),
    ({"timestamp": None}, "timestamp must be text; got None"), ({"partition": 0}, "partition must be text; got 0"),
    ({"offset": ["o"]}, "offset must be text; got ['o']"), ({"timezone": 5}, "timezone must be text; got 5"),
    ({"keys": ("a", "b"), "sep": 5}, "sep must be text; got 5"),
    ({"unit": "h"}, "unit must be a known choice; got 'h'; one of None, 's', 'ms', 'us', 'ns'"),
    ({"unit": ["s"]}, "unit must be a known choice; got ['s']"),
    ({"on_bad_time": "ignore"}, "on_bad_time must be a known choice; got 'ignore'; one of 'refuse', 'drop'"),
    ({"ambiguous": "both"}, "must be a known choice; got 'both'; one of 'raise', 'earliest', 'latest', 'infer'"),
    ({"nonexistent": True}, "nonexistent must be a known choice; got True"),
    ({"partitions": 0}, "partitions must be a number of partitions; got 0; 1 to 1,000,000, and without partition="),
    ({"partitions": 10**9}, "partitions must be a number of partitions; got 1000000000"),
    ({"partitions": 4, "partition": "p"}, "partitions must be a number of partitions; got 4"),
    ({"partitions": "4"}, "partitions must be an integer; got '4'"),
    ({"partitions": True}, "partitions must be an integer; got True"),
    ({"partitions": 2.0}, "partitions must be an integer; got 2.0"),
    ({"sort": True}, "sort=True sorts by the offset column; got no offset=; sort=\"timestamp\" for the order of times"),
    ({"sort": "offset", "offset": "offset"}, "sort must be a known choice; got 'offset'; True, which sorts by"),
    ({"sort": "timestamp", "offset": "o"}, "sort=\"timestamp\" makes an order of its own; got offset='o'; sort=True"),
])  # fmt: skip
def test_parameters(options: dict[str, Any], telling: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        source(**options)
    assert telling in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("values", "kind"), [
    (["x", None], pa.large_string()), ([b"x", None], pa.large_binary()),
    (pl.Series(["x", None], dtype=pl.Categorical), pa.dictionary(pa.uint32(), pa.large_string())),
    (pl.Series(["x", None], dtype=pl.Enum(["x"])), pa.dictionary(pa.uint8(), pa.large_string(), ordered=True)),
    ([["x"], None], pa.large_list(pa.large_string())),
    ([{"a": "x", "b": [b"x"]}, None], pa.struct({"a": pa.large_string(), "b": pa.large_list(pa.large_binary())})),
    ([1, None], pa.int64()),
])  # fmt: skip
def test_text_of_polars_is_no_view(values: Any, kind: pa.DataType) -> None:
    """Arrow's own functions take, join and compare no views."""
    data = pl.DataFrame({"user": ["a", "b"], "at": [1, 2], "v": values})
    column = read_records(data, source(unit="ms"), ("v",)).values["v"]
    assert column.type == kind
    assert column.to_pylist() == list(values)
