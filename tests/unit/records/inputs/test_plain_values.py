"""No way in loses a digit of a whole number, whatever stands beside it."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sessionkit as sk
from sessionkit.errors import UnknownRecord, UnsupportedData

ADA, BOB = 1_234_567_890_123_456_788, 1_234_567_890_123_456_789  # one float
AT_NS, AT_MS = 1_700_000_000_122_999_999, 1_700_000_000_122  # as a float it lies in the next millisecond
LARGE = 2**61 + 1
NAMES = ["partition", "offset", "user", "at", "amount"]
ROWS = [
    dict(zip(NAMES, row, strict=True))
    for row in [
        (0, 0, ADA, AT_NS, LARGE), (0, 1, BOB, AT_NS + 1_000_000, LARGE + 2), (0, 2, None, AT_NS, 1),
        (0, 3, ADA, AT_NS + 2_000_000, None), (0, 4, ADA, None, 1), (0, 5, ADA, AT_NS + 3_000_000, LARGE + 1),
    ]
]  # fmt: skip
COLUMNS: dict[str, list[Any]] = {name: [row[name] for row in ROWS] for name in NAMES}
INTEGERS = pa.table({name: pa.array(values, pa.int64()) for name, values in COLUMNS.items()})


def with_missing(value: Any) -> list[dict[str, Any]]:
    return [{name: value if each is None else each for name, each in row.items()} for row in ROWS]


def as_csv() -> io.BytesIO:
    text = io.StringIO()
    writer = csv.DictWriter(text, NAMES)
    writer.writeheader()
    writer.writerows(ROWS)
    return io.BytesIO(text.getvalue().encode())


def as_parquet() -> io.BytesIO:
    buffer = io.BytesIO()
    pq.write_table(INTEGERS, buffer)
    buffer.seek(0)
    return buffer


WAYS: dict[str, Callable[[], Any]] = {
    "list": lambda: ROWS,
    "list without what is missing": lambda: [{k: v for k, v in row.items() if v is not None} for row in ROWS],
    "list with NaN": lambda: with_missing(float("nan")), "list with NA": lambda: with_missing(pd.NA),
    "dict": lambda: COLUMNS,
    "dict of arrays": lambda: {name: np.array(values, object) for name, values in COLUMNS.items()},
    "dict of Arrow": lambda: {name: INTEGERS[name] for name in NAMES},
    "dict of polars": lambda: {name: pl.Series(values) for name, values in COLUMNS.items()},
    "dict of pandas": lambda: {name: pd.array(values, "Int64") for name, values in COLUMNS.items()},
    "JSON lines": lambda: io.BytesIO("".join(json.dumps(row) + "\n" for row in ROWS).encode()),
    "JSON": lambda: io.BytesIO(json.dumps(ROWS).encode()), "CSV": as_csv, "Parquet": as_parquet,
    "Arrow": lambda: INTEGERS, "polars": lambda: pl.from_arrow(INTEGERS),
    "pandas": lambda: pd.DataFrame(COLUMNS, dtype="Int64"),
    "pandas by Arrow": lambda: INTEGERS.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas with objects": lambda: pd.DataFrame(COLUMNS, dtype=object),
    "pandas with objects and NaN": lambda: pd.DataFrame(with_missing(float("nan")), dtype=object),
    "DuckDB": lambda: duckdb.from_arrow(INTEGERS),
}  # fmt: skip


def plan() -> sk.Plan:
    source = sk.group_by_key(
        "user",
        timestamp="at",
        unit="ns",
        partition="partition",
        offset="offset",
        on_bad_time="drop",
        types={"user": "int64"},
    )
    return source.windowed_by(sk.SessionWindows(inactivity_gap="1s", grace="1m")).aggregate(
        total=sk.sum("amount"),
        least=sk.min("amount"),
        most=sk.max("amount"),
        first=sk.first("amount"),
        last=sk.last("amount"),
        all=sk.collect("amount"),
    )


EXPECTED = [
    {
        "user": ADA, "start": AT_MS, "end": AT_MS + 3, "total": 2 * LARGE + 1, "least": LARGE, "most": LARGE + 1,
        "first": LARGE, "last": LARGE + 1, "all": [LARGE, None, LARGE + 1],
    },
    {"user": BOB, "start": AT_MS + 1, "end": AT_MS + 1} | dict.fromkeys(("total", "least", "most"), LARGE + 2)
    | {"first": LARGE + 2, "last": LARGE + 2, "all": [LARGE + 2]},
]  # fmt: skip


def told(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found = []
    for row in rows:
        row = dict(row)
        for name in ("start", "end"):
            row[name] = round(row.pop(f"window_{name}").timestamp() * 1000)
        found.append({name: row[name] for name in EXPECTED[0]})
    return sorted(found, key=lambda row: row["user"])


@pytest.mark.parametrize("way", list(WAYS))
def test_every_way_in_keeps_all_digits_of_whole_numbers_beside_a_missing_one(way: str) -> None:
    run = plan().run(WAYS[way](), frame="arrow")
    assert told(run.table().to_pylist()) == EXPECTED
    assert len(run.dropped()) == 2
    assert "1234567890123456789" in str(run.explain(key=BOB, window_start=AT_MS + 1))
    assert plan().run(WAYS[way](), keys=[BOB], frame="arrow").table()["user"].to_pylist() == [BOB]


@pytest.mark.spark
def test_spark_keeps_all_digits_of_whole_numbers_beside_a_missing_one(spark: Any) -> None:
    df = spark.createDataFrame(ROWS, ", ".join(f"{name} long" for name in NAMES))
    assert told([row.asDict() for row in plan().run(df).table().collect()]) == EXPECTED


FLOATS = {
    "pandas": pd.DataFrame(ROWS),
    "pandas with a category": pd.DataFrame(ROWS).assign(user=lambda df: df["user"].astype("category")),
    "dict": {name: pd.DataFrame(ROWS)[name] for name in NAMES},
    "list": [{"user": float(ADA), "offset": 1_000}],
    "Arrow": pa.Table.from_pandas(pd.DataFrame(ROWS)),
    "polars": pl.from_pandas(pd.DataFrame(ROWS)),
    "32 bits": pa.table({"user": pa.array([2, 2**24], pa.float32()), "offset": [1_000, 2_000]}),
}


@pytest.mark.parametrize("way", list(FLOATS))
def test_floats_that_may_have_lost_digits_are_refused_as_keys(way: str) -> None:
    value, row, digits = ("16777216.0", 1, 24) if way == "32 bits" else ("1.2345678901234568e+18", 0, 53)
    steps = sk.group_by_key("user", timestamp="offset", unit="ms")
    steps = steps.windowed_by(sk.SessionWindows(inactivity_gap="1s", grace="1m")).count()
    for attempt in (
        lambda: steps.run(FLOATS[way]),
        lambda: sk.sessionize(FLOATS[way], by="user", at="offset", gap="1s", unit="ms"),
        lambda: sk.sweep(steps, FLOATS[way], grace=["0s"]),
    ):
        with pytest.raises(UnsupportedData) as caught:
            attempt()
        assert str(caught.value) == (
            f"key column 'user' has a float from 2**{digits} on, whose last digits may be lost; "
            f"got {value} in row {row}; "
            "read it as integers, such as dtype={'user': \"Int64\"} in pandas.read_csv; "
            "df['user'].astype(\"Int64\") takes the numbers as they are now"
        )


@pytest.mark.parametrize("way", ["pandas", "dict", "Arrow", "polars"])
@pytest.mark.parametrize("on_bad_time", ["refuse", "drop"])
def test_floats_that_may_have_lost_digits_are_refused_as_times(way: str, on_bad_time: str) -> None:
    steps = sk.group_by_key("partition", timestamp="at", unit="ns", on_bad_time=on_bad_time)
    with pytest.raises(UnsupportedData) as caught:
        steps.windowed_by(sk.SessionWindows(inactivity_gap="1s", grace="1m")).count().run(FLOATS[way])
    assert str(caught.value).startswith("column 'at' has a float from 2**53 on, whose last digits may be lost; got 1.7")
    assert "in row 0; read it as integers, such as dtype={'at': \"Int64\"} in pandas.read_csv; df['at'].astype(" in str(
        caught.value
    )


def test_as_values_large_floats_are_numbers_like_any_other() -> None:
    steps = sk.group_by_key("partition", timestamp="offset", unit="ms")
    run = steps.windowed_by(sk.SessionWindows(inactivity_gap="1s", grace="1m")).aggregate(most=sk.max("amount"))
    assert run.run(FLOATS["pandas"]).table()["most"].tolist() == [float(LARGE + 2)]


def test_floats_below_are_integers() -> None:
    steps = sk.group_by_key("user", timestamp="at", unit="ms")
    largest = 2**53 - 1
    run = steps.windowed_by(sk.SessionWindows(inactivity_gap="1s", grace="1m")).count().run(
        pd.DataFrame({"user": [float(largest), None, float(-largest)], "at": [1.0, 2.0, 3.0]})
    )  # fmt: skip
    assert set(run.table()["user"]) == {largest, -largest}
    assert "9007199254740991" in str(run.explain(key=float(largest), window_start=1))


@pytest.mark.parametrize("key", [BOB + 0.0, np.float64(BOB), 1.5, float("nan")])
def test_a_float_is_the_key_of_no_other_integer(key: float) -> None:
    run = plan().run([*ROWS, {"partition": 0, "offset": 6, "user": 1, "at": AT_NS, "amount": 1}])
    with pytest.raises(UnknownRecord, match="this key is not in the run"):
        run.explain(key=key, window_start=AT_MS)
    with pytest.raises(UnknownRecord, match="this key is not in the run"):
        plan().run(ROWS, keys=[key])


@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
def test_what_a_store_shows_keeps_all_digits_beside_a_missing_one(kind: str, tmp_path: Any) -> None:
    options: dict[str, Any] = {"directory": tmp_path} if kind == "rocksdb" else {}
    last = plan().aggregate(last=sk.last("amount"))
    rows = [*ROWS, {"partition": 0, "offset": 6, "user": 1, "at": AT_NS, "amount": None}]
    with sk.open_store(kind, "digits", retention="1h", **options) as store:
        last.run(rows, store=store)
        shown = store.to_pandas()
        assert {
            key: None if pd.isna(last) else last for key, last in zip(shown["key"], shown["aggregate"], strict=True)
        } == {1: None, ADA: LARGE + 1, BOB: LARGE + 2}


@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
def test_values_that_are_all_missing_leave_what_a_store_holds_as_it_is(kind: str, tmp_path: Any) -> None:
    options: dict[str, Any] = {"directory": tmp_path} if kind == "rocksdb" else {}
    more = [{"partition": 0, "offset": 6, "user": ADA, "at": AT_NS, "amount": None}]
    with sk.open_store(kind, "digits", retention="1h", **options) as store:
        plan().run(ROWS, store=store)
        run = plan().run(more, store=store, frame="arrow")
    assert told(run.table().to_pylist()) == [{**EXPECTED[0], "all": [*EXPECTED[0]["all"], None]}]
