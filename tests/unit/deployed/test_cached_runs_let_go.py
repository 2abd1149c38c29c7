"""A run behind a cache, or with suppress, holds nothing that holds the run: a search for a retention makes many."""

import gc
import weakref
from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from tests.kinds import group_in_ms


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize(
    "windows", [sk.SessionWindows(inactivity_gap="10s", grace="5s"), sk.TimeWindows(size="10s", grace="5s")]
)
def test_the_memory_of_a_cached_run_is_free_with_its_last_name(windows: Any, waits: bool) -> None:
    """Eleven of 10 million records needed 24 GiB, as only the garbage collector would have found them."""
    table = pa.table({"key": ["a", "b", "a"], "time": pa.array([0, 3_000, 40_000], pa.int64())})
    plan = group_in_ms("key", timestamp="time").windowed_by(windows).count()
    plan = plan.suppress("until_window_closes") if waits else plan
    gc.disable()
    try:
        run = plan.run(table, deployment=sk.Deployment())
        assert len(run.changelog()) and run._store is not None
        outcome, store = weakref.ref(run._outcome), weakref.ref(run._store)
        del run
        assert outcome() is None and store() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize(
    "windows",
    [
        sk.SessionWindows(inactivity_gap="10s", grace="5s"),
        sk.TimeWindows(size="10s", grace="5s"),
        sk.SlidingWindows(time_difference="10s", grace="5s"),
    ],
)
def test_the_memory_of_an_audit_is_free_with_its_last_name(windows: Any, emit: Any) -> None:
    """A second one of 10 million records needed a gibibyte more: what replays them was held by itself."""
    table = pa.table({"key": ["a", "b", "a"], "time": pa.array([0, 3_000, 40_000], pa.int64())})
    plan = group_in_ms("key", timestamp="time").windowed_by(windows).emit(emit).count()
    gc.disable()
    try:
        audit = sk.audit(plan, table)
        assert audit.words() and audit.safe_retentions_ms
        run, batch = weakref.ref(audit.run._outcome), weakref.ref(audit.expected._outcome.batch)
        del audit
        assert run() is None and batch() is None
    finally:
        gc.enable()
