"""The final results of suppress beside those of emit-on-close."""

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import BufferFull, InvalidArgument
from tests.interpreted import fewer
from tests.kinds import EACH_KIND, plan_of

SESSIONS = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5)


def audited(*times: int) -> sk.SuppressAudit:
    return beside(plan_of(SESSIONS).suppress("until_window_closes"), a_key(*times))


def beside(plan: sk.Plan, table: pa.Table) -> sk.SuppressAudit:
    return sk.audit(plan, table, sk.Deployment.plain()).beside_emit_on_close()


def a_key(*times: int) -> pa.Table:
    return pa.table({"key": ["a"] * len(times), "at": times})


def drawn(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    at = np.maximum(np.arange(50) * 3 - rng.integers(0, 40, 50), 0)
    return pa.table({"key": rng.choice(["a", "b"], 50).tolist(), "at": at})


def last_values(run: sk.Run) -> dict[tuple[str, int, int], int]:
    """What the results that were sent come to, by window."""
    values: dict[tuple[str, int, int], int] = {}
    for row in run.changelog().to_pylist():
        id = (row["key"], row["window_start_ms"], row["window_end_ms"])
        values[id] = row["count"]
        if row["what"] == "tombstone":
            del values[id]
    return values


def reasons(audit: sk.SuppressAudit) -> list[tuple[int, int, str]]:
    rows = audit.table().to_pylist()
    return [(row["window_start_ms"], row["window_end_ms"], row["reason"]) for row in rows]


def test_nothing_differs() -> None:
    audit = audited(20, 50, 90)
    assert audit.is_clean
    assert audit.words() == ["With suppress instead of emit-on-close nothing differs: 2 results, each once."]
    assert len(audit.differences()) == 0


def test_a_session_that_comes_twice() -> None:
    audit = audited(20, 35, 20, 60)
    assert reasons(audit) == [(20, 20, "sent twice"), (35, 35, "as it should")]
    (row,) = audit.differences().to_pylist()
    assert (row["sent_count"], row["count"], row["suppress_count"]) == (2, 2, 2)
    assert audit.words()[0] == "With suppress instead of emit-on-close 1 result of 2 differ."
    assert audit.words()[1].startswith("1 session goes out twice: the buffer lets go of a session")


def test_a_session_that_grew_after_it_was_sent() -> None:
    audit = audited(20, 35, 25, 60)
    assert reasons(audit) == [(20, 20, "sent before it grew"), (20, 35, "as it should")]
    assert "nothing withdraws the first" in str(audit)


def test_a_session_that_nothing_has_closed_yet() -> None:
    assert reasons(audited(20, 35)) == [(20, 20, "sent, not closed")]


def test_a_result_that_is_null() -> None:
    plan = plan_of(SESSIONS, named={"least": sk.min("n")}).suppress("until_window_closes")
    table = pa.table({"key": ["a", "a"], "at": [20, 90], "n": pa.array([None, 3], pa.int64())})
    audit = beside(plan, table)
    assert reasons(audit) == [(20, 20, "not sent, null")]
    assert "to suppress is a window that was deleted" in str(audit)


def test_a_buffer_that_is_full_stops_the_audited_application() -> None:
    plan = plan_of(SESSIONS).suppress("until_window_closes", max_records=1)
    with pytest.raises(BufferFull, match="the buffer of suppress is full at partition 0, offset 1"):
        sk.audit(plan, pa.table({"key": ["a", "b"], "at": [20, 21]}))


def test_a_cache_that_spares_the_buffer_is_played_before_it() -> None:
    """Without the cache three results would wait at once, and the application would stop."""
    plan = plan_of(SESSIONS).suppress("until_window_closes", max_records=2)
    table = pa.table({"key": ["a", "b", "a", "b"], "at": [20, 21, 30, 31]})
    assert sk.audit(plan, table, sk.Deployment(commit_interval=None)).counts()["lost"] == 0


@pytest.mark.parametrize("kind", EACH_KIND)
def test_every_result_has_a_reason(kind: str) -> None:
    plan = plan_of(EACH_KIND[kind]).suppress("until_window_closes")
    for seed in range(fewer(40)):
        table = drawn(seed)
        audit = beside(plan, table)
        counts = audit.counts()
        assert sum(counts.values()) == len(audit.table())
        on_close = plan_of(EACH_KIND[kind], "on_window_close").run(table)
        closed = {tuple(row.values()) for row in on_close.changelog().select(["key", "window_start_ms"]).to_pylist()}
        there = {(row["key"], row["window_start_ms"]) for row in audit.table().to_pylist()}
        assert closed <= there
        assert audit.is_clean == (len(audit.differences()) == 0)
        if not counts["sent twice"] + counts["sent before it grew"] + counts["sent, not closed"]:
            assert len(plan.run(table).changelog()) <= len(on_close.changelog()), seed


def test_the_store_of_the_deployment_stands_before_the_buffer() -> None:
    """RocksDB's segments keep the session, and the store in memory has forgotten it when its last record comes."""
    plan, table = plan_of(SESSIONS).suppress("until_window_closes"), a_key(20, 37, 25, 60)
    for store in ("memory", "rocksdb"):
        how = sk.Deployment(store=store, caching=False)
        audit = sk.audit(plan, table, how)
        sent = plan.run(table, deployment=how).changelog().to_pylist()
        assert audit.counts()["sent"] == len(sent)
        assert audit.run.changelog().to_pylist() == sent


@pytest.mark.parametrize("kind", EACH_KIND)
@pytest.mark.parametrize("caching", [False, "400 B", True])
@pytest.mark.parametrize("until", [("until_window_closes",), ("until_time_limit", "5ms")])
def test_what_was_sent_is_what_the_runs_send_and_the_cure_cures(
    kind: str, caching: Any, until: tuple[Any, ...]
) -> None:
    plan = plan_of(EACH_KIND[kind]).suppress(*until)
    for seed in range(fewer(12)):
        table = drawn(seed)
        how = sk.Deployment(store="memory", caching=caching, commit_every=7, restarts=[20] if seed % 2 else ())
        audit = sk.audit(plan, table, how)
        rows = {(row["key"], row["window_start_ms"], row["window_end_ms"]): row for row in audit.table().to_pylist()}
        for run, name in ((plan.run(table), "count"), (plan.run(table, deployment=how), "kafka_count")):
            assert {id: row[name] for id, row in rows.items() if row[name] is not None} == last_values(run), seed
        if audit.recommended_retention_ms is not None:
            cured = dataclasses.replace(how, retention=f"{audit.recommended_retention_ms}ms")
            assert sk.audit(plan, table, cured).loses_nothing, seed


def test_results_that_wait_in_the_buffer_are_not_lost() -> None:
    """The cache sends one update, which waits; without it the first update has already gone out."""
    plan = plan_of(EACH_KIND["tumbling"]).suppress("until_time_limit", "5ms")
    audit = sk.audit(plan, a_key(1, 7, 8), sk.Deployment(caching=True, commit_interval=None))
    assert (audit.counts()["waiting"], audit.loses_nothing) == (1, True)
    assert "1 result still waits in the buffer of suppress when the records end" in str(audit)


def test_a_result_that_suppress_sends_twice_is_told() -> None:
    plan = plan_of(SESSIONS).suppress("until_window_closes")
    audit = sk.audit(plan, a_key(20, 35, 20, 60), sk.Deployment(caching=False))
    assert audit.counts()["sent_twice"] == 1
    assert "Why sent twice (1): the buffer lets go of a session when its grace is over" in str(audit)


def test_what_is_refused() -> None:
    table = pa.table({"key": ["a"], "at": [1]})
    for plan in (plan_of(SESSIONS), plan_of(SESSIONS).suppress("until_time_limit", "1s")):
        with pytest.raises(InvalidArgument, match="this plan has no final results of suppress"):
            beside(plan, table)
    with pytest.raises(InvalidArgument, match="no buffer has no settings"):
        plan_of(SESSIONS).suppress(None, max_records=1)


def test_none_takes_the_buffer_off() -> None:
    assert plan_of(SESSIONS).suppress("until_window_closes").suppress(None) == plan_of(SESSIONS)
