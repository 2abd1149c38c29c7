"""Tumbling and hopping windows: their parameters, the windows of a time, and when a window is closed."""

from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sessionkit as sk
from sessionkit.base.durations import INT64_MAX
from sessionkit.errors import InvalidArgument, NumberOverflow
from sessionkit.stores.contract import StoredWindow
from tests.deployments import run_by, run_deployed
from tests.kinds import group_in_ms, in_ms
from tests.unit.windows.runs import FOR_EVER, FORGETS_ON_ZERO, Row, both_rules, plan_over, run_of, table_of, windows_in


def hopping(size: int, advance: int, grace: int = 0) -> sk.TimeWindows:
    return sk.TimeWindows(size_ms=size, advance_ms=advance, grace_ms=grace)


def tumbling(size: int, grace: int = 0) -> sk.TimeWindows:
    return sk.TimeWindows(size_ms=size, grace_ms=grace)


def a(*times: int) -> list[Row]:
    return [("a", time, 1) for time in times]


def log(run: sk.Run, *names: str) -> list[tuple[Any, ...]]:
    names = names or ("offset", "window_start_ms", "n")
    return [tuple(row[name] for name in names) for row in run.changelog().to_pylist()]


def counts(run: sk.Run) -> dict[int, int]:
    """Records in each window of the only key, by start."""
    return {row["window_start_ms"]: row["n"] for row in run.table().to_pylist()}


# ---- parameters


@pytest.mark.parametrize(
    ("parameters", "telling"),
    [
        ({"size": 0}, "size must be more than 0 ms; got 0 ms; size=\"5m\""),
        ({"size": "0s"}, "size must be more than 0 ms; got 0 ms"),
        ({"size": None}, 'size must be given; got neither size nor size_ms; size="5m" or other text'),
        ({"size_ms": 10, "advance_ms": 11}, "advance must fit into size; got 11 ms; more than 0 and at most the size"),
        ({"size_ms": 10, "advance": 0}, "advance must fit into size; got 0 s; more than 0"),
        ({"size_ms": 10, "advance_ms": -1}, "advance_ms must be 0 ms or more; got -1 ms"),
        ({"size_ms": 2**62 + 1}, "size_ms must be at most 2**62 ms; got 4611686018427387905 ms"),
        ({"size_ms": 1, "grace_ms": 2**62 + 1}, "grace_ms must be at most 2**62 ms; got 4611686018427387905 ms"),
        ({"size_ms": 1, "grace_ms": 2**62}, "size and grace together must be at most 2**62 ms; got 46116860184273879"),
        ({"size_ms": 2**61 + 1, "grace_ms": 2**61}, "size and grace together must be at most 2**62 ms"),
    ],
)  # fmt: skip
def test_parameters_that_are_refused(parameters: dict[str, Any], telling: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        sk.TimeWindows(**({} if {"grace", "grace_ms"} & {*parameters} else {"grace": 0}), **parameters)
    assert telling in str(caught.value)


def test_the_largest_parameters_are_taken() -> None:
    assert tumbling(2**61, 2**61).retention_ms(None) == 2**62
    assert hopping(1, 1).advance_ms == 1
    assert hopping(10, 10).advance_ms == 10


def test_retention_covers_size_and_grace() -> None:
    windows = hopping(10, 3, grace=5)
    assert windows.retention_ms(None) == 15
    assert windows.retention_ms("15ms") == 15
    assert windows.retention_ms("1s") == 1_000
    with pytest.raises(InvalidArgument) as caught:
        windows.retention_ms("14ms")
    assert str(caught.value) == "retention must cover the windows; got 14 ms; at least size + grace = 15 ms"
    with pytest.raises(InvalidArgument, match="retention must cover the windows; got 14 ms"):
        run_deployed(plan_over(windows), table_of(a(0)), retention="14ms")


def test_equal_windows() -> None:
    minute = sk.TimeWindows(size="1m", grace="5s")
    assert minute == sk.TimeWindows(size_ms=60_000, advance=timedelta(minutes=1), grace_ms=5_000)
    assert hash(minute) == hash(sk.TimeWindows(size="60s", advance="60s", grace="5000ms"))
    others = [
        sk.TimeWindows(size="2m", grace="5s"),
        sk.TimeWindows(size="1m", advance="30s", grace="5s"),
        sk.TimeWindows(size="1m", grace="6s"),
    ]
    assert minute not in others
    assert len({minute, *others}) == 4


@given(st.integers(1, 2**61), st.data(), st.integers(0, 2**61))
def test_the_code_of_a_plan_makes_the_same_windows(size: int, data: st.DataObject, grace: int) -> None:
    advance = data.draw(st.integers(1, size) | st.just(size))
    windows = sk.TimeWindows(size_ms=size, advance_ms=advance, grace_ms=grace)
    assert windows_in(plan_over(windows)) == windows


def test_code_and_words() -> None:
    assert repr(sk.TimeWindows(size="1h 30m", grace=0)) == 'TimeWindows(size="1h30m", grace="0s")'
    both = sk.TimeWindows(size="5m", advance_ms=1_001, grace="30s")
    assert repr(both) == 'TimeWindows(size="5m", advance="1s1ms", grace="30s")'
    assert both.in_words() == "size 5 min, advance 1 s 1 ms, grace 30 s"
    assert sk.TimeWindows(size="5m", grace="30s").in_words() == "size 5 min, grace 30 s"
    assert ".windowed_by(sk.TimeWindows(size=" in repr(plan_over(both))


def test_with_windows_changes_one_parameter() -> None:
    plan = plan_over(hopping(10, 5, grace=2))
    assert plan.with_windows(advance_ms=2).windows == hopping(10, 2, grace=2)
    with pytest.raises(InvalidArgument, match=r"TimeWindows has no such parameter; got 'gap'; one of \['size', "):
        plan.with_windows(gap=2)


# ---- the windows of a time


@given(st.integers(1, 40), st.data(), st.integers(0, 300))
def test_windows_for(size: int, data: st.DataObject, timestamp_ms: int) -> None:
    """Every multiple of advance, from 0 on, whose window has the time in it."""
    advance = data.draw(st.integers(1, size))
    starts = (start for start in range(0, timestamp_ms + 1, advance) if start <= timestamp_ms < start + size)
    expected = [(start, start + size) for start in starts]
    assert hopping(size, advance).windows_for(timestamp_ms) == expected


def test_no_window_starts_before_the_epoch() -> None:
    assert hopping(10, 3).windows_for(0) == [(0, 10)]
    assert hopping(10, 3).windows_for(9) == [(0, 10), (3, 13), (6, 16), (9, 19)]
    assert hopping(10, 3).windows_for(10) == [(3, 13), (6, 16), (9, 19)]


def test_the_end_is_not_in_the_window() -> None:
    assert tumbling(10).windows_for(9) == [(0, 10)]
    assert tumbling(10).windows_for(10) == [(10, 20)]
    assert tumbling(10).last_instant_ms(StoredWindow(20, 1, 21, "a")) == 29


def test_a_time_has_size_over_advance_windows_rounded_up_or_down() -> None:
    assert {len(hopping(10, 4).windows_for(t)) for t in range(20, 60)} == {2, 3}
    assert {len(tumbling(7).windows_for(t)) for t in range(60)} == {1}


# ---- what a record does


@both_rules
def test_a_record_goes_into_each_of_its_windows_oldest_first(rules: str) -> None:
    run = run_of(hopping(10, 5, grace=100), a(12, 3, 14), rules=rules)
    # 12: [5, 15) [10, 20); 3: [0, 10); 14: [5, 15) [10, 20)
    assert log(run) == [(0, 5, 1), (0, 10, 1), (1, 0, 1), (2, 5, 2), (2, 10, 2)]


@both_rules
def test_a_result_carries_the_largest_time_of_its_window(rules: str) -> None:
    run = run_of(tumbling(10, grace=100), a(7, 3, 12, 9), rules=rules)
    assert log(run, "window_start_ms", "window_end_ms", "timestamp_ms") == [
        (0, 10, 7),
        (0, 10, 7),
        (10, 20, 12),
        (0, 10, 9),
    ]
    finals = run_of(tumbling(10, grace=2), a(7, 3, 12), "on_window_close", rules)
    assert log(finals, "offset", "window_start_ms", "timestamp_ms", "n") == [(2, 0, 7, 2)]


@both_rules
def test_a_null_key_is_dropped_and_moves_nothing(rules: str) -> None:
    run = run_of(tumbling(10), [("a", 5, 1), (None, 99, 1), ("a", 6, 1)], rules=rules)
    assert counts(run) == {0: 2}
    assert run.trace.where(reason="null_key")["offset"].to_pylist() == [1]
    assert run.trace.stream_time_ms.tolist() == [5, 5, 6]
    assert run.metrics()["dropped-records-total"] == run.metrics()["dropped-null-key"] == 1


@both_rules
def test_a_null_value_counts_and_moves_stream_time(rules: str) -> None:
    """Unlike under sliding windows."""
    named = {"n": sk.count(), "total": sk.sum("v")}
    run = run_of(tumbling(10), [("a", 5, 4), ("a", 25, None), ("a", 6, 2)], rules=rules, **named)
    rows = run.table().to_pylist()
    assert [(row["window_start_ms"], row["n"], row["total"]) for row in rows] == [(0, 1, 4), (20, 1, 0)]
    assert run.trace.where(reason="late")["offset"].to_pylist() == [2]
    assert "dropped-null-value" not in run.metrics()


@both_rules
def test_a_time_before_the_epoch_and_none_at_all(rules: str) -> None:
    run = run_of(tumbling(10), [("a", 5, 1), ("a", -1, 1), ("a", None, 1)], rules=rules)
    assert run.trace.counts() == {"opened": 1, "bad_time": 1, "negative_time": 1}
    assert run.metrics()["dropped-records-total"] == 2


# ---- closing


@both_rules
@pytest.mark.parametrize(("stream_time_ms", "is_open"), [(14, True), (15, False), (16, False)])
def test_a_window_is_closed_once_stream_time_reaches_end_plus_grace(
    rules: str, stream_time_ms: int, is_open: bool
) -> None:
    """[0, 10) with grace 5: the end is not in it, so stream time 15 closes it (sliding windows: 16)."""
    rows: list[Row] = [("a", 3, 1), ("b", stream_time_ms, 1), ("a", 4, 1)]
    run = run_of(tumbling(10, grace=5), rows, rules=rules)
    of_a = [row for row in run.table().to_pylist() if row["key"] == "a"]
    assert [(row["n"], row["status"]) for row in of_a] == [(2, "open") if is_open else (1, "closed")]
    assert len(run.dropped()) == (0 if is_open else 1)
    finals = run_of(tumbling(10, grace=5), rows, "on_window_close", rules)
    assert log(finals, "offset", "key", "n") == ([] if is_open else [(1, "a", 1)])


@both_rules
def test_without_grace_the_next_window_closes_this_one(rules: str) -> None:
    run = run_of(tumbling(10), a(3, 9, 10, 9), "on_window_close", rules)
    assert log(run) == [(2, 0, 2)]
    assert run.trace.where(reason="late")["offset"].to_pylist() == [3]


@both_rules
def test_another_key_closes_but_another_partition_does_not(rules: str) -> None:
    table = pa.table({"key": ["a", "b", "a"], "time": [3, 99, 4], "p": [0, 0, 0]})
    plan = group_in_ms("key", timestamp="time", partition="p").windowed_by(tumbling(10)).count()
    retention = in_ms(FOR_EVER) if rules == "kafka" else None
    assert run_by(plan, table, rules=rules, retention=retention).metrics()["dropped-late"] == 1
    apart = table.set_column(2, "p", pa.array([0, 1, 0]))
    assert run_by(plan, apart, rules=rules, retention=retention).metrics()["dropped-late"] == 0


@both_rules
def test_a_record_may_miss_some_of_its_windows_and_count_in_others(rules: str) -> None:
    """Each closed window is a drop; the record itself is accepted while one is open."""
    rows: list[Row] = [("b", 20, 1), ("a", 13, 1), ("a", 2, 1)]
    run = run_of(hopping(10, 4, grace=3), rows, rules=rules)
    # at S = 20 the close time is 17: of 13, [4, 14) is closed and [8, 18), [12, 22) are open; of 2, [0, 10) is closed
    assert [row[:2] for row in log(run, "offset", "window_start_ms") if row[0] == 1] == [(1, 8), (1, 12)]
    assert run.trace.counts() == {"opened": 2, "late": 1}
    dropped = run.dropped().to_pylist()
    assert [(row["offset"], row["window_start_ms"], row["window_end_ms"]) for row in dropped] == [
        (1, 4, 14),
        (2, 0, 10),
    ]
    assert run.metrics()["dropped-records-total"] == run.metrics()["dropped-late"] == 2


@both_rules
def test_finals_come_by_start_and_key_bytes(rules: str) -> None:
    rows: list[Row] = [("é", 1, 1), ("z", 11, 1), ("b", 2, 1), ("a", 12, 1), ("B", 3, 1), ("x", 99, 1)]
    run = run_of(tumbling(10, grace=50), rows, "on_window_close", rules)
    found = log(run, "offset", "window_start_ms", "key")
    assert found == [(5, 0, "B"), (5, 0, "b"), (5, 0, "é"), (5, 10, "a"), (5, 10, "z")]


@both_rules
def test_the_last_windows_of_a_stream_stay_open(rules: str) -> None:
    run = run_of(tumbling(10), a(5, 15, 25), "on_window_close", rules)
    assert log(run) == [(1, 0, 1), (2, 10, 1)]
    assert [row["status"] for row in run.table().to_pylist()] == ["closed", "closed", "open"]
    assert run.metrics()["window-aggregate-final-emit-total"] == 2


def test_emit_looks_only_where_something_new_can_have_closed() -> None:
    """Kafka compares windowsFor at both ends of the range: the finals are the same however small the steps are."""
    windows = hopping(10, 4, grace=1)
    # [start, start + 10) goes out with the first record at or after start + 11, and holds all of its times
    finals = [(start + 11, start, 10) for start in range(0, 49, 4)]
    assert log(run_of(windows, a(*range(60)), "on_window_close", "kafka")) == finals
    leap = run_of(windows, a(*range(59), 63), "on_window_close", "kafka")
    assert log(leap) == [*finals[:-1], (59, 48, 10), (59, 52, 7)]


# ---- over a store, and at the ends


@pytest.mark.parametrize(("rules", "first_ms"), [("sessionkit", 0), ("sessionkit", 50), ("kafka", 50), ("kafka", 0)])
def test_final_results_go_from_run_to_run(rules: str, first_ms: int) -> None:
    """The run that closes a window sends it, whichever run opened it."""
    plan, times = plan_over(tumbling(10), "on_window_close"), [first_ms, first_ms + 10, first_ms + 20]
    retention = in_ms(FOR_EVER) if rules == "kafka" else None
    whole = log(run_by(plan, table_of(a(*times)), rules=rules, retention=retention))
    assert whole == [(1, first_ms, 1), (2, first_ms + 10, 1)]
    with sk.open_store("memory", "tumbling", of="windows", retention=retention) as store:
        parts = [run_by(plan, table_of(a(time)), rules=rules, store=store) for time in times]
    assert [row for part in parts for row in log(part)] == whole


def test_a_null_aggregate_is_deleted_by_kafka_and_a_value_for_us() -> None:
    rows: list[Row] = [("a", 1, 5), ("a", 2, 0), ("a", 99, 1)]
    finals = [
        run_of(tumbling(10), rows, "on_window_close", rules, own=FORGETS_ON_ZERO) for rules in ("kafka", "sessionkit")
    ]
    assert [log(run, "window_start_ms", "own") for run in finals] == [[], [(0, None)]]
    updates = run_of(tumbling(10), rows, rules="kafka", own=FORGETS_ON_ZERO)
    assert log(updates, "window_start_ms", "own") == [(0, 5), (0, None), (90, 1)]


@pytest.mark.filterwarnings("ignore:column 'time' read as ms lies outside 1990 to 2100")
@both_rules
def test_a_window_that_would_end_after_the_last_time_is_refused(rules: str) -> None:
    last = INT64_MAX - 10
    assert counts(run_of(tumbling(10), a(last), rules=rules)) == {last // 10 * 10: 1}
    with pytest.raises(NumberOverflow, match="a window would end after the largest 64-bit time; got timestamp"):
        run_of(tumbling(10), a(last + 1), rules=rules)


# ---- a whole run, window by window


def naive(
    rows: list[tuple[str, int]], size: int, advance: int, grace: int
) -> tuple[dict[tuple[str, int], list[int]], int, dict[tuple[str, int], int]]:
    """(times in each window of a key, how often a window was missed, the record that closed each window)."""
    held: dict[tuple[str, int], list[int]] = {}
    stream_time_ms, missed = -1, 0
    closed_by: dict[tuple[str, int], int] = {}
    for i, (key, time) in enumerate(rows):
        stream_time_ms = max(stream_time_ms, time)
        for start in range(0, time + 1, advance):
            if start <= time < start + size:
                if stream_time_ms >= start + size + grace:
                    missed += 1
                else:
                    held.setdefault((key, start), []).append(time)
        for key_and_start in held:
            if stream_time_ms >= key_and_start[1] + size + grace:
                closed_by.setdefault(key_and_start, i)
    return held, missed, closed_by


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), max_size=25),
    st.integers(1, 12),
    st.data(),
    st.integers(0, 8),
    st.sampled_from(["sessionkit", "kafka"]),
)
def test_any_stream(rows: list[tuple[str, int]], size: int, data: st.DataObject, grace: int, rules: str) -> None:
    advance = data.draw(st.integers(1, size))
    held, missed, closed_by = naive(rows, size, advance, grace)
    full: list[Row] = [(key, time, time) for key, time in rows]
    run = run_of(hopping(size, advance, grace), full, rules=rules, n=sk.count(), total=sk.sum("v"))
    found = {
        (row["key"], row["window_start_ms"]): (row["n"], row["total"], row["status"]) for row in run.table().to_pylist()
    }
    status = {window: "closed" if window in closed_by else "open" for window in held}
    assert found == {w: (len(times), sum(times), status[w]) for w, times in held.items()}
    assert run.metrics()["dropped-records-total"] == missed
    finals = run_of(hopping(size, advance, grace), full, "on_window_close", rules)
    rows_out = log(finals, "offset", "window_start_ms", "key", "n", "timestamp_ms")
    assert rows_out == sorted((i, w[1], w[0], len(held[w]), max(held[w])) for w, i in closed_by.items())


def test_a_window_is_kept_until_it_is_closed() -> None:
    """At 100 the windows that end at 95 are closed, and those that end at 96 take records."""
    assert hopping(10, 5, grace=5).oldest_kept_end_ms(np.array([100, 7]), 10**6).tolist() == [96, 3]


def test_one_key_with_more_open_windows_than_the_smallest_table_has_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """In no order, and in chunks, so that the table of cells grows while it is used."""
    monkeypatch.setattr("sessionkit.windows.feed.CHUNK", 100)
    times = 2 * [time * 7_919 % 1_500 * 10 for time in range(1_500)]
    found = plan_over(tumbling(10, grace=FOR_EVER)).run(table_of([("a", time, 1) for time in times]))
    assert found.table()["n"].to_pylist() == [2] * 1_500
