"""Laws that hold between runs: of one kind of windows beside another, more grace, other keys, and any cut."""

from typing import Any

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sessionkit as sk
from tests import kinds
from tests.deployments import run_by
from tests.interpreted import fewer
from tests.kinds import group_in_ms, plan_of

Rows = list[tuple[str, int]]
WindowId = tuple[str, int]  # key, start

ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 50)), max_size=30)
GRACE = st.integers(0, 10)
HOPPING = st.builds(
    lambda size, advance, grace: sk.TimeWindows(size_ms=size, advance_ms=min(size, advance), grace_ms=grace),
    st.integers(1, 15),
    st.integers(1, 15),
    GRACE,
)
SLIDING = st.builds(sk.SlidingWindows, time_difference_ms=st.integers(1, 12), grace_ms=GRACE)
SESSIONS = st.builds(sk.SessionWindows, inactivity_gap_ms=st.integers(0, 12), grace_ms=GRACE)
NOTHING_IS_LATE = 1_000
NOTHING_EXPIRES = "1000000s"
laws = settings(max_examples=fewer(100))


def table_of(rows: Rows) -> pa.Table:
    """The records with their numbers as values, so that a list of values says which records a window holds."""
    numbered = [(*row, number, number) for number, row in enumerate(rows)]
    return kinds.table_of(numbered, key=pa.string(), time=pa.int64(), number=pa.int64(), offset=pa.int64())


def plan_over(windows: Any, emit: str = "on_window_update") -> sk.Plan:
    named = {"n": sk.count(), "held": sk.collect("number")}
    return plan_of(windows, emit, named, timestamp="time", offset="offset")


def run_of(windows: Any, rows: Rows, emit: str = "on_window_update") -> sk.Run:
    run = plan_over(windows, emit).run(table_of(rows))
    run.trace.check()
    return run


def held(run: sk.Run) -> dict[WindowId, list[int]]:
    """The records in each window, as they came."""
    rows = run.table().to_pylist()
    assert all(row["n"] == len(row["held"]) for row in rows)
    return {(row["key"], row["window_start_ms"]): row["held"] for row in rows}


def finals(run: sk.Run) -> dict[WindowId, tuple[int, list[int]]]:
    """The record that closed each window, and what it held."""
    return {(row["key"], row["window_start_ms"]): (row["offset"], row["held"]) for row in run.changelog().to_pylist()}


# ---- hopping windows at every millisecond beside sliding windows


def every_millisecond(d: int, grace: int) -> sk.TimeWindows:
    """[s, s + d + 1), which is [s, s + d], at every s."""
    return sk.TimeWindows(size_ms=d + 1, advance_ms=1, grace_ms=grace)


@laws
@given(ROWS, st.integers(1, 12))
def test_a_hopping_window_at_the_same_start_holds_what_a_sliding_window_holds(rows: Rows, d: int) -> None:
    sliding = held(run_of(sk.SlidingWindows(time_difference_ms=d, grace_ms=NOTHING_IS_LATE), rows))
    hopping = held(run_of(every_millisecond(d, NOTHING_IS_LATE), rows))
    assert sliding == {id: hopping[id] for id in sliding}
    # and no hopping window holds anything that no sliding window holds
    assert {tuple(records) for records in hopping.values()} <= {tuple(records) for records in sliding.values()}


@laws
@given(ROWS, st.integers(1, 12), GRACE)
def test_in_order_they_close_with_the_same_record(rows: Rows, d: int, grace: int) -> None:
    """S >= (end + 1) + grace is S > end + grace."""
    rows = sorted(rows, key=lambda row: row[1])
    sliding = finals(run_of(sk.SlidingWindows(time_difference_ms=d, grace_ms=grace), rows, "on_window_close"))
    hopping = finals(run_of(every_millisecond(d, grace), rows, "on_window_close"))
    assert sliding == {id: hopping[id] for id in sliding}


@laws
@given(ROWS, st.integers(1, 12), GRACE)
@example([("b", 0), ("a", 8), ("b", 1), ("b", 2), ("b", 1)], 1, 6)
def test_late_records_cost_sliding_windows(rows: Rows, d: int, grace: int) -> None:
    """A record that misses its own sliding window is missing in later ones, even in open ones.

    The reverse is rare: such a record gets into a window that starts after it, in a copy.
    """
    run = run_of(sk.SlidingWindows(time_difference_ms=d, grace_ms=grace), rows)
    sliding, hopping = held(run), held(run_of(every_millisecond(d, grace), rows))
    for (key, start_ms), records in sliding.items():
        for record in set(records) - set(hopping.get((key, start_ms), ())):
            assert rows[record][1] < start_ms
            assert rows[record][1] < run.trace.close_time_ms[record]


@laws
@given(HOPPING | SLIDING, ROWS)
def test_the_trace_knows_what_each_window_holds(windows: Any, rows: Rows) -> None:
    run = run_of(windows, rows)
    columns, keys, table = run.trace.window_columns, run.trace.keys.to_pylist(), held(run)
    ids = [(keys[key], start_ms) for key, start_ms in zip(columns.key.tolist(), columns.start_ms.tolist(), strict=True)]
    assert {id: run.trace.records_in(row).tolist() for row, id in enumerate(ids)} == {
        id: sorted(records) for id, records in table.items()
    }
    for record in range(len(rows)):
        found = {ids[row] for row in run.trace.windows_of(record)}
        assert found == {id for id, records in table.items() if record in records}


# ---- more grace


@laws
@given(HOPPING | SLIDING, ROWS, st.integers(1, 10))
def test_more_grace_keeps_what_less_grace_kept(windows: Any, rows: Rows, more: int) -> None:
    """Each record in each window in which it lies; and what is added had been missed."""
    run = run_of(windows, rows)
    again = run_of(run.plan.with_windows(grace_ms=windows.grace_ms + more).windows, rows)
    before, after = held(run), held(again)
    for id, records in before.items():
        inside = [record for record in records if rows[record][1] >= id[1]]
        assert [record for record in after[id] if record in inside] == inside
    if isinstance(windows, sk.TimeWindows):  # a sliding record that is late as a whole is one drop, partly late several
        assert again.metrics()["dropped-records-total"] <= run.metrics()["dropped-records-total"]
    if isinstance(windows, sk.TimeWindows):
        gained = sum(map(len, after.values())) - sum(map(len, before.values()))
        assert gained == run.metrics()["dropped-late"] - again.metrics()["dropped-late"]


@laws
@given(HOPPING, ROWS)
def test_a_record_is_in_each_of_its_windows_or_a_drop(windows: sk.TimeWindows, rows: Rows) -> None:
    run = run_of(windows, rows)
    belonging = sum(len(windows.windows_for(time)) for _, time in rows)
    assert sum(map(len, held(run).values())) + run.metrics()["dropped-late"] == belonging


# ---- keys and partitions


def of_key(run: sk.Run, key: str) -> list[list[dict[str, Any]]]:
    """Everything a run says of one key."""
    tables = (run.table(), run.changelog(), run.dropped(), run.trace.records())
    return [[row for row in table.to_pylist() if row["key"] == key] for table in tables]


@laws
@given(HOPPING | SLIDING | SESSIONS, ROWS, st.sampled_from(["on_window_update", "on_window_close"]))
def test_other_keys_matter_only_as_a_clock(windows: Any, rows: Rows, emit: str) -> None:
    """For key a it is all the same whether the other records are those of b and c or of one key more."""
    renamed = [(key if key == "a" else "clock", time) for key, time in rows]
    assert of_key(run_of(windows, rows, emit), "a") == of_key(run_of(windows, renamed, emit), "a")


@laws
@given(HOPPING | SLIDING | SESSIONS, ROWS, st.sampled_from(["on_window_update", "on_window_close"]))
def test_another_partition_does_not_matter_at_all(windows: Any, rows: Rows, emit: str) -> None:
    plan = group_in_ms("key", timestamp="time", partition="partition", offset="offset")
    plan = plan.windowed_by(windows).emit(emit).aggregate(n=sk.count(), held=sk.collect("number"))
    numbers = pa.array(["abc".index(key) for key, _ in rows], pa.int32())
    together = plan.run(table_of(rows).append_column("partition", numbers))
    together.trace.check()
    for number, key in enumerate("abc"):
        mine = (
            table_of(rows).append_column("partition", numbers).filter(pa.array([k == key for k, _ in rows], pa.bool_()))
        )
        alone = plan.run(mine)
        assert of_key(together, key) == of_key(alone, key), number


# ---- any cut


@laws
@given(
    HOPPING | SLIDING, ROWS, st.data(), st.sampled_from(["on_window_update", "on_window_close"]),
    st.sampled_from(["sessionkit", "kafka"]),
)  # fmt: skip
def test_a_run_can_be_cut_anywhere(windows: Any, rows: Rows, data: st.DataObject, emit: str, rules: str) -> None:
    """Parts over one store say what the whole says, in the same order."""
    kafka = rules == "kafka"
    # under Kafka's rules a run that ends before the first window does loses it: an example of test_hopping.py
    table = table_of([(key, time + (100 if kafka else 0)) for key, time in rows])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    plan, retention = plan_over(windows, emit), NOTHING_EXPIRES if kafka else None
    whole, parts = run_by(plan, table, rules=rules, retention=retention), []
    with sk.open_store("memory", "cut", of="windows", retention=retention) as store:
        for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            parts.append(run_by(plan, table.slice(begin, end - begin), rules=rules, store=store))
            parts[-1].trace.check()
            if data.draw(st.booleans()):  # a look in between: the store keeps columns until someone asks by key
                assert len(list(store.all())) == len(store)
        stored = {(w.key, w.window_start_ms): list(w.aggregate["held"]) for w in store.all()}
    for view in ("changelog", "dropped"):
        found = [row for part in parts for row in getattr(part, view)().to_pylist()]
        assert found == getattr(whole, view)().to_pylist(), view
    touched = [row for part in parts for row in part.trace.touched().to_pylist()]
    assert touched == whole.trace.touched().to_pylist()
    rows_left = [row for row in whole.table().to_pylist() if row["status"] == "open"]
    still_open = {(row["key"], row["window_start_ms"]): row["held"] for row in rows_left}
    assert {id: stored[id] for id in still_open} == still_open
