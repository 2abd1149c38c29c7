"""Audits: what Kafka's store loses, what the cache and the emit interval do, the cure, and how it is said and drawn."""

# ruff: noqa: E501 - sentences are easier to compare in one piece

import dataclasses
import json
import re
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sessionkit as sk
from sessionkit.audits.sides import Sent
from sessionkit.audits.verdicts import verdict_on
from sessionkit.errors import InvalidArgument, NotBuilt
from sessionkit.exports.lengths import java_duration
from tests.deployments import audit_deployed, run_deployed
from tests.interpreted import fewer
from tests.kinds import flights_by_route, group_in_ms, in_ms

VERDICTS = ("as_it_should_be", "lost", "sent_twice", "other_value", "only_in_kafka", "late")
CLOSE, UPDATE = "on_window_close", "on_window_update"
BY_KEY = group_in_ms("key", timestamp="time")
TUMBLING_10 = sk.TimeWindows(size_ms=10, grace=0)
TUMBLING_10_5 = sk.TimeWindows(size_ms=10, grace_ms=5)
GAP_10 = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5)


# Without a cache and a throttle, in memory: what is found here is the store's doing alone.
BARE: dict[str, Any] = {"store": "memory", "caching": False, "commit_interval": None, "emit_interval": "0s"}


SUPPOSED = {
    CLOSE: "This assumes no cache and a check for final results at each record.",
    UPDATE: "This assumes no cache.",
}


def table_of(rows: list[tuple[str, int]]) -> pa.Table:
    columns: list[Any] = [list(column) for column in zip(*rows, strict=True)] or [[], []]
    return pa.table({"key": pa.array(columns[0], pa.string()), "time": pa.array(columns[1], pa.int64())})


def a(*times: int) -> list[tuple[str, int]]:
    return [("a", time) for time in times]


def audit_of(windows: Any, rows: list[tuple[str, int]], emit: str = CLOSE, **options: Any) -> sk.Audit:
    """The audit of a count, with counts that add up; of a bare store where no more is said."""
    audit = audit_deployed(BY_KEY.windowed_by(windows).emit(emit).count(), table_of(rows), **{**BARE, **options})
    check_sums(audit)
    return audit


def check_sums(audit: sk.Audit) -> None:
    counts, table = (
        audit.counts(),
        pa.table(audit.table()) if isinstance(audit.table(), pd.DataFrame) else audit.table(),
    )
    verdicts = Counter(word.replace(" ", "_").lower() for word in table["verdict"].to_pylist())
    assert {name: counts[name] for name in VERDICTS} == {name: verdicts[name] for name in VERDICTS}
    assert counts["expected"] == len(table) - counts["only_in_kafka"]
    assert counts["sent"] == sum(table["sent_count"].to_pylist())
    assert len(audit.differences()) == len(table) - counts["as_it_should_be"]
    assert audit.is_clean is (counts["as_it_should_be"] == len(table))


def found(audit: sk.Audit) -> dict[str, int]:
    """The counts that are not 0."""
    return {name: count for name, count in audit.counts().items() if count}


# ---- what a store in memory loses


def test_in_memory_tumbling_windows_without_grace_are_never_final() -> None:
    """Retention 10: at 12 the store's time is 10, and a start of 0 lies 10 behind."""
    audit = audit_of(TUMBLING_10, a(0, 12, 25))
    assert found(audit) == {"expected": 2, "lost": 2}
    assert not audit.is_clean and not audit.loses_nothing
    assert audit.smallest_retention_ms == 11
    assert audit.words() == [
        "in-memory store, retention 10 ms (Kafka's default): nothing comes out. All 2 final results are lost.",
        SUPPOSED[CLOSE],
        "Why lost: a window closes once stream time is 0 s past its end; the in-memory store forgets a window once the "
        "newest start is 10 ms past its own. Final results are read from the store: what is gone by then is never sent.",
        "The smallest retention that loses nothing on these records is 11 ms: "
        "Materialized.withRetention(Duration.ofMillis(11)). Found by replaying them.",
    ]


def test_a_jump_of_stream_time_wants_more_retention() -> None:
    """At 45 the store's time is 40: [10, 20) is there with 31 and not with 30."""
    audit = audit_of(TUMBLING_10, a(0, 12, 45))
    assert audit.cure is not None
    assert audit.cure.settings.retention_ms == audit.smallest_retention_ms == 31
    assert found(audit.cure) == {"expected": 2, "sent": 2, "as_it_should_be": 2, "final_but_kept": 1}
    less = audit._replay(30)
    assert found(less) == {"expected": 2, "sent": 1, "as_it_should_be": 1, "lost": 1}
    assert less.differences().to_pylist() == [
        {
            "key": "a", "window_start_ms": 10, "window_end_ms": 20, "verdict": "lost", "sent_count": 0,
            "partition": 0, "count": 1, "kafka_count": None,
        }
    ]  # fmt: skip


def test_in_memory_sessions_with_the_default_retention_are_never_final() -> None:
    audit = audit_of(GAP_10, a(0, 5, 100, 200))
    assert found(audit) == {"expected": 2, "lost": 2}
    assert audit.words()[2].startswith(
        "Why lost: a window closes once stream time is 15 ms past its end; the in-memory store forgets a session once the "
        "newest end is 15 ms past its own."
    )
    # at 200 the newest end is 200, and 100 is still there with 101; at 100 it was 95 to the end at 5
    assert audit.smallest_retention_ms == 101
    assert found(audit._replay(100)) == {"expected": 2, "sent": 1, "as_it_should_be": 1, "lost": 1}


def test_a_deployment_that_is_clean() -> None:
    """Retention 15 is no multiple of 10: what closes at 17 and at 25 is still there."""
    audit = audit_of(TUMBLING_10_5, a(0, 17, 25))
    assert found(audit) == {"expected": 2, "sent": 2, "as_it_should_be": 2, "final_but_kept": 1}
    assert audit.is_clean and audit.loses_nothing
    assert audit.smallest_retention_ms == 15
    assert len(audit.differences()) == 0
    assert audit.words()[0] == (
        "in-memory store, retention 15 ms (Kafka's default): all 2 final results come once, in time, with the right value."
    )
    assert audit.table().to_pylist() == [
        {
            "key": "a", "window_start_ms": start, "window_end_ms": start + 10, "verdict": "as it should be",
            "sent_count": 1, "partition": 0, "count": 1, "kafka_count": 1,
        }
        for start in (0, 10)
    ]  # fmt: skip


def test_one_is_said_as_one() -> None:
    held = audit_of(TUMBLING_10_5, a(0, 17, 25))
    late = audit_of(TUMBLING_10_5, a(0, 17, 25, 33), retention="100ms", emit_interval="20ms")
    again = audit_of(sk.SessionWindows(inactivity_gap_ms=3, grace_ms=2), [*a(10), ("b", 16), *a(13), ("b", 90)])
    assert "holds 1 window that is final" in repr(held)
    assert "1 result comes later than it could" in repr(late)
    assert "With this retention 1 session is sent again" in repr(again)


def test_one_final_result_is_not_all_of_them() -> None:
    for rows in (a(0, 17), a(0, 99)):
        audit = audit_of(TUMBLING_10_5, rows)
        assert audit.counts()["expected"] == 1
        assert not re.search(r"all 1 final result (come|are) ", repr(audit), re.IGNORECASE)


def test_records_that_close_nothing() -> None:
    for rows in ([], a(0, 1)):
        audit = audit_of(TUMBLING_10, rows)
        assert found(audit) == {}
        assert audit.is_clean
        assert repr(audit) == (
            f"in-memory store, retention 10 ms (Kafka's default): no window becomes final on these records.\n{SUPPOSED[CLOSE]}"
        )


def test_sliding_windows_have_a_difference_to_spare() -> None:
    """d = 10, retention 20: [0, 10] is there at 11, and gone once a window that starts at 20 is put."""
    windows = sk.SlidingWindows(time_difference_ms=10, grace=0)
    assert found(audit_of(windows, a(10, 11)))["as_it_should_be"] == 1
    audit = audit_of(windows, a(10, 30))
    assert found(audit) == {"expected": 1, "lost": 1}
    assert audit.smallest_retention_ms == 21


def test_what_is_sent_again_is_not_lost() -> None:
    """gap 3, grace 2: at 16 [10, 10] goes out; 13 finds it still there, and [10, 13] goes out as well."""
    rows = [*a(10), ("b", 16), *a(13), ("b", 90)]
    windows = sk.SessionWindows(inactivity_gap_ms=3, grace_ms=2)
    audit = audit_of(windows, rows, retention="100ms")
    assert found(audit) == {"expected": 3, "sent": 3, "as_it_should_be": 2, "sent_twice": 1, "final_but_kept": 2}
    assert audit.loses_nothing and not audit.is_clean
    # 90 finds 13 with 78; 77 behind is what 77 forgets
    assert audit.smallest_retention_ms == audit.recommended_retention_ms == 78
    assert audit._replay(78).loses_nothing and not audit._replay(77).loses_nothing
    assert audit.words() == [
        "in-memory store, retention 100 ms: 2 of 3 final results come as they should; 1 sent more than once.",
        SUPPOSED[CLOSE],
        "Why sent twice (1): a session that was sent as final is still in the store, a late record joins it, and the larger "
        "session is sent once more; the first is not taken back.",
        "At the end the store still holds 2 windows that are final.",
    ]
    assert [(row["window_start_ms"], row["window_end_ms"]) for row in audit.differences().to_pylist()] == [(10, 10)]
    default = audit_of(windows, rows)
    assert (
        found(default)["lost"] == default.counts()["expected"] == 3
    )  # 13 is within the gap, but 10 has expired: 3 of one
    assert default.words()[-1].startswith("With this retention 1 session ")
    assert default.words()[-1].endswith(" sent again, larger, because a late record joins one that was already final.")


def test_updates_of_a_session_that_the_store_has_forgotten() -> None:
    """gap 2, grace 3, retention 5: at stream time 5 the second record at 0 is in time, and begins anew."""
    windows = sk.SessionWindows(inactivity_gap_ms=2, grace_ms=3)
    audit = audit_of(windows, [*a(0), ("b", 5), *a(0)], UPDATE)
    assert found(audit) == {"expected": 2, "sent": 2, "as_it_should_be": 1, "other_value": 1, "dropped_records": 1}
    assert [(row["count"], row["kafka_count"]) for row in audit.differences().to_pylist()] == [(2, 1)]
    assert audit.smallest_retention_ms == 6
    assert audit.words() == [
        "in-memory store, retention 5 ms (Kafka's default): 1 of 2 last values come as they should; 1 with another value.",
        SUPPOSED[UPDATE],
        "Why changed (1): a record met a window that the store had forgotten already, and started it again.",
        "The smallest retention that loses nothing on these records is 6 ms: "
        "Materialized.withRetention(Duration.ofMillis(6)). Found by replaying them.",
    ]
    joined = audit_of(windows, [*a(0), ("b", 5), *a(1)], UPDATE)
    # [0, 1] should be there, with both; Kafka has [0, 0] and [1, 1]
    assert found(joined) == {"expected": 2, "sent": 3, "as_it_should_be": 1, "lost": 1, "only_in_kafka": 2}
    assert joined.words()[2:4] == [
        "They are lost because the store had expired the window, or refused to keep it, when a record came for it.",
        "Why changed (2): a record met a window that the store had forgotten already, and started it again.",
    ]


# ---- RocksDB


def test_rocksdb_shows_one_millisecond_more() -> None:
    """The time-first store reads up to and with a start that lies retention behind."""
    assert found(audit_of(TUMBLING_10, a(0, 12, 25), store="rocksdb"))["as_it_should_be"] == 2
    audit = audit_of(TUMBLING_10, a(0, 12, 45), store="rocksdb")
    assert found(audit) == {"expected": 2, "sent": 1, "as_it_should_be": 1, "lost": 1}
    assert audit.smallest_retention_ms == 30
    assert audit.words()[0].startswith(
        "RocksDB store, retention 10 ms (both Kafka's defaults): 1 of 2 final results come as "
    )
    assert "RocksDB drops whole segments of time" in audit.words()[2]


def test_rocksdb_sessions_are_lost_at_the_end_of_a_segment() -> None:
    """Segments of a minute: 59 000 and 60 500 are one look, 59 999 always falls to the next."""
    windows = sk.SessionWindows(inactivity_gap_ms=1_000, grace=0)
    assert found(audit_of(windows, a(59_000, 60_500), store="rocksdb"))["as_it_should_be"] == 1
    audit = audit_of(windows, a(59_999, 61_000), store="rocksdb")
    assert found(audit) == {"expected": 1, "lost": 1}
    assert audit.smallest_retention_ms == 1_001  # then the live segments begin with 59 999
    assert audit_of(windows, a(59_999, 61_000)).smallest_retention_ms == 1_002


def test_words_on_updates_ask_for_no_audit_with_the_cure() -> None:
    """It would tell how many sessions are sent twice, as only final results are."""
    audit = dataclasses.replace(audit_of(GAP_10, a(0, 22, 7, 8, 19), UPDATE), _replay=None)
    assert audit.words()[4].startswith("The smallest retention that loses nothing on these records is 16 ms")
    closing = dataclasses.replace(audit_of(GAP_10, a(0, 22, 7, 8, 19, 90)), _replay=None)
    with pytest.raises(TypeError):
        closing.words()


# ---- restarts


RESTARTED = [("a", 0), ("a", 100), ("b", 3), ("a", 12), ("a", 130)]


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
@pytest.mark.parametrize("windows", [GAP_10, TUMBLING_10, sk.SlidingWindows(time_difference_ms=10, grace=0)])
def test_late_records_count_after_a_restart(windows: Any, store: str) -> None:
    audit = audit_of(windows, RESTARTED, UPDATE, store=store, retention="1000ms", restarts=[1])
    assert found(audit) == {
        **{"expected": 3, "sent": 5, "as_it_should_be": 3, "only_in_kafka": 2},
        **{"late_but_counted": 2, "final_but_kept": 4},
    }
    assert [(row["key"], row["kafka_count"]) for row in audit.differences().to_pylist()] == [("b", 1), ("a", 1)]
    words = audit.words()
    assert "retention 1 s, restarted once: 3 of 3 last values come as they should" in words[0]
    assert words[2].startswith("2 late records count all the same: Kafka Streams does not restore its stream time")
    assert words[3].startswith("Why changed (2): a late record counted, or a record met a window that the store had")
    assert words[4] == "No retention prevents this: look at the restarts."


@pytest.mark.parametrize("store", ["memory", "rocksdb"])
def test_a_session_that_grows_after_a_restart_is_sent_no_more(store: str) -> None:
    """What closed before stays below the close time that was committed; its first form was sent in time."""
    audit = audit_of(GAP_10, RESTARTED, store=store, retention="1000ms", restarts=[1, 3])
    assert found(audit)["late_but_counted"] == 2
    assert audit.is_clean
    assert [len(life.changelog()) for life in audit._lives] == [1, 0, 1]
    assert ", restarted 2 times: all 2 final results come once, in time" in audit.words()[0]


def test_a_restart_before_a_record_in_time_changes_nothing() -> None:
    rows = a(0, 3, 30, 35, 90)
    assert audit_of(GAP_10, rows, restarts=[0, 1, 2, 3, 4]).counts() == audit_of(GAP_10, rows).counts()


def test_a_restart_lets_rocksdb_expire_nothing_until_the_next_put() -> None:
    """gap 10 s, grace 5 s, retention 15 s: the session at 0 is found again although the newest end is far ahead."""
    windows = sk.SessionWindows(inactivity_gap="10s", grace="5s")
    rows = a(0, 20_001, 5_000)
    assert found(audit_of(windows, rows, UPDATE, store="rocksdb"))["dropped_records"] == 1
    disk = audit_of(windows, rows, UPDATE, store="rocksdb", restarts=[1])
    assert [row["kafka_count"] for row in disk.differences().to_pylist() if row["verdict"] == "only in Kafka"] == [2]
    assert "; 1 joined into 1 larger session." in repr(disk)
    assert "late records joined them, or late records counted that are dropped otherwise. How many" in repr(disk)
    memory = audit_of(windows, rows, UPDATE, restarts=[1])  # its changelog brings back what it had observed
    assert [row["kafka_count"] for row in memory.differences().to_pylist()] == [1]


def test_a_restart_ends_the_wait_for_the_emit_interval() -> None:
    rows, clock = a(0, 30, 60), [0, 10, 20]
    waiting = audit_of(GAP_10, rows, retention="1000ms", emit_interval="1000ms", wall_clock=clock)
    assert (waiting.counts()["waiting"], waiting.counts()["as_it_should_be"]) == (2, 0)
    restarted = audit_of(GAP_10, rows, retention="1000ms", emit_interval="1000ms", wall_clock=clock, restarts=[1])
    assert (restarted.counts()["waiting"], restarted.counts()["late"]) == (0, 1)


def test_a_cache_starts_empty() -> None:
    rows = [("a", 0), ("b", 1), ("a", 2)]
    restarted = audit_of(TUMBLING_10, rows, UPDATE, caching=True, restarts=[0, 1])
    assert restarted.is_clean  # each stop commits, so nothing is held back
    assert sum(len(life.changelog()) for life in restarted._lives) == 3


# ---- the cache


def test_a_cache_makes_updates_late() -> None:
    """One commit, at the end: only what the last record updated comes when it could."""
    rows = [("a", 0), ("b", 1), ("a", 2), ("c", 3)]
    cached = audit_of(TUMBLING_10, rows, UPDATE, caching=True)
    assert found(cached) == {"expected": 3, "sent": 3, "as_it_should_be": 1, "late": 2}
    assert [row["key"] for row in cached.differences().to_pylist()] == ["a", "b"]
    assert cached.loses_nothing and not cached.is_clean
    assert cached.safe_retentions_ms == [(10, None)]  # what is late is not lost
    assert cached.words() == [
        "in-memory store, retention 10 ms (Kafka's default): all 3 last values come once, with the right value, 2 of them "
        "late.",
        "This assumes a cache without a limit (Kafka's default is 10 MB) and one commit at the end.",
        "2 results come later than they could: the cache holds them back until a commit.",
    ]
    each = audit_of(TUMBLING_10, rows, UPDATE, caching=True, commit_every=1)
    assert each.is_clean
    # commits after b and after c: b in time, a two records after its last update was flushed with c
    some = audit_of(TUMBLING_10, rows, UPDATE, caching=True, commit_every=2)
    assert [row["key"] for row in some.differences().to_pylist()] == ["a"]
    assert found(some)["late"] == 1


@pytest.mark.parametrize("options", [{}, {"emit_interval": "1s"}], ids=str)
def test_what_the_cache_makes_late_is_not_put_down_to_the_emit_interval(options: dict[str, Any]) -> None:
    """Of updates there are no final results to look for."""
    audit = audit_of(TUMBLING_10, [("a", 0), ("b", 1)], UPDATE, caching=True, **options)
    assert found(audit)["late"] == 1
    assert "0 s of wall clock" not in repr(audit) and "the cache holds them back" in repr(audit)


def test_a_cache_hides_what_the_store_has_forgotten_until_it_evicts_it() -> None:
    """gap 2, grace 3, retention 5: the session at 0 has left the store when the second record at 0 comes."""
    windows, rows = sk.SessionWindows(inactivity_gap_ms=2, grace_ms=3), [("a", 0), ("b", 5), ("a", 0)]
    whole = audit_of(windows, rows, UPDATE, caching=True)
    assert [row["verdict"] for row in whole.table().to_pylist()] == [
        "as it should be",
        "late",
    ]  # b waits for the commit
    one = audit_of(windows, rows, UPDATE, caching="100B")
    assert found(one) == {"expected": 2, "sent": 2, "as_it_should_be": 1, "other_value": 1, "dropped_records": 1}
    assert [(row["key"], row["count"], row["kafka_count"]) for row in one.differences().to_pylist()] == [("a", 2, 1)]
    assert one.words()[2].endswith(
        "and started it again; with the cache on, entries stay readable that the store has expired."
    )


def test_a_cache_keeps_the_finals_of_tumbling_windows() -> None:
    assert audit_of(TUMBLING_10, a(0, 12, 45), caching=True).is_clean
    assert audit_of(GAP_10, a(0, 100), caching=True).counts()["lost"] == 1  # and is off for sessions


def test_a_cache_over_several_partitions() -> None:
    table = table_of([("a", 1), ("b", 2)]).append_column("partition", pa.array([0, 1]))
    plan = group_in_ms("key", timestamp="time", partition="partition").windowed_by(TUMBLING_10).count()
    counts = audit_deployed(plan, table, **{**BARE, "caching": True}).counts()
    assert (counts["lost"], counts["only_in_kafka"]) == (0, 0)


# ---- the emit interval


def test_an_emit_interval_makes_finals_late() -> None:
    """By the wall clock: at 0 Kafka looks, then not before 1 000; both windows come with the last record."""
    options = {"emit_interval": "1s", "wall_clock": [0, 100, 200, 1_000]}
    audit = audit_of(TUMBLING_10_5, a(0, 17, 25, 33), retention="100ms", **options)
    assert found(audit) == {"expected": 2, "sent": 2, "late": 2, "final_but_kept": 2}
    assert audit.loses_nothing and not audit.is_clean
    assert audit.words() == [
        "in-memory store, retention 100 ms: all 2 final results come once, with the right value, late.",
        "This assumes no cache and a check for final results at most every 1 s (Kafka's default), by wall clock.",
        "2 results come later than they could: final results are looked for at most once in 1 s of wall clock, and only "
        "when a record arrives.",
        "At the end the store still holds 2 windows that are final.",
    ]
    default = audit_of(TUMBLING_10_5, a(0, 17, 25, 33), **options)
    assert found(default) == {"expected": 2, "lost": 2}  # by then the store has forgotten both


def test_without_a_wall_clock_records_come_as_fast_as_stream_time() -> None:
    """Looks at 0 and at 25: [0, 10) could have come at 17, [10, 20) comes when it can."""
    audit = audit_of(TUMBLING_10_5, a(0, 17, 25, 33), retention="100ms", emit_interval="20ms")
    assert [row["verdict"] for row in audit.table().to_pylist()] == ["late", "as it should be"]
    assert audit_of(TUMBLING_10_5, a(0, 17, 25, 33), retention="100ms", emit_interval=0).is_clean


def test_a_final_that_waits_when_the_records_end_is_no_retentions_fault() -> None:
    """[0, 10) is in the table of what did not come; no record came at which it could."""
    audit = audit_of(TUMBLING_10_5, a(0, 17), retention="100ms", emit_interval="20ms")
    assert found(audit) == {"expected": 1, "lost": 1, "waiting": 1, "final_but_kept": 1}
    assert audit.loses_nothing and not audit.is_clean
    assert audit.words() == [
        "in-memory store, retention 100 ms: the one final result still waits when the records end.",
        "This assumes no cache and a check for final results at most every 20 ms, by stream time.",
        "1 final result still waits when the records end: Kafka looks for them at most once in 20 ms of stream time, when a "
        "record arrives, and no record came in time.",
        "At the end the store still holds 1 window that is final.",
    ]
    two = audit_of(TUMBLING_10_5, [*a(0), ("b", 3), *a(17)], retention="100ms", emit_interval="20ms")
    assert two.words()[0].endswith("all 2 final results still wait when the records end.")
    assert two.words()[2].startswith("2 final results still wait when the records end")


def test_a_retention_too_short_for_what_waits_loses_it() -> None:
    """At 30 the store in memory has forgotten [0, 10) with a retention of 30, so no look can find it any more."""
    audit = audit_of(TUMBLING_10_5, a(0, 30), emit_interval="1000ms")
    assert (audit.counts()["lost"], audit.counts()["waiting"], audit.loses_nothing) == (1, 0, False)
    assert audit.safe_retentions_ms == [(31, None)]
    assert [audit._replay(ms).counts()["waiting"] for ms in (30, 31)] == [0, 1]


def test_what_the_store_has_forgotten_does_not_wait() -> None:
    """No look comes after the window closed, but a later one would find nothing: 170 has expired both."""
    audit = audit_of(TUMBLING_10, a(0, 6, 170), emit_interval="1000ms")
    counts = audit.counts()
    assert (counts["lost"], counts["waiting"], counts["final_but_kept"]) == (1, 0, 0)
    assert "Why lost" in audit.words()[2]


# ---- verdicts


@pytest.mark.parametrize(("expected", "kafka", "is_sent_again", "verdict"), [
    (Sent(1, (2,), 5), Sent(1, (2,), 5), False, "as it should be"),
    (Sent(1, (2,), 5), Sent(1, (2,), 4), False, "as it should be"), (Sent(1, (2,), 5), Sent(1, (2,), 6), False, "late"),
    (Sent(1, (2,), 5), Sent(1, (3,), 6), False, "other value"),
    (Sent(1, (2, None), 5), Sent(1, (2, 0), 5), False, "other value"),
    (Sent(1, (2,), 5), Sent(2, (3,), 6), False, "sent twice"), (Sent(1, (2,), 5), Sent(1, (2,), 5), True, "sent twice"),
    (Sent(1, (2,), 5), None, False, "lost"), (Sent(1, (2,), 5), None, True, "lost"),
    (None, Sent(1, (2,), 5), False, "only in Kafka"),
])  # fmt: skip
def test_verdicts(expected: Sent | None, kafka: Sent | None, is_sent_again: bool, verdict: str) -> None:
    assert verdict_on(expected, kafka, is_sent_again=is_sent_again) == verdict


@pytest.mark.parametrize("aggregation", [sk.sum("v"), sk.collect("v")], ids=["sum", "list"])
def test_a_value_that_is_not_a_number_is_the_same_on_both_sides(aggregation: Any) -> None:
    table = table_of(a(0)).append_column("v", pa.array([float("nan")]))
    plan = BY_KEY.windowed_by(TUMBLING_10).aggregate(it=aggregation)
    assert audit_deployed(plan, table, **BARE).is_clean


def test_an_aggregate_that_is_an_array() -> None:
    """Any object may come out of Python functions; == of it need not be a truth value."""
    own = sk.aggregation(
        initializer=lambda: np.zeros(2), aggregator=lambda key, value, agg: agg + 1, merger=lambda key, x, y: x + y
    )
    audit = audit_deployed(BY_KEY.windowed_by(TUMBLING_10).aggregate(own=own), table_of(a(0, 1)).to_pandas(), **BARE)
    assert audit.is_clean


STREAMS = st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), max_size=12)
KINDS = st.one_of(
    st.builds(sk.SessionWindows, inactivity_gap_ms=st.integers(1, 8), grace_ms=st.integers(0, 6)),
    st.builds(sk.TimeWindows, size_ms=st.integers(1, 12), grace_ms=st.integers(0, 6)),
    st.builds(sk.SlidingWindows, time_difference_ms=st.integers(1, 8), grace_ms=st.integers(0, 6)),
)


@settings(max_examples=fewer(40))
@given(KINDS, STREAMS, st.sampled_from([CLOSE, UPDATE]))
def test_the_cure_loses_nothing_and_1_ms_less_loses_something(
    windows: Any, rows: list[tuple[str, int]], emit: str
) -> None:
    audit = audit_of(windows, rows, emit)
    smallest = audit.smallest_retention_ms
    assert smallest is not None
    if audit.loses_nothing:
        assert smallest == windows.retention_ms(None)
    else:
        assert audit._replay(smallest).loses_nothing
        assert not audit._replay(smallest - 1).loses_nothing


@settings(max_examples=fewer(30))
@given(KINDS, STREAMS, st.booleans(), st.sampled_from([0, 5, 20]))
def test_finals_are_compared_window_by_window(
    windows: Any, rows: list[tuple[str, int]], caching: bool, interval: int
) -> None:
    """With the two changelogs side by side; a session that was re-opened is another window, larger."""
    audit = audit_of(windows, rows, CLOSE, caching=caching, emit_interval=in_ms(interval))

    def sent(run: sk.Run) -> dict[Any, list[tuple[int, int]]]:
        by_window: dict[Any, list[tuple[int, int]]] = {}
        for row in run.changelog().to_pylist():
            id = (row["key"], row["window_start_ms"], row["window_end_ms"])
            by_window.setdefault(id, []).append((row["count"], row["offset"]))
        return by_window

    plan, table = BY_KEY.windowed_by(windows).emit(CLOSE).count(), table_of(rows)
    clock = plan.run(table).trace.stream_time_ms.tolist()
    right = sent(plan.run(table))
    kafka = sent(run_deployed(plan, table, caching=caching, emit_interval=in_ms(interval), wall_clock=clock))
    counts = audit.counts()
    assert counts["lost"] == len(right.keys() - kafka.keys())
    assert counts["only_in_kafka"] == len(kafka.keys() - right.keys())
    both = [(right[id][-1], kafka[id]) for id in right.keys() & kafka.keys()]
    assert counts["other_value"] == sum(one[0] != other[-1][0] for one, other in both if len(other) == 1)
    assert counts["sent_twice"] == sum(len(other) > 1 for _, other in both)


# ---- a month of flights


FLIGHTS = sk.load_sample("flights").head(3_000)
DEPARTURES = flights_by_route(group_in_ms)


@pytest.fixture(scope="module")
def sessions() -> sk.Audit:
    """Sessions of departures with the default retention of Kafka's store in memory."""
    windows = sk.SessionWindows(inactivity_gap="1h", grace="30m")
    return audit_deployed(DEPARTURES.windowed_by(windows).emit(CLOSE).count(), FLIGHTS, **BARE)


@pytest.mark.slow
def test_no_session_of_the_flights_is_ever_final(sessions: sk.Audit) -> None:
    finals = len(sessions.expected.changelog())
    assert finals > 300
    counts = sessions.counts()
    assert (counts["expected"], counts["lost"], counts["sent"]) == (finals, finals, 0)
    assert sessions.words()[0] == (
        f"in-memory store, retention 1 h 30 min (Kafka's default): nothing comes out. All {finals:,} final results are lost."
    )


@pytest.mark.compiled
def test_the_cure_of_the_flights(sessions: sk.Audit) -> None:
    assert sessions.cure is not None
    counts = sessions.cure.counts()
    assert counts["as_it_should_be"] + counts["sent_twice"] == counts["expected"]
    assert (counts["lost"], counts["other_value"], counts["only_in_kafka"], counts["late"]) == (0, 0, 0, 0)
    smallest = sessions.smallest_retention_ms
    assert smallest is not None
    assert sessions._replay(smallest - 1).counts()["lost"] > 0
    assert f"Materialized.withRetention({java_duration(smallest)})" in repr(sessions)


def test_tumbling_windows_of_the_flights() -> None:
    """Retention 90 minutes is no multiple of the size, and few records jump further: few results are lost."""
    windows = sk.TimeWindows(size="1h", grace="30m")
    audit = audit_deployed(DEPARTURES.windowed_by(windows).emit(CLOSE).count(), FLIGHTS, **BARE)
    check_sums(audit)
    counts = audit.counts()
    assert 0 < counts["lost"] < counts["as_it_should_be"]
    assert counts["lost"] + counts["as_it_should_be"] == counts["expected"]
    assert set(audit.differences()["verdict"]) == {"lost"}
    # a window is lost when its end + grace and the next full hour pass with no record in between
    starts = FLIGHTS["scheduled"].to_numpy().astype("datetime64[ms]").astype(np.int64)
    stream = np.maximum.accumulate(starts)
    lost = 0
    for end in audit.table()["window_end_ms"].tolist():
        closing = stream[np.searchsorted(stream, end + 30 * 60_000)]
        lost += int(closing // 3_600_000 * 3_600_000 >= end + 30 * 60_000)
    assert lost == counts["lost"]


# ---- how it is shown


WRONG = a(0, 12, 45)


def test_it_shows_itself() -> None:
    audit = audit_of(TUMBLING_10, WRONG)
    first, *rest = audit.words()
    assert repr(audit) == "\n".join([first, *rest])
    shown = audit._repr_mimebundle_()
    assert shown["text/plain"] == repr(audit)
    assert "in-memory store, retention 10 ms (Kafka" in json.dumps(audit.figure().to_dict(), default=str)
    assert len(rest) == 3
    assert "Final results are read from the store" in shown["text/plain"]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.Table])
def test_tables_are_frames_of_the_kind_that_was_given(frame: Any) -> None:
    table = table_of(WRONG)
    data = {pd.DataFrame: table.to_pandas, pl.DataFrame: lambda: pl.from_arrow(table), pa.Table: lambda: table}[frame]()
    audit = audit_deployed(BY_KEY.windowed_by(TUMBLING_10).emit(CLOSE).aggregate(n=sk.count()), data, **BARE)
    for view, rows in ((audit.table(), 2), (audit.differences(), 2)):
        assert isinstance(view, frame)
        assert len(view) == rows
        names = list(getattr(view, "column_names", getattr(view, "columns", [])))
        columns = ["key", "window_start_ms", "window_end_ms", "verdict", "sent_count", "partition", "n", "kafka_n"]
        assert names == columns


def test_windows_are_in_order_of_partition_and_end() -> None:
    table = pa.table({"key": ["b", "a", "a", "b"], "time": [5, 3, 30, 30], "partition": [0, 1, 1, 0]})
    plan = group_in_ms("key", timestamp="time", partition="partition").windowed_by(TUMBLING_10).count()
    rows = audit_deployed(plan, table, **BARE).table().to_pylist()
    assert [(row["partition"], row["key"], row["window_end_ms"]) for row in rows] == [
        (0, "b", 10),
        (0, "b", 40),
        (1, "a", 10),
        (1, "a", 40),
    ]


MIXED = [("a", 0), ("b", 5), ("a", 0), ("b", 20), ("c", 25), ("a", 24)]


def test_a_figure_has_bars_for_each_verdict_with_the_same_totals() -> None:
    audit = audit_of(sk.SessionWindows(inactivity_gap_ms=2, grace_ms=3), MIXED, UPDATE)
    counts = audit.counts()
    assert counts["other_value"] and counts["as_it_should_be"]
    for theme in ("light", "dark"):
        figure = audit.figure(theme=theme)  # type: ignore[arg-type]
        assert {trace.type for trace in figure.data} == {"bar"}
        bars = {trace.name: int(np.sum(trace.y)) for trace in figure.data}
        assert bars == {
            f"{name.replace('_', ' ').replace('kafka', 'Kafka')} ({counts[name]:,})": counts[name]
            for name in VERDICTS
            if counts[name]
        }
    with pytest.raises(InvalidArgument, match="theme must be a known choice; got 'pink'"):
        audit.figure(theme="pink")  # type: ignore[arg-type]


def test_every_verdict_has_bars_of_its_own(sessions: sk.Audit) -> None:
    """Of many windows, too, with a bar for each step of time."""
    assert sessions.cure is not None
    counts = sessions.cure.counts()
    figure = sessions.cure.figure()
    totals = [int(np.sum(trace.y)) for trace in figure.data]
    assert totals == [counts["as_it_should_be"], counts["sent_twice"]]
    assert all(len(trace.x) == len(set(trace.x)) > 10 for trace in figure.data)
    assert len({trace.marker.pattern.shape for trace in figure.data}) == 2  # told apart without colour
    lost = sessions.figure().data
    assert [trace.name for trace in lost] == [f"lost ({counts['expected']:,})"]


def test_a_figure_of_nothing() -> None:
    assert len(audit_of(TUMBLING_10, []).figure().data) == 0


PAYLOAD = "<img src=x onerror=alert(1)>$\\href{javascript:alert(1)}{x}$"


def _texts(node: Any) -> list[str]:
    if isinstance(node, dict):
        return [text for each in node.items() for text in _texts(list(each))]
    if isinstance(node, list):
        return [text for each in node for text in _texts(each)]
    return [node] if isinstance(node, str) else []


def test_what_is_shown_is_escaped() -> None:
    """Keys and names of columns are markup here; and the words' own quotation marks are escaped in HTML."""
    table = table_of([(PAYLOAD, 0), (PAYLOAD, 12), (PAYLOAD, 45)]).append_column(PAYLOAD, pa.array([1, 2, 3]))
    plan = BY_KEY.windowed_by(TUMBLING_10).emit(CLOSE).aggregate(**{PAYLOAD: sk.sum(PAYLOAD)})
    audit = audit_deployed(plan, table, **BARE)
    assert audit.table()[PAYLOAD].to_pylist() == [1, 2]
    texts = _texts(json.loads(audit.figure().to_json()))
    assert not [text for text in texts if "onerror" in text or "href" in text]
    tags = {tag for text in texts for tag in re.findall(r"<(\w+)", text)}
    assert tags <= {"b", "br", "extra", "span", "sup"}


# ---- what is refused


@pytest.mark.parametrize(
    ("options", "telling"),
    [
        ({"retention": "9ms"}, "retention must cover the windows; got 9 ms; at least size + grace = 10 ms"),
        ({"restarts": [len(WRONG)]}, f"the task is started again; got ({len(WRONG)},); increasing numbers from 0 to"),
    ],
)
def test_audits_that_are_refused(options: dict[str, Any], telling: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        audit_of(TUMBLING_10, WRONG, **options)
    assert telling in str(caught.value)


def test_plans_that_are_refused() -> None:
    table = table_of(WRONG)
    with pytest.raises(InvalidArgument, match="the plan has no aggregation"):
        sk.audit(BY_KEY.windowed_by(TUMBLING_10), table)
    with pytest.raises(InvalidArgument, match="the plan has no windows"):
        sk.audit(BY_KEY.count(), table)
    trailing = sk.SlidingWindows(time_difference_ms=5, grace=0, trailing_only=True)
    with pytest.raises(NotBuilt, match="Kafka has no trailing-only windows"):
        sk.audit(BY_KEY.windowed_by(trailing).emit(CLOSE).count(), table)


def test_what_a_function_of_python_aggregates_can_wait_behind_a_cache() -> None:
    """Kernels do not play it, so its looks are not told by columns: it was called lost, for good."""
    own = sk.aggregation(
        initializer=int, aggregator=lambda key, value, count: count + 1, merger=lambda key, a, b: a + b, value="time"
    )
    table = pa.table({"key": ["a", "b", "a", "a", "a"], "time": pa.array([0, 1, 9_000, 20_000, 20_100], pa.int64())})
    windows = sk.TimeWindows(size="5s", grace="0s")
    grouped = group_in_ms("key", timestamp="time").windowed_by(windows).emit("on_window_close")
    for aggregation in (own, sk.count()):
        audit = sk.audit(grouped.aggregate(n=aggregation), table, sk.Deployment(emit_interval="1m"))
        assert (audit.counts()["waiting"], audit.counts()["lost"]) == (3, 3)
