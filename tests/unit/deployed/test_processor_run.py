"""A run under Kafka's rules and the store that it writes."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import AggregationFailed, InvalidArgument
from tests.deployments import run_deployed
from tests.kinds import EACH_KIND, group_in_ms

PLAN = group_in_ms("key", timestamp="time").windowed_by(sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5))


def _records(*times: int) -> pd.DataFrame:
    return pd.DataFrame({"key": ["a"] * len(times), "time": list(times)})


def _fails_on_the_third(key: str, value: object, aggregate: int) -> int:
    if aggregate == 2:
        raise RuntimeError("enough")
    return aggregate + 1


@pytest.mark.parametrize("kind", EACH_KIND)
def test_an_aggregation_that_raises_leaves_the_store_as_it_was(kind: str) -> None:
    own = sk.aggregation(initializer=int, aggregator=_fails_on_the_third, merger=lambda key, a, b: a + b)
    plan = PLAN.windowed_by(EACH_KIND[kind]).aggregate(own=own)
    of = "sessions" if kind == "session" else "windows"
    with sk.open_store("memory", "counts", of=of, retention="1000ms") as store:
        run_deployed(plan, _records(0, 50), store=store)
        before = (list(store.all()), store.snapshot(0))
        with pytest.raises(AggregationFailed, match=r"key 'a' at partition 0, offset 4.*enough.*nothing of this run"):
            run_deployed(plan, _records(100, 100, 100), store=store)
        assert (list(store.all()), store.snapshot(0)) == before


def test_two_runs_over_one_store_are_one_run() -> None:
    plan, times = PLAN.count(), (0, 5, 40, 20, 30, 90, 80, 120)
    whole = run_deployed(plan, _records(*times), retention="100ms")
    with sk.open_store("memory", "sessions", retention="100ms") as store:
        parts = [run_deployed(plan, _records(*part), store=store) for part in (times[:3], times[3:])]
    pd.testing.assert_frame_equal(pd.concat([part.changelog() for part in parts], ignore_index=True), whole.changelog())


def test_a_store_under_kafka_rules_brings_its_retention() -> None:
    with sk.open_store("memory", "sessions") as store, pytest.raises(InvalidArgument, match="brings its own retention"):
        run_deployed(PLAN.count(), _records(0), store=store)


def test_with_the_default_retention_in_memory_sessions_are_never_final() -> None:
    """Kafka's largest surprise: what closes has expired by then."""
    plan, records = PLAN.count().emit("on_window_close"), _records(0, 100, 200)
    assert len(run_deployed(plan, records).changelog()) == 0
    assert len(plan.run(records).changelog()) == 2
    assert len(run_deployed(plan, records, retention="1000ms").changelog()) == 2


def test_emit_on_close_over_a_store_that_is_not_in_order_of_time(tmp_path: Path) -> None:
    """Kafka's ordinary RocksDB store finds no sessions by their ends; going through all of it gives the same."""
    plan = (
        group_in_ms("user")
        .windowed_by(sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5))
        .emit("on_window_close")
        .count()
    )
    times = [100, 103, 101, 160, 120, 300, 301, 500]
    records = pa.table({"user": ["b", "a", "b", "a", "c", "b", "a", "c"], "at": times})
    sent = []
    for time_ordered in (False, True):
        options = {"directory": tmp_path / str(time_ordered), "time_ordered": time_ordered, "retention": "1h"}
        with sk.open_store("rocksdb", "clicks", **options) as store:
            sent.append(run_deployed(plan, records, store=store).changelog().to_pylist())
    assert sent[0] == sent[1]
    assert [(row["key"], row["window_end_ms"], row["count"]) for row in sent[0]] == [
        ("b", 101, 2), ("a", 103, 1), ("a", 160, 1), ("b", 300, 1), ("a", 301, 1),
    ]  # fmt: skip


def test_the_time_of_a_record_without_a_key_brings_no_session_out_of_the_store() -> None:
    """Which sessions of other keys a batch closes is known before it is processed: by the times that count."""
    plan = PLAN.count().emit("on_window_close")
    keys, times = ["b", None, "a", None], [0, 9_000, 40, 7_000]
    rows = pd.DataFrame({"key": keys, "time": times})
    whole = run_deployed(plan, rows, retention="1000ms")
    with sk.open_store("memory", "sessions", retention="1000ms") as store:
        parts = [run_deployed(plan, part, store=store) for part in (rows[:1], rows[1:])]
    assert whole.changelog()["key"].tolist() == ["b"]
    pd.testing.assert_frame_equal(pd.concat([part.changelog() for part in parts], ignore_index=True), whole.changelog())


@pytest.mark.parametrize("last", [15, 16])
def test_a_session_of_another_key_is_loaded_where_the_batch_closes_it(last: int) -> None:
    """Gap and grace are 15 together: at 15 the session at 0 is open, a millisecond later it is closed."""
    plan = PLAN.count().emit("on_window_close")
    with sk.open_store("memory", "sessions", retention="1000ms") as store:
        run_deployed(plan, pd.DataFrame({"key": ["b"], "time": [0]}), store=store)
        run = run_deployed(plan, pd.DataFrame({"key": ["a"], "time": [last]}), store=store)
        assert run.changelog()["key"].tolist() == (["b"] if last > 15 else [])
        assert len(run.table()) == (2 if last > 15 else 1)


def test_each_look_for_final_results_is_noted_with_what_it_sent() -> None:
    """A record that does not move the close time is no reason to look."""
    plan = PLAN.count().emit("on_window_close")
    run = run_deployed(plan, _records(0, 0, 50, 49, 120), retention="1000ms")
    assert run.deployed is not None
    assert [(look.at, look.sent) for look in run.deployed.looks] == [(2, 1), (4, 1)]
