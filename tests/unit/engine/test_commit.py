"""What a run leaves in its store: the windows that can still be found, and which record closed them."""

from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.engine.commit import commit
from sessionkit.engine.kernel_run import run_kernel
from sessionkit.stores.registry import store_class
from tests.kinds import batch_of, each_kind, plan_of

SESSIONS = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5)
TUMBLING = sk.TimeWindows(size_ms=10, grace_ms=5)


def left(windows: Any, *rows: tuple[str, int, int], retention_ms: int, keep_trace: bool) -> list[tuple[Any, ...]]:
    """(key, start, closed_by) of each window that the store holds afterwards."""
    store = store_class("memory", windows.holds)(retention=None)
    named = {"n": sk.count()}
    batch = batch_of(*rows, first_offset=100)
    outcome = run_kernel(windows, named, batch, retention_ms=retention_ms, keep_trace=keep_trace, store=store)
    commit(outcome, store, windows, retention_ms)
    before = dict.fromkeys((0, 1), 10**9)
    state = store.load(pa.array([], pa.string()), before, ("n",))
    rows_left = zip(state.key.to_pylist(), state.start_ms.tolist(), state.closed_by.tolist(), strict=True)
    return sorted(rows_left, key=lambda row: row[:2])


@pytest.mark.parametrize(("keep_trace", "closed_by"), [(True, 101), (False, 102)])
def test_the_record_that_closed_a_session_goes_along(keep_trace: bool, closed_by: int) -> None:
    """Without a trace nobody asked which record it was: the last one that was read stands for it."""
    rows = [("a", 0, 0), ("b", 40, 0), ("c", 50, 0), ("d", 0, 1)]
    found = left(SESSIONS, *rows, retention_ms=1_000, keep_trace=keep_trace)
    assert found == [("a", 0, closed_by), ("b", 40, -1), ("c", 50, -1), ("d", 0, -1)]


@pytest.mark.parametrize(("last", "keys"), [(14, ["a", "b"]), (15, ["b"])])
def test_a_tumbling_window_is_left_out_once_it_is_closed(last: int, keys: list[str]) -> None:
    found = left(TUMBLING, ("a", 0, 0), ("b", last, 0), retention_ms=1_000, keep_trace=False)
    assert [row[0] for row in found] == keys


@pytest.mark.parametrize(("retention_ms", "keys"), [(40, ["a", "b"]), (39, ["b"])])
def test_a_session_that_no_record_can_find_any_more_is_left_out(retention_ms: int, keys: list[str]) -> None:
    """It can be found while its end is not older than stream time less the retention."""
    found = left(SESSIONS, ("a", 0, 0), ("b", 40, 0), retention_ms=retention_ms, keep_trace=False)
    assert [row[0] for row in found] == keys


@pytest.mark.parametrize(("last", "keys"), [(35, ["a", "b"]), (36, ["b"])])
def test_a_sliding_window_is_left_out_once_nothing_is_copied_from_it(last: int, keys: list[str]) -> None:
    """[0, 10] is built on by windows that end up to 20 later, and those take records for 5 more."""
    sliding = sk.SlidingWindows(time_difference_ms=10, grace_ms=5)
    found = left(sliding, ("a", 10, 0), ("b", last, 0), retention_ms=1_000, keep_trace=False)
    assert [row[0] for row in found] == keys


@pytest.mark.parametrize("trace", [True, False])
@pytest.mark.parametrize("kind", ["session", "sliding"])
def test_what_was_put_by_hand_can_be_closed_by_the_very_first_record(kind: str, trace: bool) -> None:
    """At offset 0; it stays closed, whatever runs follow."""
    windows = each_kind(10)[kind]
    plan = plan_of(windows, "on_window_close")
    with sk.open_store("memory", "by_hand", of=windows.holds) as store:
        store.put("a", 0, *((0, 7) if kind == "session" else (7, 0)))
        for key, time_ms, count in (("b", 250, 1), ("a", 260, 0), ("b", 270, 0)):
            run = plan.run(pa.table({"key": [key], "at": [time_ms]}), store=store, trace=trace, retention="10000ms")
            assert [each.closed_by for each in store.all() if each.window_start_ms == 0] == [0]
            if trace:
                finals = [row for row in run.changelog().to_pylist() if row["window_start_ms"] == 0]
                assert len(finals) == count
