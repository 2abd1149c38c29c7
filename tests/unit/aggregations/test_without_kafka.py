"""Aggregations that Kafka does not have, beside what pandas and plain Python make of the same records."""

import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from tests.deployments import run_deployed
from tests.kinds import group_in_ms, plan_of
from tests.optional import nearly

KINDS: dict[str, Any] = {
    "sessions": sk.SessionWindows(inactivity_gap_ms=4, grace_ms=200),
    "tumbling": sk.TimeWindows(size_ms=10, grace_ms=200),
    "hopping": sk.TimeWindows(size_ms=10, advance_ms=3, grace_ms=200),
    "sliding": sk.SlidingWindows(time_difference_ms=6, grace_ms=200),
}
NAMED = {
    "different": sk.count_distinct("word"), "middle": sk.median("value"), "most": sk.quantile("value", 0.9),
    "spread": sk.std("value"), "earliest": sk.earliest("word"), "latest": sk.latest("word"),
    "top": sk.top("word", 2), **nearly("word"),
}  # fmt: skip


NOW = 1_767_225_600_000


def records(seed: int, count: int = 150) -> pd.DataFrame:
    """Records of three keys in no order, with equal times and missing values."""
    rng = np.random.default_rng(seed)
    word = rng.choice(["home", "shop", "cart", "", None], count)
    value = np.where(rng.random(count) < 0.15, np.nan, 1e9 + rng.integers(0, 50, count) / 8)
    return pd.DataFrame({"key": rng.choice(["a", "b", "c"], count), "at": rng.integers(0, 150, count), "word": word,
                         "value": pd.array(value, "Float64"), "n": np.arange(count)})  # fmt: skip


def expected(held: pd.DataFrame) -> dict[str, Any]:
    """What pandas says of the records of a window, which stand in order of arrival."""
    known = held["value"].dropna().astype(float)
    words = held.dropna(subset="word").sort_values("at", kind="stable")
    first = words[words["at"] == words["at"].min()]["word"]
    counts = held["word"].value_counts().sort_index().sort_values(ascending=False, kind="stable")
    return {
        "different": held["word"].nunique(), "middle": known.median(), "most": known.quantile(0.9),
        "spread": known.std(), "earliest": first.iloc[0] if len(words) else None,
        "latest": words["word"].iloc[-1] if len(words) else None, "top": counts.index[:2].tolist(),
        **({"nearly": held["word"].nunique()} if "nearly" in NAMED else {}),
    }  # fmt: skip


def assert_as_pandas(table: pd.DataFrame, frame: pd.DataFrame) -> None:
    assert len(table) > 5
    for row in table.to_dict("records"):
        for name, value in expected(frame.iloc[sorted(row["rows"])]).items():
            if isinstance(value, list):
                assert list(row[name]) == value, name
            elif value is None or value != value:
                assert pd.isna(row[name]), name
            else:
                assert row[name] == (value if isinstance(value, str) else pytest.approx(value, rel=1e-12)), name


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in (1, 2))])
def test_they_are_what_pandas_says(kind: str, seed: int) -> None:
    frame = records(seed)
    table = plan_of(KINDS[kind], named={**NAMED, "rows": sk.collect("n")}).run(frame).table()
    assert_as_pandas(table, frame)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("store_kind", ["memory", "rocksdb"])
def test_their_state_travels_from_run_to_run(kind: str, store_kind: str, tmp_path: Path) -> None:
    frame, plan, changes = records(5), plan_of(KINDS[kind], named=NAMED), []
    directory = {"directory": tmp_path} if store_kind == "rocksdb" else {}
    whole = plan.run(pa.Table.from_pandas(frame)).changelog()
    for lo, hi in ((0, 20), (20, 90), (90, 150)):
        if store_kind == "rocksdb" or not changes:
            store = sk.open_store(store_kind, "kept", of=KINDS[kind].holds, **directory)
        changes.append(plan.run(pa.Table.from_pandas(frame[lo:hi]), store=store).changelog())
        if store_kind == "rocksdb":
            store.close()
    assert pa.concat_tables(changes).to_pylist() == whole.to_pylist()


@pytest.mark.parametrize("kind", ["sessions", "hopping"])
def test_a_deployment_gives_the_same(kind: str) -> None:
    frame, plan = records(6), plan_of(KINDS[kind], named=NAMED)
    ours, theirs = plan.run(frame).table(), run_deployed(plan, frame, retention="1s").table()
    pd.testing.assert_frame_equal(ours, theirs, check_exact=True)


@pytest.mark.parametrize(("arrived", "said"), [([5, 1, 3], ("b", "a")), ([5, 5, 1], ("c", "b")), ([7, 7, 7], "ac")])
def test_event_time_decides_and_of_equal_times_arrival(arrived: list[int], said: tuple[str, str]) -> None:
    frame = pd.DataFrame({"key": "k", "at": arrived, "word": ["a", "b", "c"]})
    named = {"earliest": sk.earliest("word"), "latest": sk.latest("word")}
    (row,) = plan_of(KINDS["sessions"], named=named).run(frame).table()[["earliest", "latest"]].to_numpy()
    assert tuple(row) == tuple(said)


def test_a_store_without_a_value_learns_the_type_later() -> None:
    """The first run sees no value at all: the column has no type then."""
    plan = plan_of(KINDS["sessions"], named=NAMED)
    store = sk.open_store("memory", "kept", of="sessions")
    none = pa.table({"key": ["a"], "at": [1], "word": pa.nulls(1), "value": pa.nulls(1)})
    plan.run(none, store=store)
    plan.run(pa.table({"key": ["a"], "at": [2], "word": ["home"], "value": [2.0]}), store=store)
    (row,) = plan.run(none, store=store).table().to_pylist()
    assert [row[name] for name in NAMED] == [1, 2.0, 2.0, None, "home", "home", ["home"], 1]


def test_different_values_are_told_apart_as_values() -> None:
    """-0.0 is 0.0, NaN is one value, a category is its text, and times are times."""
    columns = {
        "float": pa.array([0.0, -0.0, float("nan"), float("nan"), None, 1.0]),
        "category": pa.array(["x", "y", "x", None, "y", "x"]).dictionary_encode(),
        "time": pa.array([0, 0, 1, 2, 2, None], pa.timestamp("ms", "UTC")),
        "flag": pa.array([True, True, None, False, True, False]),
        "bytes": pa.array([b"", b"a", b"a", None, b"", b"b"]),
    }
    table = pa.table({"key": ["a"] * 6, "at": range(6), **columns})
    named = {name: sk.count_distinct(name) for name in columns}
    (row,) = plan_of(KINDS["sessions"], named=named).run(table).table().to_pylist()
    assert {name: row[name] for name in columns} == {"float": 3, "category": 2, "time": 3, "flag": 2, "bytes": 3}


def test_the_most_frequent_values_are_the_same_in_any_order_of_records_and_merges() -> None:
    """-0.0 is 0.0, NaN is a value like others but the last of equally frequent ones, and a category is its text."""
    columns = {
        "float": (pa.array([0.0, -0.0, math.nan, 2.0, 1.0, 1.0, 2.0, math.nan, None]), [0.0, 1.0, 2.0]),
        "category": (pa.array(["y", "x", "y", None, "z", "é", "x", "z", None]).dictionary_encode(), ["x", "y", "z"]),
        "time": (pa.array([5, 0, 0, None, None, 5, 7, 7, 9], pa.duration("ms")), [0, 5, 7]),
        "flag": (pa.array([True, None, False, True, None, None, None, False, True]), [True, False]),
        "price": (pa.array([20, 10, 15, 10, 20, 15, 1, 1, 5], pa.decimal128(9, 2)), [1, 10, 15]),
    }
    named = {name: sk.top(name, 3) for name in columns}
    rng = np.random.default_rng(3)
    for _ in range(6):
        table = pa.table(
            {"key": ["a"] * 9, "at": rng.permutation(9) * 3 + NOW, **{n: c for n, (c, _) in columns.items()}}
        )
        table = table.take(rng.permutation(9))
        (row,) = plan_of(KINDS["sessions"], named=named).run(table).table().to_pylist()
        expected = {name: row[name] for name in columns}
        assert {n: [v.total_seconds() * 1000 if n == "time" else v for v in expected[n]] for n in columns} == {
            name: said for name, (_, said) in columns.items()
        }
    (row,) = plan_of(KINDS["sessions"], named={"it": sk.top("float", 9)}).run(table).table().to_pylist()
    assert repr(row["it"]) == "[0.0, 1.0, 2.0, nan]"


@pytest.mark.parametrize("n", [0, -1, 2.0, "3", True, None])
def test_top_takes_a_whole_number(n: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"top takes how many values to show; got .*; a whole number from 1"):
        sk.top("value", n)


def test_extreme_numbers_have_a_middle() -> None:
    for values in ([float("inf"), float("-inf")], [1e308, -1e308, 1.0, 2.0], [float("nan"), 1.0], [float("inf")] * 2):
        table = pa.table({"key": ["a"] * len(values), "at": range(len(values)), "value": values})
        (row,) = plan_of(KINDS["sessions"], named={"it": sk.median("value")}).run(table).table().to_pylist()
        with np.errstate(all="ignore"):
            np.testing.assert_equal(row["it"], np.quantile(values, 0.5) if max(values) < 1e300 else row["it"])
        assert row["it"] == row["it"] or not all(np.isfinite(values))


@pytest.mark.parametrize("q", [-0.1, 1.1, float("nan"), "0.5", True, None])
def test_a_quantile_is_a_part(q: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"a quantile is a part of all values; got .*; a number from 0 to 1"):
        sk.quantile("value", q)


@pytest.mark.parametrize("made", NAMED.values(), ids=str)
def test_they_are_pickled_by_name(made: Any) -> None:
    again = pickle.loads(pickle.dumps(made))
    assert again == made and again.parts == made.parts
    assert made != sk.quantile("value", 0.8)


def test_decimals_are_said_to_be_floats() -> None:
    table = pa.table({"user": ["a", "a"], "at": [0, 1], "price": pa.array(["1.10", "2.20"]).cast(pa.decimal128(9, 2))})
    plan = group_in_ms("user").windowed_by(KINDS["sessions"]).aggregate(middle=sk.median("price"))
    assert plan.run(table).table()["middle"].to_pylist() == [pytest.approx(1.65)]
    assert plan.run(table).remarks() == ["Decimals become 64-bit floats in median('price')."]
