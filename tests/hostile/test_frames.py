"""Odd columns of every kind of frame: the right answer, or an error that says what is wrong; never another."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, InvalidData, SessionkitError, UnsupportedData
from tests.deployments import run_by, run_deployed
from tests.kinds import group_in_ms

COUNT = {"n": sk.count()}
INDEX_TYPES = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]


def plan(**results: Any) -> sk.Plan:
    source = group_in_ms("user")
    return source.windowed_by(sk.SessionWindows(inactivity_gap_ms=10, grace=0)).aggregate(**(results or COUNT))


def table(**columns: Any) -> pa.Table:
    size = len(next(iter(columns.values())))
    return pa.table({"user": ["ada"] * size, "at": list(range(size)), **columns})


def refused(error: type[SessionkitError], telling: str, call: Callable[[], Any]) -> None:
    with pytest.raises(error) as caught:
        call()
    assert telling in str(caught.value)
    assert str(caught.value).count(";") >= 2
    assert "\n" not in str(caught.value)


# ---- dictionaries


@pytest.mark.parametrize("codes", INDEX_TYPES, ids=str)
def test_dictionary_keys_with_a_missing_value(codes: pa.DataType) -> None:
    keys = pa.array(["b", None, "a", "b"]).dictionary_encode().cast(pa.dictionary(codes, pa.string()))
    run = plan().run(table(user=keys))
    assert run.table()["key"].to_pylist() == ["a", "b"]
    assert run.dropped()["offset"].to_pylist() == [1]


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["a", "b"])])
def test_categorical_keys_of_polars_with_a_missing_value(kind: Any) -> None:
    keys = pl.Series(["b", None, "a", "b"], dtype=kind)
    run = plan().run(pl.DataFrame({"user": keys, "at": [1, 2, 3, 4]}))
    assert run.table()["key"].to_list() == ["a", "b"]
    assert run.dropped()["offset"].to_list() == [1]


@pytest.mark.parametrize("codes", INDEX_TYPES, ids=str)
def test_dictionaries_of_chunks_with_more_values_than_one_has_codes_for(codes: pa.DataType) -> None:
    def chunk(first: int) -> pa.Array:
        words = pa.array([f"k{first + i:03d}" for i in range(100)])
        return pa.DictionaryArray.from_arrays(pa.array(range(100), codes), words)

    words = pa.chunked_array([chunk(0), chunk(50), chunk(200)])
    run = plan(n=sk.count(), word=sk.first("word")).run(table(user=words, word=words, at=[0] * 300))
    assert run.table()["key"].to_pylist() == run.table()["word"].to_pylist() == sorted(set(words.to_pylist()))


@pytest.mark.parametrize("name", ["first", "last", "collect"])
@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
@pytest.mark.parametrize(
    "values", [pa.nulls(2), pa.array([{"a": 1}, None]), pa.array([[1], None]), pa.array([True, None])]
)
def test_dictionaries_of_other_than_text_and_numbers(name: str, rules: str, values: pa.Array) -> None:
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.uint8()), values)
    run = run_by(plan(it=getattr(sk, name)("v")), table(v=coded), rules=rules)
    one = values[0].as_py()
    if one is None and rules == "kafka" and name != "collect":  # Kafka keeps no window whose aggregate is null
        assert set(run.table()["it"].to_pylist()) == {None}
        return
    assert run.table()["it"].to_pylist() == [[one, None, None] if name == "collect" else one]


@pytest.mark.parametrize("name", ["first", "collect"])
def test_categories_without_any_value(name: str) -> None:
    for frame in (
        pd.DataFrame({"user": ["a"], "at": [1], "v": pd.Categorical([None])}),
        pl.DataFrame({"user": ["a"], "at": [1], "v": pl.Series([None], dtype=pl.Categorical)}),
    ):
        value = plan(it=getattr(sk, name)("v")).run(frame).table()["it"][0]
        assert pd.isna(value if name == "first" else value[0])


# ---- runs and views


RUNS = {
    "text": pa.array(["x", None, "y"]),
    "views": pa.array(["x", None, "y"], pa.string_view()),
    "categories": pa.array(["x", None, "y"]).dictionary_encode(),
    "numbers": pa.array([1, None, 2]),
    "structs": pa.array([{"a": 1}, None, {"a": 2}]),
}


def runs(values: pa.Array, ends: pa.DataType = pa.int32()) -> pa.Array:  # noqa: B008
    return pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 5], ends), values)


@pytest.mark.parametrize("name", ["first", "last", "collect"])
@pytest.mark.parametrize("kind", RUNS)
@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
def test_values_in_runs(name: str, kind: str, rules: str) -> None:
    values = RUNS[kind].to_pylist()
    rows = [values[0], values[0], values[1], values[2], values[2]]
    for lo in (0, 1, 3):
        column = runs(RUNS[kind]).slice(lo)
        run = run_by(plan(it=getattr(sk, name)("v")), table(v=column), rules=rules)
        expected = (
            rows[lo:] if name == "collect" else [r for r in rows[lo:] if r is not None][0 if name == "first" else -1]
        )
        assert run.table()["it"].to_pylist() == [expected]


@pytest.mark.parametrize("ends", [pa.int16(), pa.int32(), pa.int64()], ids=str)
def test_keys_times_and_places_in_runs(ends: pa.DataType) -> None:
    source = group_in_ms("user", partition="p")
    steps = source.windowed_by(sk.SessionWindows(inactivity_gap_ms=10, grace=0)).aggregate(total=sk.sum("v"))
    columns = {"at": pa.array([1, 2, 3]), "p": pa.array([0, 1, 0]), "v": pa.array([5, None, 7])}
    data = pa.table({"user": runs(RUNS["text"], ends), **{name: runs(each, ends) for name, each in columns.items()}})
    result = steps.run(data).table()
    assert result.select(["key", "total", "partition"]).to_pylist() == [
        {"key": "x", "total": 10, "partition": 0},
        {"key": "y", "total": 14, "partition": 0},
    ]


NESTED = {
    "fixed": pa.array([["a", "b"]], pa.list_(pa.string_view(), 2)),
    "map": pa.array([[("a", "x")]], pa.map_(pa.string(), pa.string_view())),
    "list view": pa.array([["a"]], pa.list_view(pa.string_view())),
    "large list view": pa.array([[b"a"]], pa.large_list_view(pa.binary_view())),
    "struct": pa.array([{"a": ["x"]}], pa.struct([("a", pa.list_(pa.string_view()))])),
    "runs": pa.ListArray.from_arrays([0, 2, 5], runs(RUNS["structs"])).slice(1),
    "missing": pa.array([["a", None], None, [], ["b"]], pa.list_view(pa.string_view())).slice(1, 3),
    "fixed, missing": pa.array([["a", "b"], None, ["c", None]], pa.list_(pa.string_view(), 2)).slice(1),
    "struct, missing": pa.array([None, {"a": "b"}, {"a": None}], pa.struct([("a", pa.string_view())])).slice(1),
    "map, missing": pa.array([[("a", 1)], None, [], [("b", None)]], pa.map_(pa.string_view(), pa.int8())).slice(1),
    "struct with NUL": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a\0b", "a\0c"]),
    "dictionary of views": pa.DictionaryArray.from_arrays(pa.array([0], pa.uint8()), pa.array(["a"], pa.string_view())),
}


@pytest.mark.parametrize("name", ["first", "collect"])
@pytest.mark.parametrize("kind", NESTED)
def test_views_inside_others(name: str, kind: str) -> None:
    column = NESTED[kind]
    result = plan(it=getattr(sk, name)("v")).run(table(v=column)).table()["it"].to_pylist()
    values = column.to_pylist()
    assert result == [values if name == "collect" else next(value for value in values if value is not None)]
    of_pandas = pd.DataFrame(
        {"user": ["ada"] * len(values), "at": [1] * len(values),
         "v": pd.Series(column, dtype=pd.ArrowDtype(column.type))},
    )  # fmt: skip
    assert len(plan(it=getattr(sk, name)("v")).run(of_pandas).table()) == 1


@pytest.mark.parametrize("name", ["first", "last", "collect"])
def test_what_cannot_be_taken_is_refused(name: str) -> None:
    unions = [
        pa.UnionArray.from_dense(pa.array([0], pa.int8()), pa.array([0], pa.int32()), [pa.array([1])]),
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
        pa.ListArray.from_arrays([0, 1], pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])),
    ]
    for column in unions:
        telling = f"{name}('v') cannot use column 'v'; got {column.type}; a column without unions"
        refused(UnsupportedData, telling, lambda column=column: plan(it=getattr(sk, name)("v")).run(table(v=column)))


# ---- names


def test_names_that_are_no_text() -> None:
    half = "\ud800"
    data = pd.DataFrame({"user": ["a"], "at": [1], half: [1]})
    refused(
        InvalidArgument,
        "key 0 is not valid text; got '\\ud800'",
        lambda: sk.group_by_key(half, timestamp="at"),
    )
    refused(InvalidArgument, "timestamp is not valid text", lambda: sk.group_by_key("user", timestamp=half))
    refused(
        InvalidArgument,
        "sep is not valid text",
        lambda: sk.group_by_key("a", "b", timestamp="at", sep=half),
    )
    refused(
        InvalidArgument, "this cannot be the name of a column; got '\\ud800'", lambda: plan(it=sk.first(half)).run(data)
    )
    telling = "this cannot be the name of a result; got '\\ud800'"
    refused(InvalidArgument, telling, lambda: plan(**{half: sk.count()}).run(data))
    assert len(plan().run(data).table()) == 1  # a column that the plan does not read
    refused(SessionkitError, "column 'when' is not in the data", lambda: plan(it=sk.first("when")).run(data))


def test_a_name_with_nul_in_polars_is_refused_and_ends_no_process() -> None:
    code = """
import polars as pl, sessionkit as sk
windows = sk.SessionWindows(inactivity_gap_ms=1, grace_ms=1)
steps = sk.group_by_key("user", timestamp="at", unit="ms").windowed_by(windows)
for columns in ({'a\\0b': [1]}, {'v': [{'a\\0b': 1}]}, {'v': [[{'x': {'a\\0b': 1}}]]}):
    try:
        steps.aggregate(it=sk.first(list(columns)[0])).run(pl.DataFrame({"user": ["a"], "at": [1], **columns}))
    except sk.errors.UnsupportedData as error:
        print(error)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-300:]
    telling = "a column of polars cannot be read; got 'a\\x00b'; a name without the character NUL"
    assert ended.stdout.splitlines() == [telling] * 3


def test_a_name_with_nul_in_other_frames() -> None:
    """Arrow's C interface ends a name at its NUL: "at" would be found in "at\\0x"."""
    columns = {"user": ["ada"], "at": [1], "v\0a": [7], "v\0b": [8]}
    for data in (pa.table(columns), pa.RecordBatch.from_pydict(columns), pd.DataFrame(columns)):
        assert list(
            plan(it=sk.first("v\0b")).run(data).table()["it"].to_pylist() if isinstance(data, pa.Table) else [8]
        ) == [8]
    for data in (pa.table({"user": ["a"], "at\0x": [1]}), pa.RecordBatch.from_pydict({"user": ["a"], "at\0x": [1]})):
        refused(SessionkitError, "column 'at' is not in the data", lambda data=data: plan().run(data))
    steps = plan(**{"n\0": sk.count()})
    assert "n\0" in steps.run(pd.DataFrame({"user": ["a"], "at": [1]})).table().columns
    telling = "a result cannot be a column of polars"
    refused(UnsupportedData, telling, steps.run(pl.DataFrame({"user": ["a"], "at": [1]})).table)


def test_words_stay_short_whatever_a_column_is_called() -> None:
    name = "x" * 100_000
    for call in (
        lambda: plan(it=sk.first(name)).run(table(v=[1])),
        lambda: plan(it=sk.sum(name)).run(table(**{name: ["a"]})),
        lambda: sk.group_by_key("user", timestamp=name).windowed_by(plan().windows).count().run(table(**{name: ["a"]})),
    ):
        with pytest.raises(SessionkitError) as caught:
            call()
        assert len(str(caught.value)) < 3_100


def test_a_result_may_be_called_self() -> None:
    for name in ("self", "initializer", "value", "data"):
        run = plan(**{name: sk.count()}).run(table(v=[1]))
        assert run.table()[name].to_pylist() == [1]
        assert f"{name}=sk.count()" in repr(run.plan)


def test_an_aggregation_of_ones_own_that_is_not_whole() -> None:
    start: Any = int
    telling = "an aggregation of your own is incomplete; got ['initializer']; also ['aggregator', 'merger']"
    refused(InvalidArgument, telling, lambda: plan(initializer=start))
    refused(InvalidArgument, "has no such part; got 'n'", lambda: plan(initializer=start, n=sk.count()))


def test_a_result_called_as_the_replaced_value_of_another() -> None:
    run = plan(n=sk.count(), old_n=sk.first("v")).run(table(v=[1, 2]))
    assert run.changelog()["old_n"].to_pylist() == [1, None, 1]
    telling = "a column would appear twice beside the replaced values; got 'n' and 'old_n'"
    refused(InvalidArgument, telling, lambda: run.changelog(old_values=True))


# ---- values


def test_python_objects_in_polars_are_refused() -> None:
    """Polars hands their addresses in memory over as bytes."""
    data = pl.DataFrame({"user": ["a"], "at": [1], "v": pl.Series([object()], dtype=pl.Object)})
    telling = "column 'v' cannot be read; got Python objects in polars"
    refused(UnsupportedData, telling, lambda: plan(it=sk.first("v")).run(data))
    keys = data.select(pl.col("v").alias("user"), "at")
    refused(UnsupportedData, "column 'user' cannot be read; got Python objects in polars", lambda: plan().run(keys))


@pytest.mark.parametrize("kind", ["Int64", "UInt64"])
def test_large_integers_beside_missing_values_stay_themselves_in_pandas(kind: str) -> None:
    numbers = pd.array([2**60 + 1, None, None], kind)
    data = pd.DataFrame({"user": ["a", "b", "b"], "at": [1, 2, 3], "v": numbers})
    run = plan(it=sk.max("v"), all=sk.collect("v"), own=sk.reduce(lambda older, newer: newer, "v")).run(data)
    assert run.table()["it"].tolist() == [2**60 + 1, pd.NA]
    assert list(run.table()["all"][0]) == [2**60 + 1]
    data = pd.DataFrame({"user": ["a", "a"], "at": [1, 2], "v": numbers[:2]})
    run = plan(it=sk.last("v"), all=sk.collect("v")).run(data)
    assert list(run.table()["all"][0]) == [2**60 + 1, None]
    assert [each for each in run.changelog()["it"] if each is not pd.NA] == [2**60 + 1] * 2
    small = plan(it=sk.last("v")).run(data.assign(v=[1.0, None])).changelog()
    assert small["it"].dtype == np.float64


@pytest.mark.parametrize(("column", "telling"), [
    (pa.array([2**60], pa.timestamp("s")), "a value cannot be passed to a Python function; got timestamp[s]"),
    (pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]),
     "a value cannot be passed to a Python function; got struct<a: int64, a: int64>"),
])  # fmt: skip
def test_what_python_has_no_value_for(column: pa.Array, telling: str) -> None:
    def last(older: Any, newer: Any) -> Any:
        return newer

    refused(UnsupportedData, telling, lambda: plan(it=sk.reduce(last, "v")).run(table(v=column)).table())
    refused(UnsupportedData, telling, lambda: run_deployed(plan(all=sk.collect("v")), table(v=column)))
    refused(
        UnsupportedData, telling, lambda: list(run_deployed(plan(it=sk.first("v")), table(v=column)).deployed.forwarded)
    )
    run = plan(it=sk.first("v")).run(table(v=column))
    assert run.table()["it"].combine_chunks().equals(column)
    assert "1 record" in run._repr_html_()


def test_text_that_is_none_is_refused_as_a_value_too() -> None:
    column = pa.array([b"\xff"]).view(pa.string())
    for aggregation in (sk.first("v"), sk.collect("v"), sk.reduce(lambda older, newer: newer, "v")):
        for v in (column, pa.ListArray.from_arrays([0, 1], column)):
            steps = plan(it=aggregation)
            refused(
                InvalidData, "column 'v' holds a value that is not text; got", lambda s=steps, v=v: s.run(table(v=v))
            )


def test_an_interval_has_no_order() -> None:
    column = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    telling = "max('v') cannot use column 'v'; got month_day_nano_interval; a column of numbers or times"
    refused(UnsupportedData, telling, lambda: plan(it=sk.max("v")).run(table(v=column)))


# ---- what random frames found


def test_chunks_of_dictionaries_with_a_missing_entry() -> None:
    def chunk(*words: str | None) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(range(len(words)), pa.int8()), pa.array(words))

    words = pa.chunked_array([chunk("b", None), chunk(None, "a"), chunk("b")])
    run = plan(n=sk.count(), word=sk.first("v"), all=sk.collect("v")).run(table(user=words, v=words))
    assert run.table().select(["key", "n", "word", "all"]).to_pylist() == [
        {"key": "a", "n": 1, "word": "a", "all": ["a"]},
        {"key": "b", "n": 2, "word": "b", "all": ["b", "b"]},
    ]
    assert run.dropped()["offset"].to_pylist() == [1, 2]
    whole = plan(word=sk.first("v"), all=sk.collect("v")).run(table(v=chunk(None, None))).table()
    assert whole.select(["word", "all"]).to_pylist() == [{"word": None, "all": [None, None]}]


@pytest.mark.parametrize(
    "windows", [sk.SessionWindows(inactivity_gap_ms=1, grace=0), sk.TimeWindows(size_ms=1, grace=0)]
)
def test_no_rows_with_partitions(windows: Any) -> None:
    source = group_in_ms("user", partition="p").windowed_by(windows)
    empty = pa.table({"user": pa.array([], pa.string()), "at": pa.array([], pa.int64()), "p": pa.array([], pa.int32())})
    run = source.count().run(empty)
    assert (len(run.table()), len(run.changelog()), len(run.dropped())) == (0, 0, 0)


def test_an_empty_chunk_that_was_cut_out_of_a_longer_one() -> None:
    class Foreign:
        def __init__(self, inner: pa.Table) -> None:
            self._inner = inner

        def __arrow_c_stream__(self, schema: Any = None) -> Any:
            return self._inner.__arrow_c_stream__(schema)

    whole = pa.array(range(9))
    numbers = pa.chunked_array([whole.slice(3, 0), whole.slice(3, 2), whole.slice(7, 0)])
    run = plan(all=sk.collect("v")).run(Foreign(table(at=numbers, v=numbers)))
    assert run.table()["all"].to_pylist() == [[3, 4]]


@pytest.mark.parametrize("codes", INDEX_TYPES, ids=str)
def test_numbers_and_times_in_dictionaries(codes: pa.DataType) -> None:
    def coded(values: pa.Array) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array([1, 0], codes), values)

    source = group_in_ms("user", partition="p", offset="o", unit=None)
    steps = source.windowed_by(sk.SessionWindows(inactivity_gap_ms=10, grace=0))
    times = pa.array([7, 5], pa.timestamp("ms", "Europe/Berlin"))
    numbers = pa.array([4, 3])
    data = pa.table({"user": ["a", "a"], "at": coded(times), "p": coded(pa.array([2, 2])), "o": coded(numbers)})
    data = data.append_column("v", coded(pa.array([1.5, None])))
    run = steps.aggregate(total=sk.sum("v"), last=sk.last("at"), least=sk.min("o")).run(data)
    row = run.table().to_pylist()[0]
    assert (row["window_start_ms"], row["window_end_ms"], row["partition"]) == (5, 7, 2)
    assert (row["total"], row["least"], row["last"].timestamp()) == (1.5, 3, 0.007)


def test_a_field_with_nul_keeps_its_name_in_pandas() -> None:
    column = pd.Series(NESTED["struct with NUL"], dtype=pd.ArrowDtype(NESTED["struct with NUL"].type))
    run = plan(it=sk.first("v")).run(pd.DataFrame({"user": ["a"], "at": [1], "v": column}))
    assert run.table()["it"].tolist() == [{"a\0b": 1, "a\0c": 2}]


def test_lists_that_arrow_does_not_hand_to_pandas() -> None:
    kind = pa.binary(2)
    data = pd.DataFrame({"user": ["a"] * 2, "at": [1, 2], "v": pd.Series([b"ab", None], dtype=pd.ArrowDtype(kind))})
    result = plan(all=sk.collect("v"), n=sk.count()).run(data).table()
    assert (result["all"].tolist(), result["n"].tolist(), result["key"].tolist()) == ([[b"ab", None]], [2], ["a"])


def test_a_union_without_rows_is_refused_in_words() -> None:
    column = pa.UnionArray.from_sparse(pa.array([], pa.int8()), [pa.array([], pa.int64())])
    for name in ("first", "collect"):
        with pytest.raises(UnsupportedData, match="union"):
            plan(it=getattr(sk, name)("v")).run(pa.table({"user": pa.array([], pa.string()), "at": [], "v": column}))
