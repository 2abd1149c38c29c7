"""The trace of time and sliding windows, by hand; every law of `check()` broken; the grace that is enough."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sessionkit as sk
from sessionkit.base.decisions import ADDED, COPIED, COPIED_ADDED, LATE, MERGED, OPENED
from sessionkit.trace.window_trace import WindowTrace
from tests.deployments import run_deployed
from tests.interpreted import fewer
from tests.kinds import group_in_ms, table_of
from tests.unit.trace.test_trace import (
    TYPES,
    Row,
    assert_named,
    closed_twice,
    every_broken,
    moved_by_one_ahead,
    with_column,
    with_derived,
    with_entry,
)

Change = Callable[[WindowTrace], WindowTrace]
HOPPING = sk.TimeWindows(size_ms=10, advance_ms=5, grace_ms=3)


def run_of(windows: Any, rows: list[Row], store: Any = None) -> sk.Run:
    plan = group_in_ms("key", timestamp="time", partition="partition", offset="offset", on_bad_time="drop")
    return plan.windowed_by(windows).count().run(table_of(rows, **TYPES), store=store)


def in_one_partition(windows: Any, rows: list[tuple[str, int]]) -> sk.Run:
    return run_of(windows, [(key, time, 0, i) for i, (key, time) in enumerate(rows)])


# windows of 10 every 5, grace 3: [s, s + 10) is closed once stream time is s + 13
MONDAY: list[Row] = [("a", 12, 0, 0), ("b", 3, 0, 1), ("a", 100, 7, 0)]
TUESDAY: list[Row] = [
    ("b", 3, 0, 1),  # 0  replayed
    ("a", 14, 0, 2),  # 1  added to [5, 15) [10, 20) of Monday; close time 11: closes b's [0, 10)
    (None, 99, 0, 3),  # 2  null key, does not move stream time
    ("a", None, 0, 4),  # 3  bad time
    ("a", -4, 0, 5),  # 4  negative time
    ("b", 18, 0, 6),  # 5  opens [10, 20) [15, 25); close time 15: closes a's [5, 15)
    ("a", 13, 0, 7),  # 6  misses [5, 15), counts in [10, 20)
    ("a", 4, 0, 8),  # 7  misses [0, 10)
    ("c", 17, 0, 9),  # 8  opens [10, 20) [15, 25)
    ("a", 104, 7, 1),  # 9  another clock
    ("a", 115, 7, 2),  # 10 opens [110, 120) [115, 125); close time 112: closes [95, 105) [100, 110)
]


@pytest.fixture
def tuesday() -> sk.Run:
    with sk.open_store("memory", "hopping", of="windows") as store:
        run_of(HOPPING, MONDAY, store)
        return run_of(HOPPING, TUESDAY, store)


# ---- what it says


def test_records(tuesday: sk.Run) -> None:
    rows = tuesday.trace.records().to_pylist()
    names = ("decision", "reason", "window_count", "missed_count", "stream_time_ms")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("dropped", "replayed", 0, 0, 12), ("added", None, 2, 0, 14), ("dropped", "null_key", 0, 0, 14),
        ("dropped", "bad_time", 0, 0, 14), ("dropped", "negative_time", 0, 0, 14), ("opened", None, 2, 0, 18),
        ("added", None, 1, 1, 18), ("dropped", "late", 0, 1, 18), ("opened", None, 2, 0, 18),
        ("added", None, 2, 0, 104), ("opened", None, 2, 0, 115),
    ]  # fmt: skip
    where = ("key", "timestamp_ms", "partition", "offset")
    assert [tuple(row[name] for name in where) for row in rows] == TUESDAY


def test_windows(tuesday: sk.Run) -> None:
    trace = tuesday.trace
    names = (
        "partition", "key", "window_start_ms", "window_end_ms", "timestamp_ms", "opened_by", "closed_by", "status",
    )  # fmt: skip
    rows = trace.windows().to_pylist()
    assert tuple(rows[0]) == names
    assert sorted(tuple(row.values())[:6] for row in rows) == [
        (0, "a", 5, 15, 14, 0),
        (0, "a", 10, 20, 14, 0),  # 13 came later
        (0, "b", 0, 10, 3, 1),
        (0, "b", 10, 20, 18, 6),
        (0, "b", 15, 25, 18, 6),
        (0, "c", 10, 20, 17, 9),
        (0, "c", 15, 25, 17, 9),
        (7, "a", 95, 105, 104, 0),
        (7, "a", 100, 110, 104, 0),
        (7, "a", 110, 120, 115, 2),
        (7, "a", 115, 125, 115, 2),
    ]
    closed_by = {tuple(row.values())[:3]: row["closed_by"] for row in rows if row["status"] == "closed"}
    assert closed_by == {(0, "b", 0): 2, (0, "a", 5): 6, (7, "a", 95): 2, (7, "a", 100): 2}
    assert {(row["status"], row["closed_by"]) for row in rows if row["closed_by"] is None} == {("open", None)}
    assert trace.windows(np.array([2, 0])).to_pylist() == [rows[2], rows[0]]


def test_touched(tuesday: sk.Run) -> None:
    rows = tuesday.trace.touched().to_pylist()
    names = ("partition", "offset", "key", "timestamp_ms", "window_start_ms", "window_end_ms", "effect")
    assert tuple(rows[0]) == (*names, "copied_from_start_ms")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (0, 2, "a", 14, 5, 15, "added"), (0, 2, "a", 14, 10, 20, "added"), (0, 6, "b", 18, 10, 20, "opened"),
        (0, 6, "b", 18, 15, 25, "opened"), (0, 7, "a", 13, 5, 15, "dropped"), (0, 7, "a", 13, 10, 20, "added"),
        (0, 8, "a", 4, 0, 10, "dropped"), (0, 9, "c", 17, 10, 20, "opened"), (0, 9, "c", 17, 15, 25, "opened"),
        (7, 1, "a", 104, 95, 105, "added"), (7, 1, "a", 104, 100, 110, "added"), (7, 2, "a", 115, 110, 120, "opened"),
        (7, 2, "a", 115, 115, 125, "opened"),
    ]  # fmt: skip
    assert {row["copied_from_start_ms"] for row in rows} == {None}
    assert tuesday.trace.newest_ms.tolist() == [14, 14, 18, 18, -1, 14, -1, 17, 17, 104, 104, 115, 115]


def test_counts_and_words(tuesday: sk.Run) -> None:
    trace = tuesday.trace
    trace.check()
    assert trace.counts() == {
        "opened": 3, "added": 3, "late": 1, "null_key": 1, "bad_time": 1, "negative_time": 1, "replayed": 1,
    }  # fmt: skip
    assert repr(trace).startswith("Trace of 11 records (3 opened, 3 added, 1 late, ")
    assert repr(trace).endswith("), 11 windows")
    assert repr(trace) in trace._repr_html_()
    assert np.flatnonzero(trace.accepted).tolist() == [1, 5, 6, 8, 9, 10]
    assert trace.last_stream_time_ms.tolist() == [18, 115]
    assert (trace.stream_time_ms - trace.close_time_ms == 3).all()


def test_where(tuesday: sk.Run) -> None:
    trace = tuesday.trace
    assert trace.where(decision="dropped")["offset"].to_pylist() == [1, 3, 4, 5, 8]
    assert trace.where(reason="late")["offset"].to_pylist() == [8]
    assert trace.where(decision="added")["offset"].to_pylist() == [2, 7, 1]
    assert trace.where(decision="dropped", reason="null_key").num_rows == 1
    assert trace.where(decision="opened", reason="late").num_rows == 0
    assert trace.where(decision="copied").num_rows == 0  # of a record it is no decision


def test_dropped(tuesday: sk.Run) -> None:
    """A row for each window that was missed, and for each record that was dropped for another reason."""
    table = tuesday.dropped()
    names = (
        "partition", "offset", "key", "timestamp_ms", "stream_time_ms", "reason", "window_start_ms", "window_end_ms",
        "missing_grace_ms", "enough_grace_ms",
    )  # fmt: skip
    assert tuple(table.column_names) == names
    nothing = (None, None, None, None)
    assert [tuple(row.values()) for row in table.to_pylist()] == [
        (0, 1, "b", 3, 12, "replayed", *nothing),
        (0, 3, None, 99, 14, "null_key", *nothing),
        (0, 4, "a", None, 14, "bad_time", *nothing),
        (0, 5, "a", -4, 14, "negative_time", *nothing),
        (0, 7, "a", 13, 18, "late", 5, 15, 1, 4),  # the last time in it is 14, one before the close time
        (0, 8, "a", 4, 18, "late", 0, 10, 6, 9),
    ]
    m = tuesday.metrics()
    assert (m["dropped-records-total"], m["replayed-records"]) == (5, 1)  # a replay is no drop


def test_closes_are_by_record_then_start_then_key_bytes() -> None:
    rows = [("é", 1), ("z", 11), ("b", 2), ("a", 12), ("B", 3), ("x", 23), ("x", 99)]
    trace = in_one_partition(sk.TimeWindows(size_ms=10, grace_ms=12), rows).trace
    keys = trace.keys.take(pa.array(trace.window_columns.key[trace.closes.window])).to_pylist()
    found = list(zip(trace.closes.at.tolist(), trace.closes.start_ms.tolist(), keys, strict=True))
    assert found == [(5, 0, "B"), (5, 0, "b"), (5, 0, "é"), (6, 10, "a"), (6, 10, "z"), (6, 20, "x")]


def test_index_of(tuesday: sk.Run) -> None:
    assert tuesday.trace.index_of(8, 0) == 7
    assert tuesday.trace.index_of(2, 7) == 10


def test_an_empty_trace() -> None:
    for windows in (HOPPING, sk.SlidingWindows(time_difference_ms=5, grace=0)):
        trace = run_of(windows, []).trace
        trace.check()
        tables = (trace.records(), trace.windows(), trace.touched())
        assert [table.num_rows for table in tables] == [0, 0, 0]
        assert (len(trace), trace.counts(), len(trace.closes.at)) == (0, {}, 0)
        assert repr(trace) == "Trace of 0 records (none), 0 windows"


@pytest.mark.parametrize(
    "windows",
    [sk.TimeWindows(size_ms=10, grace_ms=50), sk.SlidingWindows(time_difference_ms=10, grace_ms=50)],
    ids=repr,
)
def test_laws_hold_where_a_null_aggregate_deletes_a_window(windows: Any) -> None:
    """The next record begins the window anew, and its time too."""
    nulls = sk.aggregation(
        initializer=lambda: 0,
        aggregator=lambda key, value, aggregate: None if value == 0 else aggregate + value,
        merger=lambda key, older, newer: older + newer,
        value="v",
    )
    table = pa.table({"key": ["a"] * 4, "at": [5, 5, 1, 12], "v": [1, 0, 1, 1]})
    plan = group_in_ms("key").windowed_by(windows).aggregate(x=nulls)
    run_deployed(plan, table, retention="1000ms").trace.check()


# ---- every law, broken on purpose


HOPS: list[Row] = [
    ("a", 12, 0, 0),  # touches 0, 1: opens [5, 15) [10, 20), rows 0, 1
    ("b", 3, 0, 1),  # touch 2: opens [0, 10), row 2
    ("a", 14, 0, 2),  # touches 3, 4
    (None, 99, 0, 3),
    ("b", 18, 0, 4),  # touches 5, 6: opens [10, 20) [15, 25), rows 3, 4
    ("a", 13, 0, 5),  # touch 7: misses [5, 15); touch 8
    ("a", 4, 0, 6),  # touch 9: misses [0, 10)
    ("c", 17, 0, 7),  # touches 10, 11: opens [10, 20) [15, 25), rows 5, 6
    ("a", 100, 7, 0),  # touches 12, 13: opens [95, 105) [100, 110), rows 7, 8
    ("a", 115, 7, 1),  # touches 14, 15: opens [110, 120) [115, 125), rows 9, 10
]


@pytest.fixture(scope="module")
def hops() -> WindowTrace:
    return run_of(HOPPING, HOPS).trace


@pytest.fixture(scope="module")
def slides() -> WindowTrace:
    """[10, 20] by the first, [21, 31] [20, 30] by the second, [19, 29] by the third, which leaves [30, 40] behind."""
    return in_one_partition(
        sk.SlidingWindows(time_difference_ms=10, grace_ms=2), [("a", 20), ("a", 30), ("a", 29)]
    ).trace


def with_touch(row: int, **values: int) -> Change:
    def change(trace: WindowTrace) -> WindowTrace:
        columns = {name: column.copy() for name, column in trace.touches._asdict().items()}
        for name, value in values.items():
            columns[name][row] = value
        touches = type(trace.touches)(**columns)
        return dataclasses.replace(trace, find_touches=lambda: touches)

    return change


def with_time(row: int, time_ms: int) -> Change:
    def change(trace: WindowTrace) -> WindowTrace:
        times = trace.batch.timestamp_ms.copy()
        times[row] = time_ms
        return dataclasses.replace(trace, batch=trace.batch.replace(timestamp_ms=times))

    return change


def with_field(name: str, value: Any) -> Change:
    return lambda trace: dataclasses.replace(trace, **{name: value})


BROKEN: dict[str, list[Change]] = {
    "each record is accepted or dropped, with a reason": [
        with_column("decision", 0, 0),
        with_column("decision", 6, 99),
        with_column("decision", 2, MERGED),  # time and sliding windows do not merge
        with_column("decision", 2, COPIED),
    ],
    "what was missed has no window, all else has one": [
        with_touch(7, window=0),
        with_touch(0, window=-1),
        with_touch(0, effect=LATE),
        with_touch(9, effect=ADDED),
    ],
    "each window that is named is there": [with_touch(0, window=11), with_touch(15, window=11)],
    "stream time never falls": [with_derived("stream_time_ms", lambda times: times[::-1].copy())],
    "a record that is ahead of its arrival moves no stream time": [moved_by_one_ahead(3)],
    "a record stays with its key and partition": [
        with_touch(0, window=2),  # b's
        with_touch(12, window=0),  # partition 0's
        with_touch(5, record=2),
    ],
    "a touch names its window's start": [
        with_touch(0, window=1),
        with_touch(0, start_ms=10),
        with_entry("window_columns", "start_ms", 0, 4),
    ],
    "a window ends where its start says": [
        with_entry("window_columns", "end_ms", 0, 16),
        with_field("ends_ms", lambda starts: starts + 11),
    ],
    "a record lies in the windows in which it counts": [
        with_touch(14, window=7, start_ms=95),
        with_touch(13, window=9, start_ms=110),
        with_time(2, 15),  # the end of [5, 15) is not in it
        with_time(2, 9),  # before [10, 20)
    ],
    "a record counts in open windows only": [
        with_field("close_lag_ms", 2),  # of b's [0, 10), at stream time 12
        with_derived("stream_time_ms", lambda times: times + 1_000),
    ],
    "a window that is missed was closed": [
        with_field("close_lag_ms", 4),  # of a's [5, 15), at stream time 18
        with_touch(9, start_ms=10),
    ],
    "an accepted record counts in a window, a dropped one in none": [
        with_column("decision", 6, OPENED),
        with_column("decision", 0, LATE),
        with_column("decision", 3, ADDED),
    ],
    "a window closes once": [with_derived("closes", closed_twice)],
    "a copy, and nothing else, has a source": [
        with_touch(0, source=1),
        with_touch(0, effect=COPIED_ADDED),
        with_touch(0, effect=COPIED_ADDED, source=11),
    ],
    "a copy stays with its key and partition": [with_touch(0, effect=COPIED_ADDED, source=2)],
    "the first touch of a new window makes it": [with_touch(0, effect=ADDED), with_touch(13, effect=ADDED)],
    "a new window is named by the record that made it": [with_entry("window_columns", "opened_by", 1, 3)],
    "a window's time is that of its newest record": [
        with_entry("window_columns", "timestamp_ms", 0, 15),
        with_entry("window_columns", "timestamp_ms", 1, 12),
        with_time(2, 13),
    ],
}


@every_broken(BROKEN)
def test_a_broken_law_is_named(hops: WindowTrace, law: str, change: Change) -> None:
    assert_named(hops, law, change)


@pytest.mark.parametrize(
    ("law", "change"),
    [
        ("a record lies in the windows in which it counts", with_field("inclusive_end", False)),
        ("a record lies in the windows in which it counts", with_touch(-1, effect=ADDED)),
        ("a record counts in open windows only", with_field("close_lag_ms", 0)),
        ("an accepted record counts in a window, a dropped one in none", with_touch(0, effect=COPIED)),
    ],
)
def test_a_broken_law_of_sliding_windows_is_named(slides: WindowTrace, law: str, change: Change) -> None:
    assert_named(slides, law, change)


def test_every_law_is_broken_above(hops: WindowTrace) -> None:
    assert list(BROKEN) == [law for law, _ in hops._laws()]


# ---- drops, and the grace that would have been enough

ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 40)), max_size=14)
TIME_WINDOWS = st.builds(
    lambda size, advance, grace: sk.TimeWindows(size_ms=size, advance_ms=min(size, advance), grace_ms=grace),
    st.integers(1, 12),
    st.integers(1, 12),
    st.integers(0, 6),
)
SLIDING_WINDOWS = st.builds(sk.SlidingWindows, time_difference_ms=st.integers(1, 12), grace_ms=st.integers(0, 6))


def counted(run: sk.Run) -> set[tuple[int, int]]:
    """(offset, start) of each window in which a record counts."""
    rows = run.trace.touched().to_pylist()
    return {(row["offset"], row["window_start_ms"]) for row in rows if row["effect"] not in ("dropped", "copied")}


@pytest.mark.slow
@settings(max_examples=fewer(60))
@given(TIME_WINDOWS | SLIDING_WINDOWS, ROWS)
def test_with_enough_grace_the_record_counts_in_that_window_and_with_1_ms_less_it_does_not(
    windows: Any, rows: list[tuple[str, int]]
) -> None:
    """Under sliding windows, too, although there other grace makes other windows: the one that was missed is there."""
    run = in_one_partition(windows, rows)
    run.trace.check()
    for row in run.dropped().to_pylist()[:3]:
        missed = (row["offset"], row["window_start_ms"])
        assert missed not in counted(run)
        assert row["missing_grace_ms"] == row["enough_grace_ms"] - windows.grace_ms > 0
        for grace, is_counted in ((row["enough_grace_ms"], True), (row["enough_grace_ms"] - 1, False)):
            again = run.plan.with_windows(grace_ms=grace).windows
            assert (missed in counted(in_one_partition(again, rows))) is is_counted


@settings(max_examples=fewer(60))
@given(TIME_WINDOWS | SLIDING_WINDOWS, ROWS)
def test_drops_are_counted_once_each(windows: Any, rows: list[tuple[str, int]]) -> None:
    """With a record without a key and one without a time among them."""
    full: list[Row] = [(key, time, 0, i) for i, (key, time) in enumerate(rows)]
    full += [(None, 99, 0, len(rows)), ("a", None, 0, len(rows) + 1)]
    run = run_of(windows, full)
    m, dropped = run.metrics(), run.dropped().to_pylist()
    assert m["dropped-records-total"] == len(dropped)
    reasons = pd.Series([row["reason"] for row in dropped]).value_counts().to_dict()
    assert reasons.pop("late", 0) == m["dropped-late"] == run.trace.records()["missed_count"].to_numpy().sum()
    assert reasons == {"null_key": 1, "bad_time": 1}
    assert [row["offset"] for row in dropped] == sorted(row["offset"] for row in dropped)
    assert sum(run.table()["count"].to_pylist()) >= run.trace.accepted.sum()


def test_what_was_missed_is_told_without_what_was_met() -> None:
    rng = np.random.default_rng(3)
    times = np.maximum(np.arange(400) * 1_000 - rng.integers(0, 90_000, 400), 0)
    data = pd.DataFrame({"key": pd.array([f"k{each}" for each in rng.integers(0, 4, 400)], "string"), "at": times})
    for windows in (sk.TimeWindows(size="20s", grace="5s"), sk.TimeWindows(size="20s", advance="3s", grace="5s")):
        trace = group_in_ms("key").windowed_by(windows).count().run(data).trace
        missed = trace.missed
        assert "touches" not in trace.__dict__ and len(missed.record)
        late = trace.touches.effect == LATE
        assert all(np.array_equal(one, all_of[late]) for one, all_of in zip(missed, trace.touches, strict=True))
