"""Sliding windows: their parameters, the windows that records make, what a partly late record does, trailing only."""

from collections import defaultdict
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sessionkit as sk
from sessionkit.base.decisions import LATE
from sessionkit.base.durations import INT64_MAX
from sessionkit.errors import InvalidArgument, NotBuilt, NumberOverflow
from sessionkit.stores.contract import StoredWindow
from sessionkit.windows.processor import Aggregates, EmitSchedule
from tests.deployments import run_by, run_deployed
from tests.interpreted import fewer
from tests.unit.windows.runs import FORGETS_ON_ZERO, Row, both_rules, table_of, windows_in
from tests.unit.windows.runs import plan_over as plan_of_results
from tests.unit.windows.runs import run_of as run_of_results


def sliding(d: int, grace: int = 0, **options: Any) -> sk.SlidingWindows:
    return sk.SlidingWindows(time_difference_ms=d, grace_ms=grace, **options)


def plan_over(windows: Any, emit: str = "on_window_update", **named: Any) -> sk.Plan:
    return plan_of_results(windows, emit, **(named or {"held": sk.collect("v")}))


def run_of(windows: Any, rows: list[Row], emit: str = "on_window_update", rules: str = "sessionkit") -> sk.Run:
    """A run whose only result is the list of values in each window."""
    return run_of_results(windows, rows, emit, rules, held=sk.collect("v"))


def a(*times: int) -> list[Row]:
    """Records of key a; the value is the time, so that a window shows what it holds."""
    return [("a", time, time) for time in times]


def b(time: int) -> Row:
    return ("b", time, time)


def log(run: sk.Run, *names: str, key: str = "a") -> list[tuple[Any, ...]]:
    """The changelog of one key: (offset, start, values held), or the columns that are named."""
    names = names or ("offset", "window_start_ms", "held")
    return [tuple(row[name] for name in names) for row in run.changelog().to_pylist() if row["key"] == key]


def contents(run: sk.Run, key: str = "a") -> dict[int, list[int]]:
    """What each window of a key holds in the end, by start."""
    return {row["window_start_ms"]: row["held"] for row in run.table().to_pylist() if row["key"] == key}


def missed(run: sk.Run) -> list[tuple[int, int, int]]:
    """(offset, start, end) of each closed window that a record came too late for."""
    rows = run.dropped().to_pylist()
    return [(row["offset"], row["window_start_ms"], row["window_end_ms"]) for row in rows if row["reason"] == "late"]


# ---- parameters


@pytest.mark.parametrize(("parameters", "telling"), [
    ({"time_difference": 0},
     'time_difference must be more than 0 ms; got 0 ms; time_difference="10s"; Kafka takes 0 and then fails'),
    ({"time_difference": "0ms"}, "time_difference must be more than 0 ms; got 0 ms"),
    ({"time_difference": None}, "time_difference must be given; got neither time_difference nor time_difference_ms"),
    ({"time_difference_ms": 2**62 + 1}, "time_difference_ms must be at most 2**62 ms; got 4611686018427387905 ms"),
    ({"grace_ms": 2**62 + 1}, "grace_ms must be at most 2**62 ms; got 4611686018427387905 ms"),
    ({"time_difference_ms": 2**61, "grace_ms": 1},
     "twice time_difference and grace must be at most 2**62 ms; got 4611686018427387905 ms; shorten one"),
])  # fmt: skip
def test_parameters_that_are_refused(parameters: dict[str, Any], telling: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        given = {name.removesuffix("_ms") for name in parameters}
        left = {name: value for name, value in {"time_difference": "1ms", "grace": 0}.items() if name not in given}
        sk.SlidingWindows(**left, **parameters)
    assert telling in str(caught.value)


def test_the_largest_parameters_are_taken() -> None:
    assert sliding(2**61).retention_ms(None) == 2**62
    assert sliding(1, 2**62 - 2).retention_ms(None) == 2**62


def test_retention_covers_twice_the_difference_and_grace() -> None:
    windows = sliding(10, 5)
    assert windows.retention_ms(None) == windows.retention_ms("25ms") == 25
    assert windows.retention_ms("1s") == 1_000
    with pytest.raises(InvalidArgument) as caught:
        windows.retention_ms("24ms")
    telling = "retention must cover the windows; got 24 ms; at least 2 * time_difference + grace = 25 ms"
    assert str(caught.value) == telling
    with pytest.raises(InvalidArgument, match="retention must cover the windows; got 24 ms"):
        run_deployed(plan_over(windows), table_of(a(0)), retention="24ms")


def test_equal_windows() -> None:
    minute = sk.SlidingWindows(time_difference="1m", grace="5s")
    assert minute == sk.SlidingWindows(time_difference=timedelta(minutes=1), grace_ms=5_000, trailing_only=False)
    assert hash(minute) == hash(sk.SlidingWindows(time_difference_ms=60_000, grace="5s"))
    others = [
        sk.SlidingWindows(time_difference="2m", grace="5s"),
        sk.SlidingWindows(time_difference="1m", grace="6s"),
        sk.SlidingWindows(time_difference="1m", grace="5s", trailing_only=True),
    ]
    assert minute not in others
    assert len({minute, *others}) == 4


@given(st.integers(1, 2**60), st.integers(0, 2**61), st.booleans())
def test_the_code_of_a_plan_makes_the_same_windows(d: int, grace: int, trailing_only: bool) -> None:
    windows = sliding(d, grace, trailing_only=trailing_only)
    assert windows_in(plan_over(windows)) == windows


def test_code_and_words() -> None:
    windows = sk.SlidingWindows(time_difference="1h 30m", grace=0)
    assert repr(windows) == 'SlidingWindows(time_difference="1h30m", grace="0s")'
    assert windows.in_words() == "time difference 1 h 30 min, grace 0 s"
    trailing = sk.SlidingWindows(time_difference="10s", grace="1s", trailing_only=True)
    assert repr(trailing) == 'SlidingWindows(time_difference="10s", grace="1s", trailing_only=True)'
    assert trailing.in_words() == "time difference 10 s, grace 1 s, trailing only"
    assert ".windowed_by(sk.SlidingWindows(time_difference=" in repr(plan_over(trailing))


def test_with_windows_changes_one_parameter() -> None:
    plan = plan_over(sliding(10, 5, trailing_only=True))
    assert plan.with_windows(grace_ms=2).windows == sliding(10, 2, trailing_only=True)
    with pytest.raises(InvalidArgument, match=r"SlidingWindows has no such parameter; got 'size_ms'"):
        plan.with_windows(size_ms=2)


# ---- the windows of a time


def test_windows_for() -> None:
    windows = sliding(10)
    assert windows.windows_for(25) == [(15, 25), (26, 36)]
    assert windows.windows_for(10) == [(0, 10), (11, 21)]
    assert windows.windows_for(9) == [(0, 10), (10, 20)]  # none starts before the epoch
    assert windows.windows_for(0) == [(0, 10), (1, 11)]
    assert windows.last_instant_ms(StoredWindow(15, 1, 20, "a")) == 25  # the end is in the window


@both_rules
def test_records_in_order(rules: str) -> None:
    """d = 10: each record makes the window that ends with it; the next one within reach makes the one after it."""
    run = run_of(sliding(10), a(20, 25, 40), rules=rules)
    assert log(run, "offset", "window_start_ms", "window_end_ms", "held", "timestamp_ms") == [
        (0, 10, 20, [20], 20),
        (1, 21, 31, [25], 25),  # after 20
        (1, 15, 25, [20, 25], 25),  # ends with 25
        (2, 30, 40, [40], 40),  # 25 is out of reach: nothing starts at 26
    ]


@both_rules
def test_both_ends_belong_to_a_window(rules: str) -> None:
    assert contents(run_of(sliding(10), a(20, 30), rules=rules)) == {10: [20], 20: [20, 30], 21: [30]}
    assert contents(run_of(sliding(10), a(20, 31), rules=rules)) == {10: [20], 21: [31]}


@both_rules
def test_a_window_can_be_forwarded_twice_for_one_record(rules: str) -> None:
    """[11, 16] is the one after 10 and the one that ends with 16: Kafka makes it twice, with the same content."""
    run = run_of(sliding(5), a(8, 10, 16), rules=rules)
    assert log(run)[-2:] == [(2, 11, [16]), (2, 11, [16])]
    assert contents(run)[11] == [16]
    assert run.trace.records()["window_count"].to_pylist() == [1, 2, 1]
    assert (
        run.trace.touched().to_pylist()[-2:]
        == [
            {
                "partition": 0, "offset": 2, "key": "a", "timestamp_ms": 16, "window_start_ms": 11,
                "window_end_ms": 16, "effect": "opened", "copied_from_start_ms": None,
            }
        ]
        * 2
    )  # fmt: skip
    # one record fewer, and 10 is not found again: its window [5, 10] starts before 16 - 2 * 5
    assert log(run_of(sliding(5), a(10, 16), rules=rules)) == [(0, 5, [10]), (1, 11, [16])]


@both_rules
def test_a_record_out_of_order_takes_a_copy_without_itself(rules: str) -> None:
    """20, 30, then 25: the window after 25 is what [21, 31] held before it."""
    run = run_of(sliding(10, grace=100), a(20, 30, 25), rules=rules)
    assert [row for row in log(run) if row[0] == 2] == [
        (2, 21, [30, 25]),  # by falling start
        (2, 20, [20, 30, 25]),
        (2, 15, [20, 25]),  # ends with 25, on top of [10, 20]
        (2, 26, [30]),  # after 25, a copy
    ]
    effects = [(row["window_start_ms"], row["effect"], row["copied_from_start_ms"]) for row in _touches(run, 2)]
    assert effects == [(21, "added", None), (20, "added", None), (15, "copied and added", 10), (26, "copied", 21)]
    run.trace.check()
    told = run.trace.records()
    assert told["window_count"].to_pylist() == [1, 2, 3]  # the record itself is not in what it only copies
    assert told["decision"].to_pylist() == ["opened"] * 3
    after = {row["window_start_ms"]: row["timestamp_ms"] for row in run.changelog().to_pylist()}
    assert after == {10: 20, 21: 30, 20: 30, 15: 25, 26: 30}


def _touches(run: sk.Run, offset: int) -> list[dict[str, Any]]:
    return [row for row in run.trace.touched().to_pylist() if row["offset"] == offset]


@both_rules
def test_a_second_record_of_the_same_time_makes_nothing_new(rules: str) -> None:
    run = run_of(sliding(10), a(20, 20), rules=rules)
    assert log(run) == [(0, 10, [20]), (1, 10, [20, 20])]


# ---- near 0


@both_rules
def test_early_records_share_the_first_window(rules: str) -> None:
    """d = 10: what would start before 0 is [0, 10], and it comes last."""
    run = run_of(sliding(10, grace=100), a(3, 5, 4), rules=rules)
    assert log(run) == [
        (0, 0, [3]),
        (1, 4, [5]),  # after 3
        (1, 0, [3, 5]),
        (2, 4, [5, 4]),
        (2, 5, [5]),  # after 4: what [4, 14] held before it
        (2, 0, [3, 5, 4]),
    ]


@both_rules
def test_the_copy_of_an_early_record_can_come_from_the_first_window(rules: str) -> None:
    run = run_of(sliding(10, grace=100), a(5, 3), rules=rules)
    assert log(run) == [(0, 0, [5]), (1, 4, [5]), (1, 0, [5, 3])]
    assert [(row["effect"], row["copied_from_start_ms"]) for row in _touches(run, 1)] == [
        ("copied", 0),
        ("added", None),
    ]


@both_rules
def test_from_early_to_ordinary(rules: str) -> None:
    run = run_of(sliding(10), a(0, 10, 11, 21), rules=rules)
    assert contents(run) == {0: [0, 10], 1: [10, 11], 11: [11, 21], 12: [21]}


@both_rules
def test_early_records_do_not_look_for_final_results(rules: str) -> None:
    """b at 9 is early: nothing goes out with it, although stream time may have moved."""
    rows = [*a(0), b(9), b(10), b(11)]
    run = run_of(sliding(10), rows, "on_window_close", rules)
    assert log(run) == [(3, 0, [0])]  # closed once stream time is past 10


# ---- nulls


@both_rules
def test_a_null_value_is_dropped_and_moves_nothing(rules: str) -> None:
    """Unlike under tumbling and hopping windows."""
    run = run_of(sliding(5), [("a", 20, 1), ("a", 99, None), ("a", 21, 3)], rules=rules)
    assert contents(run) == {15: [1], 16: [1, 3], 21: [3]}
    assert run.trace.records()["reason"].to_pylist() == [None, "null_value", None]
    assert run.trace.stream_time_ms.tolist() == [20, 20, 21]
    assert run.metrics()["dropped-records-total"] == run.metrics()["dropped-null-value"] == 1
    assert run.dropped()["reason"].to_pylist() == ["null_value"]


@both_rules
def test_a_null_value_is_one_without_any_of_the_columns_that_are_aggregated(rules: str) -> None:
    table = pa.table({"key": ["a"] * 3, "time": [20, 21, 22], "v": [1, None, None], "w": [None, 2, None]})
    both = run_by(plan_over(sliding(5), x=sk.sum("v"), y=sk.sum("w")), table, rules=rules)
    assert both.trace.counts() == {"opened": 2, "null_value": 1}
    counted = run_by(plan_over(sliding(5), n=sk.count()), table, rules=rules)  # no column, so no value to be null
    assert counted.trace.counts() == {"opened": 3}


@both_rules
def test_a_null_key_is_dropped_and_moves_nothing(rules: str) -> None:
    run = run_of(sliding(5), [("a", 20, 1), (None, 99, 2), (None, 99, None), ("a", 20, 3)], rules=rules)
    assert contents(run) == {15: [1, 3]}
    assert run.trace.records()["reason"].to_pylist() == [None, "null_key", "null_key", None]
    assert run.trace.stream_time_ms.tolist() == [20, 20, 20, 20]


# ---- closing


@both_rules
@pytest.mark.parametrize(("stream_time_ms", "is_open"), [(22, True), (23, True), (24, False)])
def test_a_window_is_closed_once_stream_time_is_past_end_plus_grace(
    rules: str, stream_time_ms: int, is_open: bool
) -> None:
    """[15, 20] with grace 3: its end is in it, so stream time 23 leaves it open (tumbling windows: closes it)."""
    rows = [*a(20), b(stream_time_ms), *a(20)]
    run = run_of(sliding(5, 3), rows, rules=rules)
    assert contents(run) == {15: [20, 20] if is_open else [20]}
    assert missed(run) == ([] if is_open else [(2, 15, 20)])
    status = [row["status"] for row in run.table().to_pylist() if row["key"] == "a"]
    assert status == ["open" if is_open else "closed"]
    finals = run_of(sliding(5, 3), rows, "on_window_close", rules)
    assert log(finals) == ([] if is_open else [(1, 15, [20])])


@both_rules
def test_a_record_is_wholly_late_once_its_right_window_is_closed(rules: str) -> None:
    """d = 5, grace = 3: at stream time 30 the close time is 27, and 22 + 5 reaches it, 21 + 5 does not."""
    rows = [*a(24), b(30)]
    partly = run_of(sliding(5, 3), [*rows, *a(22)], rules=rules)
    assert missed(partly) == [(2, 19, 24), (2, 17, 22)]
    assert log(partly)[-1] == (2, 23, [24])  # its right window, without any check
    assert [row["effect"] for row in _touches(partly, 2)] == ["dropped", "dropped", "copied"]
    assert partly.metrics()["dropped-records-total"] == len(partly.dropped()) == 2
    last = partly.trace.records().to_pylist()[-1]
    assert (last["decision"], last["reason"], last["window_count"], last["missed_count"]) == ("dropped", "late", 0, 2)
    wholly = run_of(sliding(5, 3), [*rows, *a(21)], rules=rules)
    assert missed(wholly) == [(2, 16, 21)]
    assert len(log(wholly)) == 1
    for run in (partly, wholly):
        run.trace.check()
        assert run.trace.counts() == {"opened": 2, "late": 1}


@both_rules
def test_a_partly_late_record_leaves_a_hole_in_a_window_that_is_open(rules: str) -> None:
    """99 misses its own window [94, 99], so [99, 104], made by 104, does not hold it though it was open all along."""
    rows = [b(105), *a(99, 104)]
    run = run_of(sliding(5, 3), rows, rules=rules)
    assert missed(run) == [(1, 94, 99)]  # close time 102
    assert contents(run) == {99: [104]}
    assert run.metrics()["dropped-records-total"] == 1
    in_time = run_of(sliding(5, 6), rows, rules=rules)  # with close time 99 it is there
    assert contents(in_time) == {94: [99], 99: [99, 104], 100: [104]}


@both_rules
def test_a_partly_late_record_counts_where_it_still_can(rules: str) -> None:
    """d = 10: at stream time 33 without grace, 28 misses [18, 28] and [20, 30] but counts in [25, 35]."""
    run = run_of(sliding(10), [*a(24, 30), b(33), *a(28)], rules=rules)
    # after 24 and 30: [14, 24] [25, 35] [20, 30]
    assert missed(run) == [(3, 20, 30), (3, 18, 28)]
    assert [row for row in log(run) if row[0] == 3] == [(3, 25, [30, 28]), (3, 29, [30])]
    assert run.trace.records()["decision"].to_pylist()[-1] == "added"


@both_rules
def test_late_records_look_for_no_final_results(rules: str) -> None:
    """A record that is wholly late stops before; one that is partly late does not, but moves no time either."""
    rows = [*a(20), b(26), *a(1, 20)]
    run = run_of(sliding(5), rows, "on_window_close", rules)
    assert log(run) == [(1, 15, [20])]


@both_rules
def test_finals_come_by_start_and_key_bytes(rules: str) -> None:
    rows: list[Row] = [("é", 21, 1), ("z", 20, 2), ("b", 20, 3), ("B", 20, 4), ("x", 99, 5)]
    run = run_of(sliding(5, 10), rows, "on_window_close", rules)
    found = [(row["offset"], row["window_start_ms"], row["key"]) for row in run.changelog().to_pylist()]
    assert found == [(4, 15, "B"), (4, 15, "b"), (4, 15, "z"), (4, 16, "é")]


@both_rules
def test_a_final_result_carries_the_largest_time_of_its_window(rules: str) -> None:
    run = run_of(sliding(5), a(20, 23, 99), "on_window_close", rules)
    assert log(run, "window_start_ms", "held", "timestamp_ms") == [(15, [20], 20), (18, [20, 23], 23), (21, [23], 23)]


# ---- the store


def test_state_goes_from_run_to_run() -> None:
    """Also into windows that the second run only copies from."""
    rows = a(20, 30, 25, 41, 36, 60)
    whole = run_of(sliding(10, grace=100), rows)
    plan = plan_over(sliding(10, grace=100))
    for cut in range(1, 6):
        with sk.open_store("memory", "state", of="windows") as store:
            first, second = (plan.run(table_of(part), store=store) for part in (rows[:cut], rows[cut:]))
            second.trace.check()
        assert log(first) + log(second) == log(whole)
        assert second.trace.newest_ms.tolist() == whole.trace.newest_ms.tolist()[len(log(first)) :]


def test_a_null_aggregate_is_deleted_by_kafka_and_a_value_for_us() -> None:
    rows: list[Row] = [("a", 20, 5), ("a", 20, 0), ("a", 99, 1)]

    def finals(rules: str) -> list[tuple[Any, ...]]:
        run = run_by(plan_over(sliding(5), "on_window_close", own=FORGETS_ON_ZERO), table_of(rows), rules=rules)
        return log(run, "window_start_ms", "own")

    assert finals("kafka") == []
    assert finals("sessionkit") == [(15, None)]


@pytest.mark.filterwarnings("ignore:column 'time' read as ms lies outside 1990 to 2100")
@both_rules
def test_a_window_that_would_end_after_the_last_time_is_refused(rules: str) -> None:
    last = INT64_MAX - 11  # the window after it, [last + 1, last + 11], just fits
    assert contents(run_of(sliding(10), a(last), rules=rules)) == {last - 10: [last]}
    with pytest.raises(NumberOverflow, match="a window would end after the largest 64-bit time; got timestamp"):
        run_of(sliding(10), a(last + 1), rules=rules)


# ---- trailing only


def test_trailing_only_has_final_results_only() -> None:
    with pytest.raises(InvalidArgument) as caught:
        run_of(sliding(5, trailing_only=True), a(20))
    telling = 'trailing_only has final results only; got .emit("on_window_update"); .emit("on_window_close"); leave out'
    assert telling in str(caught.value)


def test_kafka_has_no_trailing_only_windows() -> None:
    with pytest.raises(NotBuilt) as caught:
        run_of(sliding(5, trailing_only=True), a(20), "on_window_close", "kafka")
    assert "Kafka has no trailing-only windows; got SlidingWindows(time_difference=" in str(caught.value)


def test_trailing_only_by_hand() -> None:
    """d = 5: of [15, 20], [18, 23] and [21, 26] those that end with a record; [21, 26] does once 26 is there."""
    windows = sliding(5, trailing_only=True)
    assert log(run_of(windows, a(20, 23, 99), "on_window_close")) == [(1, 15, [20]), (2, 18, [20, 23])]
    run = run_of(windows, a(20, 23, 26, 99), "on_window_close")
    assert log(run) == [(1, 15, [20]), (2, 18, [20, 23]), (3, 21, [23, 26])]
    assert contents(run) == {15: [20], 18: [20, 23], 21: [23, 26], 94: [99]}
    assert run.metrics()["window-aggregate-final-emit-total"] == 3


def test_trailing_only_near_0_has_the_first_window_if_a_record_ends_it() -> None:
    windows = sliding(5, trailing_only=True)
    assert log(run_of(windows, a(3, 99), "on_window_close")) == []
    assert log(run_of(windows, a(3, 5, 99), "on_window_close")) == [(2, 0, [3, 5])]


def test_trailing_only_counts_the_windows_that_it_shows() -> None:
    """[21, 26] ends with no record: it is in no table and no changelog."""
    run = run_of(sliding(5, trailing_only=True), a(20, 23, 99), "on_window_close")
    assert len(run.table()) == 3
    m = run.metrics()
    assert (m["windows"], m["windows-closed"], m["windows-open"]) == (3, 2, 1)


def test_trailing_only_counts_its_finals_without_a_trace_too() -> None:
    """[0, 5] is closed at 99 and ends with no record: nothing goes out."""
    plan = plan_over(sliding(5, trailing_only=True), "on_window_close")
    runs = [plan.run(table_of(a(3, 99)), trace=trace) for trace in (True, False)]
    assert [run.metrics()["window-aggregate-final-emit-total"] for run in runs] == [0, 0]


STREAMS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), max_size=25)


@pytest.mark.slow
@settings(max_examples=fewer(60))
@given(STREAMS, st.integers(1, 12), st.integers(0, 8))
def test_trailing_only_is_the_finals_whose_newest_record_ends_the_window(
    rows: list[tuple[str, int]], d: int, grace: int
) -> None:
    full: list[Row] = [(key, time, i) for i, (key, time) in enumerate(rows)]
    released = run_of(sliding(d, grace), full, "on_window_close").changelog().to_pylist()
    run = run_of(sliding(d, grace, trailing_only=True), full, "on_window_close")
    assert run.changelog().to_pylist() == [row for row in released if row["timestamp_ms"] == row["window_end_ms"]]
    bare = plan_over(run.plan.windows, "on_window_close").run(table_of(full), trace=False)
    assert bare.table().equals(run.table())


# ---- a whole run, window by window


@settings(max_examples=fewer(60))
@given(STREAMS, st.integers(1, 12), st.sampled_from(["sessionkit", "kafka"]))
def test_any_stream_that_nothing_is_late_for(rows: list[tuple[str, int]], d: int, rules: str) -> None:
    """For each time of a key the window that ends with it and the one after it, if a record is in it."""
    times_of: defaultdict[str, list[int]] = defaultdict(list)
    for key, time in rows:
        times_of[key].append(time)
    expected = {}
    for key, times in times_of.items():
        for start in {start for time in times for start in (max(0, time - d), time + 1)}:
            held = [time for time in times if start <= time <= start + d]
            if held:
                expected[key, start] = (sorted(held), max(held))
    run = run_of(sliding(d, 100), [(key, time, time) for key, time in rows], rules=rules)
    newest = {(row["key"], row["window_start_ms"]): row["timestamp_ms"] for row in run.changelog().to_pylist()}
    found = {
        (row["key"], row["window_start_ms"]): (sorted(row["held"]), newest[row["key"], row["window_start_ms"]])
        for row in run.table().to_pylist()
    }
    assert found == expected


@pytest.mark.slow
@settings(max_examples=fewer(60))
@given(STREAMS, st.integers(1, 12), st.integers(0, 8), st.sampled_from(["sessionkit", "kafka"]))
def test_finals_are_what_a_window_held_when_it_closed(
    rows: list[tuple[str, int]], d: int, grace: int, rules: str
) -> None:
    """Each window goes out once, as its last update left it, with the first record past end + grace."""
    full: list[Row] = [(key, time, i) for i, (key, time) in enumerate(rows)]
    updates = run_of(sliding(d, grace), full, rules=rules).changelog().to_pylist()
    last = {(row["key"], row["window_start_ms"]): (row["held"], row["timestamp_ms"]) for row in updates}
    expected, stream_time_ms, out = [], -1, set()
    for i, (_, time) in enumerate(rows):
        stream_time_ms = max(stream_time_ms, time)
        closed = [w for w in last if w not in out and w[1] + d + grace < stream_time_ms]
        expected += [(i, *w, *last[w]) for w in sorted(closed, key=lambda w: (w[1], w[0]))]
        out.update(closed)
    finals = run_of(sliding(d, grace), full, "on_window_close", rules).changelog().to_pylist()
    names = ("offset", "key", "window_start_ms", "held", "timestamp_ms")
    assert [tuple(row[name] for name in names) for row in finals] == expected


def test_a_window_is_kept_while_a_window_can_be_copied_from_it() -> None:
    """A record is kept up to a grace behind; the window that it copies from began up to two windows before it."""
    kept = sliding(10, grace=5).oldest_kept_end_ms(np.array([100, 7]), 10**6)
    assert kept.tolist() == [100 - 5 - 20, 7 - 5 - 20]


def test_a_late_record_says_which_window_it_missed() -> None:
    """The one that it would have ended."""
    store = sk.open_store("memory", "windows", of="windows")
    counts = Aggregates(int, lambda key, value, count: count + 1, lambda key, a, b: a + b, lambda count: False)
    options = {"kafka": False, "retention_ms": 100, "stream_time_ms": -1, "schedule": EmitSchedule(-1)}
    processor = sliding(10, grace=5).processor(counts, store, 0, **options)
    processor.process("a", 1, 100, 0)
    (touch,) = processor.process("a", 1, 84, 1)
    assert (touch.effect, touch.start_ms, touch.end_ms) == (LATE, 74, 84)


def test_windows_that_a_store_brought_may_lie_behind_all_records_of_a_run() -> None:
    """Another key with more records comes before, so that nothing is read behind the end of the shorter one's times."""
    plan = plan_over(sliding(10, grace=1_000))
    first, then = [*a(500), ("b", 500, 500), ("b", 505, 505)], [*a(10, 12, 14, 16, 18, 20), ("b", 495, 495)]
    with sk.open_store("memory", "windows", of="windows") as store:
        plan.run(table_of(first), store=store)
        found = plan.run(table_of(then), store=store).table().to_pylist()
    whole = plan.run(table_of([*first, *then])).table().to_pylist()
    told = {(row["key"], row["window_start_ms"]): row["held"] for row in whole}
    assert {(row["key"], row["window_start_ms"]): row["held"] for row in found}.items() <= told.items()
    assert [row["held"] for row in found if row["key"] == "b"]
