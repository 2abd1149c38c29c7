"""Bad times, keys, offsets, values and parameters through the front door: what a user reads when something is wrong.

Each message says what is wrong, the value given, and what would be right. Nothing is dropped in silence.
"""

import datetime as dt
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sessionkit as sk
from sessionkit.base.durations import INT64_MAX
from sessionkit.errors import (
    AggregationFailed,
    InvalidData,
    MissingColumn,
    NumberOverflow,
    SessionkitError,
    UnsupportedData,
)
from tests.deployments import run_by
from tests.kinds import group_in_ms

NEW_YORK = "America/New_York"
FRAMES: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "duckdb": lambda frame: duckdb.from_arrow(pa.Table.from_pandas(frame, preserve_index=False)),
}
API: Any = sk  # for arguments that a type checker would refuse
every_frame = pytest.mark.parametrize("frame", FRAMES)


def plan(*keys: str, **options: Any) -> sk.Plan:
    source = group_in_ms(*(keys or ("user",)), **{"unit": None} | options)
    return source.windowed_by(sk.SessionWindows(inactivity_gap="30s", grace="10s")).count()


def records(at: Any, user: Any = None, **more: Any) -> pd.DataFrame:
    users = ["ada"] * len(at) if user is None else user
    return pd.DataFrame({"user": pd.Series(users, dtype=object), "at": at, **more})


def refused(error: type[SessionkitError], telling: str, call: Callable[[], Any]) -> None:
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert telling in message
    assert message.count(";") >= 2, "what, got, want"
    assert "\n" not in message
    assert len(message) < 600


def dropped(run: sk.Run) -> list[tuple[int, str]]:
    table = run.dropped()
    table = (
        table.to_pydict()
        if isinstance(table, pa.Table)
        else table.to_dict("list")
        if isinstance(table, pd.DataFrame)
        else table.to_dict(as_series=False)
    )
    return list(zip(table["offset"], table["reason"], strict=True))


# ---- times: missing, negative


MISSING: dict[str, pd.DataFrame] = {
    "NaT": records(pd.to_datetime(pd.Series(["2020-01-01", None, "2020-01-02", None]), utc=True)),
    "None in integers": records(pd.array([1, None, 2, None], "Int64")),
    "None": records(pd.Series([dt.datetime(2020, 1, 1, tzinfo=dt.UTC), None] * 2, dtype=object)),
    "NaN": records([1.0, float("nan"), 2.0, None]),
}


@every_frame
@pytest.mark.parametrize("kind", MISSING)
def test_missing_times(kind: str, frame: str) -> None:
    data = FRAMES[frame](MISSING[kind])
    if kind == "NaN" and frame != "pandas":
        pytest.importorskip("polars")  # a NaN of Arrow is a number, but no time
    telling = (
        "column 'at' has missing timestamps; got 2 (rows 1, 3); drop them, or pass on_bad_time=\"drop\" to count them"
    )
    refused(InvalidData, telling, lambda: plan(unit="ms").run(data))
    run = plan(unit="ms", on_bad_time="drop").run(FRAMES[frame](MISSING[kind]))
    assert dropped(run) == [(1, "bad_time"), (3, "bad_time")]
    assert run.metrics()["dropped-bad-time"] == 2
    run.trace.check()


@every_frame
@pytest.mark.parametrize(
    "at",
    [[5, -1, 7, -(2**63)], pd.to_datetime(["2020-01-01", "1969-12-31", "2020-01-02", "1677-09-22"], utc=True)],
    ids=["int", "dates"],
)
def test_negative_times(at: Any, frame: str) -> None:
    data = FRAMES[frame](records(at))
    telling = (
        "column 'at' has times before 1970, which Kafka refuses; got 2 (rows 1, 3); drop them, or pass on_bad_time="
    )
    refused(InvalidData, telling, lambda: plan(unit="ms").run(data))
    run = plan(unit="ms", on_bad_time="drop").run(FRAMES[frame](records(at)))
    assert dropped(run) == [(1, "negative_time"), (3, "negative_time")]
    assert run.trace.stream_time_ms.min() >= 0


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_most_negative_time_does_not_wrap_into_a_positive_one(unit: str) -> None:
    """-2**62 seconds times 1,000 is 0 in 64 bits."""
    run = plan(unit=unit, on_bad_time="drop").run(records([5, -(2**62), -(2**63)]))
    assert dropped(run) == [(1, "negative_time"), (2, "negative_time")]
    assert len(run.table()) == 1


# ---- times: zones


@every_frame
def test_times_without_a_zone(frame: str) -> None:
    data = FRAMES[frame](records(pd.to_datetime(["2020-01-01"])))
    telling = 'pass timezone="UTC", or the zone of the clock that wrote it, such as "America/New_York"'
    refused(UnsupportedData, telling, lambda: plan().run(data))
    refused(UnsupportedData, "column 'at' has times without a zone; got timestamp[", lambda: plan().run(data))
    run = plan(timezone="UTC").run(FRAMES[frame](records(pd.to_datetime(["2020-01-01"]))))
    assert run.trace.batch.timestamp_ms.tolist() == [1_577_836_800_000]


def test_times_with_and_without_a_zone_in_one_column() -> None:
    aware, naive = dt.datetime(2020, 1, 1, tzinfo=dt.UTC), dt.datetime(2020, 1, 1, 12)
    for column, where in (
        ([aware, naive], "none in row 1, one in row 0"),
        ([None, naive, aware], "none in row 1, one in row 2"),
    ):
        data = records(pd.Series(column, dtype=object))
        telling = f"column 'at' has times with and without a zone; got {where}; give all of them a zone"
        refused(UnsupportedData, telling, lambda data=data: plan(timezone="UTC").run(data))


def test_zones_that_differ_are_one_clock() -> None:
    there = dt.datetime(2020, 1, 1, 5, tzinfo=dt.timezone(dt.timedelta(hours=5)))
    here = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    assert plan().run(records(pd.Series([there, here], dtype=object))).table()["count"].tolist() == [2]


@every_frame
def test_a_time_that_a_change_of_the_clocks_skipped(frame: str) -> None:
    def data() -> Any:
        return FRAMES[frame](records(pd.to_datetime(["2013-03-10 01:59", "2013-03-10 02:30", "2013-03-10 03:00"])))

    telling = "column 'at' has a time that no clock showed, as they were set forward; got row 1: "
    refused(InvalidData, telling, lambda: plan(timezone=NEW_YORK).run(data()))
    refused(InvalidData, 'nonexistent="earliest" or "latest" choose one', lambda: plan(timezone=NEW_YORK).run(data()))
    times = plan(timezone=NEW_YORK, nonexistent="latest").run(data()).trace.batch.timestamp_ms
    earliest = plan(timezone=NEW_YORK, nonexistent="earliest").run(data()).trace.batch.timestamp_ms
    assert earliest[1] + 1 == times[1] == times[2] == 1_362_898_800_000


@every_frame
def test_a_time_that_a_change_of_the_clocks_repeats(frame: str) -> None:
    def data() -> Any:
        return FRAMES[frame](records(pd.to_datetime(["2013-11-03 00:30", "2013-11-03 01:30"])))

    refused(InvalidData, "got row 1: ", lambda: plan(timezone=NEW_YORK).run(data()))
    refused(InvalidData, 'ambiguous="earliest" or "latest"', lambda: plan(timezone=NEW_YORK).run(data()))
    spans = {}
    for choice in ("earliest", "latest"):
        times = plan(timezone=NEW_YORK, ambiguous=choice).run(data()).trace.batch.timestamp_ms
        spans[choice] = int(times[1] - times[0]) // 3_600_000
    assert spans == {"earliest": 1, "latest": 2}


# ---- times: units, floats, text


@every_frame
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_the_unit_of_a_type_is_believed(unit: str, frame: str) -> None:
    if frame == "polars" and unit == "s":
        unit = "ms"  # polars has no seconds
    times = pd.Series(np.array(["2020-01-01", "2020-01-02"], f"datetime64[{unit}]")).dt.tz_localize("UTC")
    assert plan().run(FRAMES[frame](records(times))).trace.batch.timestamp_ms.tolist() == [
        1_577_836_800_000,
        1_577_923_200_000,
    ]


@every_frame
def test_plain_numbers_need_a_unit(frame: str) -> None:
    data = FRAMES[frame](records([1_577_836_800]))
    telling = "column 'at' has plain numbers as times; got int64; pass unit="
    likely = f'{telling}"s", as which 1577836800 is 2020-01-01; or another unit'
    refused(UnsupportedData, likely, lambda: plan().run(data))
    refused(UnsupportedData, f'{telling}"s", "ms", "us" or "ns"', lambda: plan().run(FRAMES[frame](records([7]))))


def test_a_unit_that_does_not_fit_is_warned_about_where_the_user_called() -> None:
    with pytest.warns(UserWarning) as caught:
        plan(unit="ms").run(records([1_577_836_800]))
    assert str(caught[0].message) == "column 'at' read as ms lies outside 1990 to 2100; as s it would not"
    assert Path(caught[0].filename) == Path(__file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan(unit="s").run(records([1_577_836_800]))
        plan(unit="ms").run(records([0, 1, 2]))  # toy data fits no unit


@every_frame
def test_text_that_is_no_time(frame: str) -> None:
    data = FRAMES[frame](records(["2020-01-01T00:00Z", "soon"]))
    telling = "column 'at' has texts that are no times; got 1, the first in row 1: 'soon'; ISO 8601 such as"
    refused(InvalidData, telling, lambda: plan().run(data))


# ---- times: the ends of the 64 bits


@pytest.mark.filterwarnings("ignore:column 'at' read as")
@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
def test_times_at_the_end_of_64_bits(rules: str) -> None:
    """Kafka wraps in timestamp + gap and then stops merging, without a word: the one listed difference."""
    reach = 30_000
    fits, too_late = records([INT64_MAX - reach]), records([5, INT64_MAX - reach + 1])
    assert run_by(plan(unit="ms"), fits, rules=rules).table()["count"].tolist() == [1]
    telling = (
        "a window would end after the largest 64-bit time; "
        f"got timestamp {INT64_MAX - reach + 1} with inactivity_gap {reach} ms; times up to 2**62 ms are safe"
    )
    refused(NumberOverflow, telling, lambda: run_by(plan(unit="ms"), too_late, rules=rules))


@pytest.mark.filterwarnings("ignore:column 'at' read as")
@given(
    times=st.lists(
        st.integers(2**62 - 50, 2**62) | st.integers(INT64_MAX - 200, INT64_MAX - 100) | st.integers(0, 50), max_size=12
    ),
    gap=st.sampled_from([0, 1, 20, 100]),
    grace=st.sampled_from([0, 7, 2**61, 2**62 - 100]),
)
def test_arithmetic_near_the_ends_is_that_of_whole_numbers(times: list[int], gap: int, grace: int) -> None:
    """Against the rules in Python's unbounded integers, also where Kafka's 64 bits wrap."""
    at = pd.Series(np.array(times, "datetime64[ms]")).dt.tz_localize("UTC")  # as integers they would be refused
    run = plan().with_windows(inactivity_gap_ms=gap, grace_ms=grace).run(records(at))
    run.trace.check()
    sessions: list[tuple[int, int]] = []
    stream_time, late = -1, 0
    for time in times:
        stream_time = max(stream_time, time)
        close = stream_time - gap - grace
        met = [s for s in sessions if s[1] >= max(time - gap, stream_time - gap - grace) and s[0] <= time + gap]
        start, end = min([time, *(s[0] for s in met)]), max([time, *(s[1] for s in met)])
        if end < close:
            late += 1
            continue
        sessions = [s for s in sessions if s not in met] + [(start, end)]
    table = run.table()
    assert sorted(zip(table["window_start_ms"], table["window_end_ms"], strict=True)) == sorted(sessions)
    assert len(run.dropped()) == late
    is_open = {s: s[1] >= stream_time - gap - grace for s in sessions}
    assert [is_open[s, e] for s, e in zip(table["window_start_ms"], table["window_end_ms"], strict=True)] == [
        status == "open" for status in table["status"]
    ]


# ---- offsets


def placed(offset: Any, partition: Any = None, **options: Any) -> tuple[sk.Plan, pd.DataFrame]:
    partition = [0] * len(offset) if partition is None else partition
    data = records(range(len(offset)), offset=offset, partition=partition)
    return plan(unit="ms", offset="offset", partition="partition", **options), data


@every_frame
def test_duplicate_offsets_in_a_batch(frame: str) -> None:
    steps, data = placed([0, 1, 1])
    telling = "an offset appears twice; got partition 0, row 2: offset 1 after 1; remove the duplicate"
    refused(InvalidData, telling, lambda: steps.run(FRAMES[frame](data)))
    steps, data = placed([0, 1, 1], [0, 0, 3])  # in another partition it is another record
    assert steps.run(FRAMES[frame](data)).metrics()["process-total"] == 3


@every_frame
def test_offsets_that_do_not_rise(frame: str) -> None:
    steps, data = placed([0, 5, 3])
    telling = "offsets must increase within a partition; got partition 0, row 2: offset 3 after 5; give the records in"
    refused(InvalidData, telling, lambda: steps.run(FRAMES[frame](data)))
    refused(InvalidData, "or pass sort=True in the plan", lambda: steps.run(FRAMES[frame](data)))
    steps, data = placed([0, 5, 3], sort=True)
    trace = steps.run(FRAMES[frame](data)).trace
    assert (trace.batch.offset.tolist(), trace.batch.timestamp_ms.tolist()) == ([0, 3, 5], [0, 2, 1])


@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
def test_offsets_that_were_read_before_are_skipped(rules: str) -> None:
    steps, data = placed([0, 1, 2, 3])
    with sk.open_store("memory", "clicks", retention="1h" if rules == "kafka" else None) as store:
        run_by(steps, data.head(3), store=store, rules=rules)
        again = run_by(steps, data, store=store, rules=rules)
        assert dropped(again) == [(0, "replayed"), (1, "replayed"), (2, "replayed")]
        assert again.table()["count"].tolist() == [4]
        assert again.metrics()["dropped-records-total"] == 0


# ---- keys


@every_frame
def test_a_null_key_is_dropped_and_does_not_move_stream_time(frame: str) -> None:
    run = plan(unit="ms").run(FRAMES[frame](records([5, 900_000, 6], ["ada", None, "ada"])))
    assert dropped(run) == [(1, "null_key")]
    assert run.trace.stream_time_ms.tolist() == [5, 5, 6]


@every_frame
def test_a_null_value_counts_and_moves_stream_time(frame: str) -> None:
    data = FRAMES[frame](records([5, 900_000], ["ada", "bob"], v=pd.array([None, None], "Int64")))
    run = plan(unit="ms").aggregate(n=sk.count(), total=sk.sum("v"), least=sk.min("v")).run(data)
    table = run.table()
    assert list(table["n"].to_numpy()) == [1, 1]
    assert list(table["total"].to_numpy()) == [0, 0]
    assert dropped(run) == []
    assert run.trace.stream_time_ms.tolist() == [5, 900_000]


@pytest.mark.parametrize(("keys", "telling"), [
    ([1, 1.0, True], "column 'user' cannot be read; got booleans beside numbers; values of one type"),
    ([1, True], "column 'user' cannot be read; got Expected integer, got bool"),
    ([1.5, float("nan")], "key column 'user' has a number with a fraction; got 1.5 in row 0; whole numbers, or text"),
    ([dt.datetime(2020, 1, 1)], "key column 'user' has a type that cannot be a key; got timestamp"),
    (["a", 1], "column 'user' cannot be read; got Expected bytes, got a 'int' object; values of one type"),
    ([b"a", "a"], "column 'user' cannot be read; got bytes beside text; values of one type; a key is text"),
    ([2**64], "column 'user' cannot be read; got Python int too large"),
    ([["a"]], "key column 'user' has a type that cannot be a key; got list"),
    ([{"a": 1}], "key column 'user' has a type that cannot be a key; got struct"),
    ([{1, 2}], "key column 'user' has a type that cannot be a key; got list"),
    ([("a", 1)], "column 'user' cannot be read; got Expected bytes, got a 'int' object"),
    ([object()], "column 'user' cannot be read; got Could not convert <object object"),
    ([complex(1)], "a key is text (valid Unicode), an integer of 64 bits or bytes"),
    (["a\ud800"], "column 'user' cannot be read; got 'utf-8' codec can't encode character '\\ud800'"),
])  # fmt: skip
def test_what_is_no_key(keys: list[Any], telling: str) -> None:
    frame = pd.DataFrame({"user": pd.Series(keys, dtype=object), "at": range(len(keys))})
    refused(UnsupportedData, telling, lambda: plan(unit="ms").run(frame))


@pytest.mark.parametrize(
    ("keys", "telling"),
    [
        (pa.array([float("inf")]), "key column 'user' holds a value that cannot be a key; got Float value"),
        (pa.array([1e300]), "key column 'user' holds a value that cannot be a key; got Float value"),
        (pa.array([b"\xff"]).view(pa.string()), "a key of user is not text; got Invalid UTF8 sequence"),
    ],
)
def test_what_is_no_key_in_arrow(keys: pa.Array, telling: str) -> None:
    for data in (pa.table({"user": keys, "at": [1]}), pa.table({"user": keys.dictionary_encode(), "at": [1]})):
        refused(InvalidData, telling, lambda data=data: plan(unit="ms").run(data))


@every_frame
def test_keys_are_compared_as_bytes(frame: str) -> None:
    keys = ["é", "e\u0301", "a\0b", "a\0c", "a", "", " ", "A", "ﬁ", "fi", "\U0001f600"]
    run = plan(unit="ms").run(FRAMES[frame](records(range(len(keys)), keys)))
    assert list(run.table()["key"].to_numpy()) == sorted(keys, key=str.encode)


def test_a_missing_value_of_pandas_in_a_text_column_is_a_null_key() -> None:
    run = plan(unit="ms").run(records([1, 2, 3, 4], ["a", float("nan"), None, pd.NA]))
    assert dropped(run) == [(1, "null_key"), (2, "null_key"), (3, "null_key")]


@every_frame
def test_a_key_of_a_megabyte(frame: str) -> None:
    data = FRAMES[frame](records([1, 2], ["ada", "x" * 2**20]))
    telling = f"a key of user is too long; got 1,048,576 bytes, {'x' * 30}…{'x' * 29}; at most 32,768 bytes"
    refused(InvalidData, telling, lambda: plan(unit="ms").run(data))
    longest = "x" * 32_768
    run = plan(unit="ms").run(FRAMES[frame](records([1], [longest])))
    assert list(run.table()["key"].to_numpy()) == [longest]
    assert len(run._repr_html_()) < 2_000
    assert len(run.explain(offset=0)) < 500


def test_many_keys() -> None:
    count = 300_000  # more than two chunks
    run = plan(unit="ms").run(pa.table({"user": [f"k{i}" for i in range(count)], "at": np.arange(count)}))
    assert run.metrics()["windows"] == count
    numbers = plan(unit="ms").run(pa.table({"user": np.arange(count) - 7, "at": np.arange(count)}))
    assert numbers.metrics()["windows"] == count


@every_frame
def test_integers_are_keys(frame: str) -> None:
    keys = [-(2**63), -1, 0, 2**63 - 1]
    run = plan(unit="ms").run(FRAMES[frame](records(range(4), pd.array(keys, "Int64"))))
    assert list(run.table()["key"].to_numpy()) == [0, 2**63 - 1, -(2**63), -1]


def test_bytes_are_keys() -> None:
    run = plan(unit="ms").run(pa.table({"user": [b"\xff", b"a", b""], "at": [1, 2, 3]}))
    assert run.table()["key"].to_pylist() == [b"", b"a", b"\xff"]
    assert "b&#x27;\\xff&#x27;" in run._repr_html_()


@every_frame
def test_separators_inside_composite_keys(frame: str) -> None:
    data = pd.DataFrame({"carrier": ["UA", "U@A"], "origin": ["EWR", "JFK"], "at": [1, 2]})
    telling = (
        "sep='@' is part of a key value; got 'U@A'; a separator that is in no value of 'carrier', so that different"
    )
    refused(InvalidData, telling, lambda: plan("carrier", "origin", sep="@", unit="ms").run(FRAMES[frame](data)))
    run = plan("carrier", "origin", sep="|", unit="ms").run(FRAMES[frame](data))
    assert list(run.table()["key"].to_numpy()) == ["U@A|JFK", "UA|EWR"]


# ---- values


class Basket:
    """Something of the user's own."""

    def __init__(self, things: int) -> None:
        self.things = things


OBJECTS = pd.Series([Basket(1), Basket(2), None], dtype=object)


@pytest.mark.parametrize("name", ["sum", "mean", "min", "max", "first", "last", "collect"])
@pytest.mark.parametrize(
    "values",
    [OBJECTS, pd.Series([{1}, {2}, {3}]), pd.Series([1, "a", 2.5], dtype=object), pd.Series([{"a": 1}, {}, {"b": 2}])],
)
@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
def test_a_column_of_objects_is_refused_for_built_ins(name: str, values: pd.Series, rules: str) -> None:
    steps = plan(unit="ms").aggregate(result=getattr(sk, name)("v"))
    telling = f"{name}('v') cannot use column 'v'; got python objects; a column of plain values; sk.reduce and"
    refused(UnsupportedData, telling, lambda: run_by(steps, records(range(3), v=values), rules=rules))


@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
def test_a_column_of_objects_works_for_functions(rules: str) -> None:
    steps = plan(unit="ms").aggregate(
        n=sk.count(),
        things=sk.aggregation(
            initializer=int,
            aggregator=lambda key, basket, total: total if basket is None else total + basket.things,
            merger=lambda key, older, newer: older + newer,
            value="v",
        ),
        both=sk.reduce(lambda older, newer: newer, ["v", "at"]),
    )
    run = run_by(steps, records(range(3), v=OBJECTS), rules=rules)
    assert run.table()["things"].tolist() == [3]
    assert run.table()["both"].tolist() == [{"v": None, "at": 2}]


@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
def test_text_is_no_number(rules: str) -> None:
    for name in ("sum", "mean", "min", "max"):
        telling = f"{name}('v') cannot use column 'v'; got string, 'x'; a column of numbers"
        steps = plan(unit="ms").aggregate(result=getattr(sk, name)("v"))
        refused(UnsupportedData, telling, lambda steps=steps: run_by(steps, records([1], v=["x"]), rules=rules))


@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
def test_a_function_that_raises_commits_nothing_and_names_the_record(rules: str) -> None:
    steps = group_in_ms("user", offset="offset").windowed_by(sk.SessionWindows(inactivity_gap="30s", grace="10s"))
    steps = steps.reduce(lambda older, newer: older // newer, "v")
    with pytest.raises(ZeroDivisionError) as pythons_own:
        _ = 1 // 0
    good = records([5, 6], ["ada", "bob"], v=[8, 9], offset=[10, 11])
    bad = records([7, 8, 9], ["bob", "eve", "ada"], v=[3, 1, 0], offset=[12, 13, 14])
    with sk.open_store("memory", "clicks", retention="1h" if rules == "kafka" else None) as store:
        run_by(steps, good, store=store, rules=rules)
        before = list(store.all()), store.snapshot(0)
        with pytest.raises(AggregationFailed) as caught:
            run_by(steps, bad, store=store, rules=rules)
        for telling in (
            "reduce(<lambda>, 'v') failed at record of key 'ada' at partition 0, offset 14, time 9",
            f"got ZeroDivisionError: {pythons_own.value}",
            "nothing of this run was committed",
        ):
            assert telling in str(caught.value)
        assert (list(store.all()), store.snapshot(0)) == before
        assert run_by(steps, bad.assign(v=1), store=store, rules=rules).table()["reduce"].tolist() == [8, 9, 1]


def test_a_long_key_is_shortened_where_a_function_raises() -> None:
    steps = plan(unit="ms").reduce(lambda older, newer: 1 / 0, "v")
    telling = f"record of key '{'x' * 29}…"
    refused(AggregationFailed, telling, lambda: steps.run(records([1, 2], ["x" * 30_000] * 2, v=[1, 2])))


# ---- frames


@every_frame
def test_no_rows(frame: str) -> None:
    data = FRAMES[frame](records(pd.to_datetime([], utc=True), v=np.empty(0)))
    run = plan().aggregate(n=sk.count(), total=sk.sum("v"), own=sk.reduce(max, "v")).run(data)
    assert (len(run.table()), len(run.changelog()), len(run.dropped())) == (0, 0, 0)
    assert run.metrics()["process-total"] == 0
    with sk.open_store("memory", "clicks") as store:
        plan().run(FRAMES[frame](records(pd.to_datetime([], utc=True))), store=store)
        assert len(store) == 0


@pytest.mark.parametrize(
    "data", [pd.DataFrame({"user": [], "at": [], "v": []}), pl.DataFrame({"user": [], "at": [], "v": []})]
)
def test_no_rows_and_no_types(data: Any) -> None:
    run = plan().aggregate(n=sk.count(), total=sk.sum("v"), least=sk.min("v"), all=sk.collect("v")).run(data)
    assert len(run.table()) == 0


def test_an_empty_batch_between_others_changes_nothing() -> None:
    with sk.open_store("memory", "clicks") as store:
        plan(unit="ms").run(records([5]), store=store)
        plan(unit="ms").run(records(np.empty(0, np.int64)), store=store)
        assert plan(unit="ms").run(records([6]), store=store).table()["count"].tolist() == [2]
        assert store.snapshot(0).position == 1


def test_a_frame_of_many_columns_is_listed_in_short() -> None:
    wide = pd.DataFrame({f"column {i}": [1] for i in range(5_000)})
    refused(MissingColumn, "column 'user' is not in the data; got 'column 0', 'column 1'", lambda: plan().run(wide))


@pytest.mark.thorough
def test_keys_times_partitions_are_more_than_32_bits_can_number() -> None:
    """A slot is a 32-bit number: so those that occur are numbered, and not all that there could be."""
    data = pa.table({"user": np.arange(5_000), "at": np.arange(5_000)})
    table = plan(unit="ms", partitions=1_000_000).run(data).table()
    assert len(table) == 5_000
    assert sorted(table["key"].to_pylist()) == list(range(5_000))
