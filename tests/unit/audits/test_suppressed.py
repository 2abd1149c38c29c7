"""The final results of suppress beside those of emit-on-close."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from tests.interpreted import fewer
from tests.kinds import EACH_KIND, plan_of

SESSIONS = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5)


def audited(*times: int, windows: sk.SessionWindows | sk.TimeWindows = SESSIONS) -> sk.SuppressAudit:
    plan = plan_of(windows).suppress("until_window_closes")
    return sk.audit_suppress(plan, pa.table({"key": ["a"] * len(times), "at": times}))


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
    audit = sk.audit_suppress(plan, table)
    assert reasons(audit) == [(20, 20, "not sent, null")]
    assert "to suppress is a window that was deleted" in str(audit)


def test_a_buffer_that_is_full() -> None:
    plan = plan_of(SESSIONS).suppress("until_window_closes", max_records=1)
    audit = sk.audit_suppress(plan, pa.table({"key": ["a", "b"], "at": [20, 21]}))
    assert not audit.is_clean
    assert audit.words()[0].startswith("With suppress instead of emit-on-close the application stops: the buffer of")
    assert "got 2 results" in audit._repr_html_()
    assert len(audit.table()) == 0


@pytest.mark.parametrize("kind", EACH_KIND)
def test_every_result_has_a_reason(kind: str) -> None:
    plan = plan_of(EACH_KIND[kind]).suppress("until_window_closes")
    for seed in range(fewer(40)):
        rng = np.random.default_rng(seed)
        at = np.maximum(np.arange(50) * 3 - rng.integers(0, 40, 50), 0)
        table = pa.table({"key": rng.choice(["a", "b"], 50).tolist(), "at": at})
        audit = sk.audit_suppress(plan, table)
        counts = audit.counts()
        assert sum(counts.values()) == len(audit.table())
        on_close = plan_of(EACH_KIND[kind], "on_window_close").run(table)
        closed = {tuple(row.values()) for row in on_close.changelog().select(["key", "window_start_ms"]).to_pylist()}
        there = {(row["key"], row["window_start_ms"]) for row in audit.table().to_pylist()}
        assert closed <= there
        assert audit.is_clean == (len(audit.differences()) == 0)
        if not counts["sent twice"] + counts["sent before it grew"] + counts["sent, not closed"]:
            assert len(plan.run(table).changelog()) <= len(on_close.changelog()), seed


def test_what_is_refused() -> None:
    table = pa.table({"key": ["a"], "at": [1]})
    for plan in (plan_of(SESSIONS), plan_of(SESSIONS).suppress("until_time_limit", "1s")):
        with pytest.raises(InvalidArgument, match="this plan has no final results of suppress"):
            sk.audit_suppress(plan, table)
