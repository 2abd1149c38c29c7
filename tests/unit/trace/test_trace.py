"""The trace of a small run, by hand; every law of `check()` broken on purpose; the ends of the 64 bits."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.aggregations.built_ins import count
from sessionkit.base.decisions import ADDED, AHEAD, LATE, MERGED, OPENED
from sessionkit.base.durations import INT64_MAX
from sessionkit.engine.commit import commit
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.errors import BrokenTrace, NumberOverflow, UnknownRecord
from sessionkit.records.batch import read_records
from sessionkit.records.source import Source
from sessionkit.stores.memory.sessions import MemorySessionStore
from sessionkit.trace.session_trace import SessionTrace
from sessionkit.trace.trace import Merges, WindowColumns
from sessionkit.windows.session import SessionWindows
from tests.kinds import table_of

WINDOWS = SessionWindows(inactivity_gap_ms=3, grace_ms=2)
RETENTION_MS = 20
Row = tuple[str | None, int | None, int, int]  # key, time, partition, offset
Change = Callable[[Any], Any]


TYPES = {"key": pa.string(), "time": pa.int64(), "partition": pa.int32(), "offset": pa.int64()}


def run(rows: list[Row], store: MemorySessionStore | None = None, windows: SessionWindows = WINDOWS) -> SessionTrace:
    source = Source(
        keys=("key",), timestamp="time", unit="ms", partition="partition", offset="offset", on_bad_time="drop"
    )
    retention, batch = max(RETENTION_MS, windows.close_lag_ms), read_records(table_of(rows, **TYPES), source, ())
    outcome = run_kernel(windows, {"n": count()}, batch, retention_ms=retention, store=store)
    if store is not None:
        commit(outcome, store, windows, retention)
    assert outcome.kept_trace is not None
    return outcome.kept_trace


# gap 3, grace 2: a session is closed once stream time has passed its end by more than 5; kept for 20
MONDAY: list[Row] = [("a", 10, 0, 0), ("b", 12, 0, 1), ("a", 100, 7, 0)]
TUESDAY: list[Row] = [
    ("b", 12, 0, 1),  # 0  replayed
    ("a", 15, 0, 2),  # 1  opened: 10 is 5 away
    ("a", 12, 0, 3),  # 2  bridge from [10, 10] (of Monday) to [15, 15]
    (None, 99, 0, 4),  # 3  null key, does not move stream time
    ("a", None, 0, 5),  # 4  bad time
    ("a", -4, 0, 6),  # 5  negative time
    ("a", 18, 0, 7),  # 6  end moves to 18; close line 13: closes [12, 12] of b
    ("b", 9, 0, 8),  # 7  touches the closed [12, 12] of b, which ends before 13: late
    ("a", 9, 0, 9),  # 8  late by itself, but [10, 18] is open
    ("c", 30, 0, 10),  # 9  closes [9, 18]
    ("a", 20, 0, 11),  # 10 late
    ("a", 97, 7, 1),  # 11 another clock
]


@pytest.fixture
def tuesday() -> SessionTrace:
    store = MemorySessionStore()
    run(MONDAY, store)
    return run(TUESDAY, store)


def words(trace: SessionTrace, *names: str) -> list[tuple[Any, ...]]:
    table = trace.records()
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def test_records(tuesday: SessionTrace) -> None:
    tuesday.check()
    assert words(tuesday, "decision", "reason", "window_id", "merged_count", "stream_time_ms") == [
        ("dropped", "replayed", None, 0, 12), ("opened", None, 2, 0, 15), ("merged", None, 0, 1, 15),
        ("dropped", "null_key", None, 0, 15), ("dropped", "bad_time", None, 0, 15),
        ("dropped", "negative_time", None, 0, 15), ("added", None, 0, 0, 18), ("dropped", "late", None, 0, 18),
        ("added", None, 0, 0, 18), ("opened", None, 10, 0, 30), ("dropped", "late", None, 0, 30),
        ("added", None, 0, 0, 100),
    ]  # fmt: skip
    assert words(tuesday, "key", "timestamp_ms", "partition", "offset") == [
        (key, time, partition, offset) for key, time, partition, offset in TUESDAY
    ]


def test_windows(tuesday: SessionTrace) -> None:
    rows = tuesday.windows().to_pylist()
    names = [
        "window_id", "partition", "key", "window_start_ms", "window_end_ms", "closed_by", "merged_into", "parents",
        "status",
    ]  # fmt: skip
    assert [tuple(row[name] for name in names) for row in rows] == [
        (1, 0, "b", 12, 12, 7, None, [], "closed"),
        (0, 0, "a", 9, 18, 10, None, [2], "closed"),
        (0, 7, "a", 97, 100, None, None, [], "open"),
        (2, 0, "a", 15, 15, None, 0, [], "merged"),
        (10, 0, "c", 30, 30, None, None, [], "open"),
    ]
    assert tuesday.windows(np.array([2])).to_pylist() == [rows[2]]


def test_counts_and_words(tuesday: SessionTrace) -> None:
    assert tuesday.counts() == {
        "opened": 2, "added": 3, "merged": 1,
        "late": 2, "null_key": 1, "bad_time": 1, "negative_time": 1, "replayed": 1,
    }  # fmt: skip
    assert repr(tuesday).startswith("Trace of 12 records (2 opened, 3 added, 1 merged, 2 late, ")
    assert repr(tuesday).endswith("), 5 windows")
    assert repr(tuesday) in tuesday._repr_html_()
    assert tuesday.where(decision="dropped").num_rows == 6
    assert tuesday.where(reason="late")["offset"].to_pylist() == [8, 11]
    assert tuesday.where(decision="dropped", reason="late").num_rows == 2
    assert tuesday.where(decision="opened", reason="late").num_rows == 0


def test_masks(tuesday: SessionTrace) -> None:
    assert np.flatnonzero(tuesday.accepted).tolist() == [1, 2, 6, 8, 9, 11]
    assert np.flatnonzero(tuesday.late_but_kept).tolist() == [8]
    assert tuesday.last_stream_time_ms.tolist() == [30, 100]
    assert (tuesday.stream_time_ms - tuesday.close_time_ms == 5).all()
    start, end = (bound.tolist() for bound in tuesday.bounds_after)
    assert start == [-1, 15, 10, -1, -1, -1, 10, -1, 9, 30, -1, 97]
    assert end == [-1, 15, 15, -1, -1, -1, 18, -1, 18, 30, -1, 100]


def test_closes_are_by_record_then_end_then_key_bytes() -> None:
    rows: list[Row] = [("c", 10, 0, 0), ("a", 10, 0, 1), ("é", 9, 0, 2), ("x", 15, 0, 3), ("x", 90, 0, 4)]
    trace = run(rows)
    closes = trace.closes
    at = list(
        zip(
            closes.at.tolist(),
            trace.keys.take(pa.array(trace.window_columns.key[closes.window])).to_pylist(),
            strict=True,
        )
    )
    assert at == [(3, "é"), (4, "a"), (4, "c"), (4, "x")]
    assert (closes.until == INT64_MAX).all()


def test_a_reopened_session_closes_twice() -> None:
    """Kept for 20: at stream time 16, [10, 10] is closed, and 13 brings it back as [10, 13]."""
    trace = run([("a", 10, 0, 0), ("b", 16, 0, 1), ("a", 13, 0, 2), ("b", 90, 0, 3)])
    trace.check()
    assert trace.decision.tolist() == [OPENED, OPENED, ADDED, OPENED]
    closes = list(zip(*(column.tolist() for column in trace.closes), strict=True))
    assert closes == [(1, 0, 10, 10, 2), (3, 0, 10, 13, INT64_MAX), (3, 1, 16, 16, INT64_MAX)]
    assert trace.closed_by.tolist() == [3, 3, -1]


def test_index_of(tuesday: SessionTrace) -> None:
    assert tuesday.index_of(8, 0) == 7
    assert tuesday.index_of(1, 7) == 11
    assert run(MONDAY[:2]).index_of(1) == 1


@pytest.mark.parametrize(
    ("offset", "partition", "telling"),
    [
        (8, None, "an offset needs its partition as well; got offset 8; partition= one of [0, 7]"),
        (99, 0, "this record is not in the run; got partition 0, offset 99; an offset from 1 to 11"),
        (8, 3, "this record is not in the run; got partition 3, offset 8; a partition of this run"),
    ],
)
def test_a_record_that_is_not_there(tuesday: SessionTrace, offset: int, partition: int | None, telling: str) -> None:
    with pytest.raises(UnknownRecord) as caught:
        tuesday.index_of(offset, partition)
    assert str(caught.value) == telling
    assert isinstance(caught.value, LookupError)


def test_an_empty_trace() -> None:
    trace = run([])
    trace.check()
    assert (len(trace), trace.records().num_rows, trace.windows().num_rows, trace.counts()) == (0, 0, 0, {})
    assert len(trace.closes.at) == len(trace.closed_by) == len(trace.last_stream_time_ms) == 0
    assert repr(trace) == "Trace of 0 records (none), 0 windows"
    with pytest.raises(UnknownRecord, match="offset 0; a partition of this run"):
        trace.index_of(0)


# ---- every law, broken on purpose


def with_column(name: str, row: int, value: int) -> Change:
    """The trace with one entry of `decision` or `window` changed."""

    def change(trace: Any) -> Any:
        column = getattr(trace, name).copy()
        column[row] = value
        return dataclasses.replace(trace, **{name: column})

    return change


def with_entry(table: str, name: str, row: int, value: int) -> Change:
    """The trace with one entry of `window_columns` or `merges` changed."""

    def change(trace: Any) -> Any:
        columns = getattr(trace, table)
        column = getattr(columns, name).copy()
        column[row] = value
        return dataclasses.replace(trace, **{table: columns._replace(**{name: column})})

    return change


def without_merges(trace: SessionTrace) -> SessionTrace:
    return dataclasses.replace(trace, merges=Merges._make(column[:0] for column in trace.merges))


def absorbed_twice(trace: SessionTrace) -> SessionTrace:
    return dataclasses.replace(trace, merges=Merges._make(column.repeat(2) for column in trace.merges))


def with_an_unopened_window(trace: SessionTrace) -> SessionTrace:
    columns = trace.window_columns
    longer = {
        name: np.append(column, column[-1:]) for name, column in columns._asdict().items() if name != "loaded_count"
    }
    return dataclasses.replace(trace, window_columns=WindowColumns(**longer, loaded_count=columns.loaded_count))


def with_derived(name: str, change: Callable[[Any], Any]) -> Change:
    """The trace with a column changed that is derived from the others."""

    def broken(trace: Any) -> Any:
        other = dataclasses.replace(trace)
        other.__dict__[name] = change(getattr(trace, name))
        return other

    return broken


def moved_by_one_ahead(row: int) -> Change:
    """The trace with a dropped record that is said to be ahead of its arrival, and stream time higher from it on."""

    def broken(trace: Any) -> Any:
        other = with_column("decision", row, AHEAD)(trace)
        other.__dict__["stream_time_ms"] = trace.stream_time_ms + (np.arange(len(trace)) >= row)
        return other

    return broken


def closed_twice(closes: Any) -> Any:
    return type(closes)(*(np.append(column, column[-1:]) for column in closes))


def every_broken(broken: dict[str, list[Change]]) -> Any:
    """Runs a test over each change, with the law that it breaks."""
    cases = [(law, change) for law, changes in broken.items() for change in changes]
    return pytest.mark.parametrize(("law", "change"), cases, ids=[f"{law}-{i}" for i, (law, _) in enumerate(cases)])


def assert_named(trace: Any, law: str, change: Change) -> None:
    trace.check()
    with pytest.raises(BrokenTrace) as caught:
        change(trace).check()
    assert str(caught.value) == f"a law of the trace does not hold; got {law}; this is a bug in sessionkit"
    trace.check()  # the change was made to a copy


BROKEN: dict[str, list[Change]] = {
    "each record is accepted or dropped, with a reason": [
        with_column("decision", 1, 0),
        with_column("decision", 7, 99),
    ],
    "an accepted record has a window, a dropped one has none": [
        with_column("window", 1, -1),
        with_column("window", 7, 2),
        with_column("decision", 1, LATE),
    ],
    "each window that is named is there": [
        with_column("window", 6, 5),
        with_entry("merges", "absorbed", 0, 77),
        with_entry("merges", "into", 0, -1),
    ],
    "windows are numbered as they are opened": [
        with_column("window", 1, 4),
        with_column("decision", 6, OPENED),
        with_column("decision", 9, ADDED),
        with_an_unopened_window,
    ],
    "a record that merges absorbs a session": [
        without_merges,
        with_column("decision", 6, MERGED),
        with_entry("merges", "at", 0, 6),
    ],
    "a session is absorbed once": [absorbed_twice],
    "what was absorbed is marked so": [
        with_entry("window_columns", "merged_into", 3, -1),
        with_entry("window_columns", "merged_into", 2, 0),
        with_entry("merges", "absorbed", 0, 2),
    ],
    "stream time never falls": [with_derived("stream_time_ms", lambda times: times[::-1].copy())],
    "a record that is ahead of its arrival moves no stream time": [moved_by_one_ahead(4)],
    "a record stays with its key and partition": [with_column("window", 6, 2), with_column("window", 6, 0)],
    "a record lies in its window": [
        with_derived("bounds_after", lambda bounds: (bounds[0] + 1, bounds[1])),
        with_derived("bounds_after", lambda bounds: (bounds[0], bounds[1] - 1)),
    ],
    "a record is kept by a session that is open": [
        with_derived("stream_time_ms", lambda times: np.maximum(times, 500))
    ],
    "a late record is older than the close line": [with_derived("stream_time_ms", lambda times: np.minimum(times, 14))],
    "bounds end where the last touch left them": [
        with_entry("window_columns", "start_ms", 1, 8),
        with_entry("window_columns", "end_ms", 0, 13),
        with_entry("window_columns", "end_ms", 2, 99),
    ],
    "a session closes once, unless it is re-opened": [with_derived("closes", closed_twice)],
}  # fmt: skip


@every_broken(BROKEN)
def test_a_broken_law_is_named(tuesday: SessionTrace, law: str, change: Change) -> None:
    assert_named(tuesday, law, change)


def test_every_law_is_broken_above(tuesday: SessionTrace) -> None:
    assert list(BROKEN) == [law for law, _ in tuesday._laws()]


# ---- the ends of the 64 bits


def test_a_close_line_beyond_64_bits_closes_nothing() -> None:
    """end + gap + grace does not fit, though end + gap does: the session stays open instead of closing at once."""
    windows = SessionWindows(inactivity_gap_ms=3, grace_ms=1_000)
    trace = run([("a", INT64_MAX - 3, 0, 0), ("b", INT64_MAX - 10, 0, 1)], windows=windows)
    trace.check()
    assert trace.windows()["status"].to_pylist() == ["open", "open"]
    assert trace.closed_by.tolist() == [-1, -1]


def test_the_last_time_of_all() -> None:
    trace = run([("a", INT64_MAX, 0, 0), ("a", INT64_MAX, 0, 1)], windows=SessionWindows(inactivity_gap=0, grace=0))
    trace.check()
    assert trace.decision.tolist() == [OPENED, ADDED]
    with pytest.raises(NumberOverflow, match="a window would end after the largest 64-bit time"):
        run([("a", INT64_MAX - 2, 0, 0)])


@pytest.mark.filterwarnings("ignore:column 'time' read as ms lies outside 1990 to 2100")
def test_the_largest_durations() -> None:
    windows = SessionWindows(inactivity_gap_ms=2**61, grace_ms=2**61)
    trace = run(
        [("a", 0, 0, 0), ("a", 2**61, 0, 1), ("a", 2**62 + 1, 0, 2), ("b", 1, 0, 3), ("c", 0, 0, 4)], windows=windows
    )
    trace.check()
    assert trace.decision.tolist() == [OPENED, ADDED, OPENED, OPENED, LATE]
    assert trace.windows()["status"].to_pylist() == ["open"] * 3
