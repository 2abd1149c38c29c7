"""What an audit supposes where it is told nothing: Kafka's own defaults, named one by one, and a clock for both intervals."""

# ruff: noqa: E501 - sentences are easier to compare in one piece

import html
from itertools import count
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.audits.settings import settings_of
from sessionkit.errors import InvalidArgument, NotBuilt
from tests.deployments import audit_deployed, run_deployed
from tests.kinds import group_in_ms

CLOSE, UPDATE = "on_window_close", "on_window_update"
BY_KEY = group_in_ms("key", timestamp="time", partition="partition")
SESSIONS = sk.SessionWindows(inactivity_gap="1s", grace="0s")
TUMBLING = sk.TimeWindows(size="10s", grace="0s")
SLIDING = sk.SlidingWindows(time_difference="5s", grace="0s")
SPELLED_OUT: dict[str, Any] = {"store": "rocksdb", "caching": "10MB", "commit_interval": "30s", "emit_interval": "1s"}

Rows = list[tuple[str | None, int]]


def table_of(rows: Rows, partitions: list[int] | None = None) -> pa.Table:
    key, time = zip(*rows, strict=True)
    number = pa.array(partitions or [0] * len(rows), pa.int64())
    return pa.table({"key": pa.array(key, pa.string()), "time": pa.array(time, pa.int64()), "partition": number})


def audit_of(windows: Any, rows: Rows, emit: str = UPDATE, **options: Any) -> sk.Audit:
    return audit_deployed(BY_KEY.windowed_by(windows).emit(emit).count(), table_of(rows), **options)


def stream_of(seed: int) -> Rows:
    """Records of some minutes, every fifth of them out of order."""
    rng, now, rows = Random(seed), 50_000, []
    for _ in range(120):
        now += rng.choice([0, 200, 900, 1_500, 4_000, 31_000])
        rows.append((rng.choice("abc"), max(0, now - rng.choice([0, 0, 0, 0, 7_000]))))
    return rows


# ---- the defaults


@pytest.mark.thorough
@pytest.mark.compiled
@pytest.mark.parametrize("emit", [CLOSE, UPDATE])
@pytest.mark.parametrize("windows", [SESSIONS, TUMBLING, SLIDING])
def test_nothing_said_is_all_of_kafkas_defaults_said(windows: Any, emit: str) -> None:
    rows = stream_of(1)
    plain, told = audit_of(windows, rows, emit), audit_of(windows, rows, emit, **SPELLED_OUT)
    assert plain.counts() == told.counts()
    assert plain.table().equals(told.table())
    assert plain.words() == told.words()
    assert (
        plain.counts() == audit_of(windows, rows, emit, retention="10s" if windows is not SESSIONS else "1s").counts()
    )
    changed = [{"store": "memory"}, {"caching": False}, {"commit_interval": "1s"}, {"emit_interval": "40s"}]
    counts = [audit_of(windows, rows, emit, **each).words() for each in changed]
    is_cached = emit == UPDATE or windows is TUMBLING
    told_apart = [True, True, is_cached, emit == CLOSE]  # what has no effect is not named
    assert [words != plain.words() for words in counts] == told_apart


def test_it_names_each_and_says_whose_it_is() -> None:
    rows = [("a", 0), ("a", 12_000), ("a", 25_000)]
    assert audit_of(TUMBLING, rows, CLOSE).words()[:2] == [
        "RocksDB store, retention 10 s (both Kafka's defaults): all 2 final results come once, in time, with the right value.",
        "This assumes a cache of 10MB (Kafka's default), a commit every 30 s (Kafka's default) and a check for final results at most every 1 s (Kafka's default), both by stream time.",
    ]
    told: dict[str, Any] = {"store": "memory", "retention": "1m", "caching": "300 B", "commit_interval": "5s"}
    assert audit_of(TUMBLING, rows, CLOSE, **told, emit_interval="2s", wall_clock=[0, 0, 0]).words()[:2] == [
        "in-memory store, retention 1 min: all 2 final results still wait when the records end.",
        "This assumes a cache of 300B, a commit every 5 s and a check for final results at most every 2 s, both by wall clock.",
    ]
    assert (
        audit_of(TUMBLING, rows, CLOSE, retention="1m")
        .words()[0]
        .startswith("RocksDB store (Kafka's default), retention 1 min: ")
    )
    assert (
        audit_of(TUMBLING, rows, CLOSE, store="memory")
        .words()[0]
        .startswith("in-memory store, retention 10 s (Kafka's default): ")
    )


@pytest.mark.parametrize(
    ("windows", "emit", "options", "supposed"),
    [
        (SESSIONS, CLOSE, {}, "no cache (Kafka turns it off for these windows on close) and a check for final results at most every 1 s (Kafka's default), by stream time"),
        (SLIDING, CLOSE, {"caching": False, "emit_interval": None}, "no cache and a check for final results at each record"),
        (SESSIONS, UPDATE, {}, "a cache of 10MB (Kafka's default) and a commit every 30 s (Kafka's default), by stream time"),
        (SESSIONS, UPDATE, {"caching": False}, "no cache"),
        (SESSIONS, UPDATE, {"caching": "100B", "commit_interval": None}, "a cache of 100B and one commit at the end"),
        (SESSIONS, UPDATE, {"commit_every": 1}, "a cache of 10MB (Kafka's default) and a commit after each record"),
        (SESSIONS, UPDATE, {"commit_every": 7}, "a cache of 10MB (Kafka's default) and a commit after every 7 records"),
        (SESSIONS, UPDATE, {"commit_every": [1]}, "a cache of 10MB (Kafka's default) and a commit after 1 record that is given"),
        (SESSIONS, UPDATE, {"commit_every": [0, 1]}, "a cache of 10MB (Kafka's default) and a commit after 2 records that are given"),
        (SESSIONS, UPDATE, {"wall_clock": [0, 1]}, "a cache of 10MB (Kafka's default) and a commit every 30 s (Kafka's default), by wall clock"),
        (TUMBLING, CLOSE, {"emit_interval": "0s"}, "a cache of 10MB (Kafka's default), a commit every 30 s (Kafka's default) and a check for final results at each record, by stream time"),
    ],
)  # fmt: skip
def test_what_has_no_effect_is_not_supposed(windows: Any, emit: str, options: dict[str, Any], supposed: str) -> None:
    assert audit_of(windows, [("a", 0), ("a", 1)], emit, **options).words()[1] == f"This assumes {supposed}."


def test_the_figure_and_the_page_say_it_too() -> None:
    audit = audit_of(SESSIONS, [("a", 1_000), ("a", 5_000), ("a", 10_000)], CLOSE)
    texts = html.unescape(str(audit.figure().to_dict()))
    assert "RocksDB store, retention 1 s (both Kafka's defaults)" in texts
    assert "This assumes no cache" in texts
    assert "This assumes no cache" in repr(audit)


def test_the_headline_is_that_of_kafkas_own_store() -> None:
    """In memory all sessions are lost, whatever comes: that is no finding for who runs Kafka's default store."""
    rows: Rows = [("a", 1_000), ("a", 5_000), ("a", 10_000)]
    default, memory = audit_of(SESSIONS, rows, CLOSE), audit_of(SESSIONS, rows, CLOSE, store="memory")
    assert (default.counts()["lost"], memory.counts()["lost"]) == (0, 2)
    assert default.words()[0].endswith("all 2 final results come once, in time, with the right value.")
    assert memory.words()[0].endswith("nothing comes out. All 2 final results are lost.")


# ---- commits by a clock

BY_HAND: Rows = [("a", 1_000), ("b", 11_000), ("a", 31_000), ("b", 31_001), ("a", 40_000), ("a", 61_001), ("b", 61_002), ("a", 99_000)]  # fmt: skip


def commits_of(audit: sk.Audit) -> set[int]:
    """The records after which something was flushed."""
    return {row["offset"] for life in audit._lives for row in life.changelog().to_pylist()}


def test_a_commit_comes_after_the_first_record_more_than_the_interval_later() -> None:
    """The clock starts at 1 000: 31 000 is just 30 s on, 31 001 more. So is 61 002 after that, and 99 000 after that."""
    audit = audit_of(sk.TimeWindows(size="10m", grace="0s"), BY_HAND)
    assert [(row["key"], row["offset"], row["count"]) for row in audit._lives[0].changelog().to_pylist()] == [
        ("a", 3, 2),
        ("b", 3, 2),
        ("a", 6, 4),
        ("b", 6, 3),
        ("a", 7, 5),
    ]
    assert audit.counts()["late"] == 0  # the last update of each is also the last record of its commit
    by_rows = audit_of(sk.TimeWindows(size="10m", grace="0s"), BY_HAND, commit_every=[3, 6, 7])
    assert by_rows._lives[0].changelog(old_values=True).equals(audit._lives[0].changelog(old_values=True))
    assert by_rows.counts() == audit.counts()


@pytest.mark.compiled
@pytest.mark.parametrize("windows", [SESSIONS, TUMBLING, SLIDING])
def test_an_interval_is_as_good_as_its_rows(windows: Any) -> None:
    for seed in range(6):
        rows, clock, last, commits = stream_of(seed), -1, 0, []
        for row, (_, time) in enumerate(rows):
            clock = max(clock, time)
            last = clock if row == 0 else last
            if clock > last + 2_000:
                commits.append(row)
                last = clock
        assert len(commits) > 10
        by_clock, by_rows = audit_of(windows, rows, commit_interval="2s"), audit_of(windows, rows, commit_every=commits)
        assert by_clock._lives[0].changelog().equals(by_rows._lives[0].changelog())
        assert by_clock.counts() == by_rows.counts()


def test_commit_every_replaces_the_interval_and_none_leaves_one_commit() -> None:
    long = sk.TimeWindows(size="10m", grace="0s")
    assert commits_of(audit_of(long, BY_HAND)) == {3, 6, 7}
    assert commits_of(audit_of(long, BY_HAND, commit_every=4)) == {3, 7}
    assert commits_of(audit_of(long, BY_HAND, commit_every=4, commit_interval="1ms")) == {3, 7}
    assert commits_of(audit_of(long, BY_HAND, commit_interval=None)) == {7}
    assert commits_of(audit_of(long, BY_HAND, commit_interval="0s")) == set(range(1, 8))


def test_commits_go_by_a_wall_clock_that_is_given() -> None:
    long = sk.TimeWindows(size="10m", grace="0s")
    by_clock = audit_of(long, BY_HAND, wall_clock=[0, 0, 0, 0, 30_000, 30_001, 30_002, 30_003])
    assert commits_of(by_clock) == {5, 7}
    ticking = count(5, 10_001)
    assert commits_of(audit_of(long, BY_HAND, wall_clock=lambda: next(ticking))) == {3, 6, 7}


def test_one_clock_for_all_partitions_starts_with_the_first_time() -> None:
    """A record without a key moves no stream time; partition 1 lags behind, and what it reads is no time of the task."""
    rows: Rows = [
        (None, 5), ("a", 1_000_000), ("b", 10), ("a", 1_030_000), ("b", 990_000), ("a", 1_030_001), ("b", 60_000),
    ]  # fmt: skip
    table = table_of(rows, [0, 0, 1, 0, 1, 0, 1])
    plan = BY_KEY.windowed_by(sk.TimeWindows(size="1h", grace="0s")).emit(UPDATE).count()
    assert [(r["key"], r["offset"]) for r in sk.audit(plan, table)._lives[0].changelog().to_pylist()] == [
        *[("a", 3), ("b", 1)],  # after row 5: offsets 3 and 1 of the partitions
        ("b", 2),
    ]


def test_after_a_restart_the_clock_starts_anew() -> None:
    """The stop commits; 40 000 begins a life, and 61 001 is 21 s later: no commit until 99 000."""
    audit = audit_of(sk.TimeWindows(size="10m", grace="0s"), BY_HAND, restarts=[3])
    assert commits_of(audit) == {3, 7}


def test_nothing_commits_where_there_are_no_records() -> None:
    table = table_of([("a", 0)]).slice(0, 0)
    assert sk.audit(BY_KEY.windowed_by(TUMBLING).count(), table).is_clean


# ---- a cache without a limit, behind which the store is not read


FORGETFUL = sk.aggregation(
    initializer=lambda: 0,
    aggregator=lambda key, value, aggregate: None if aggregate == 2 else (aggregate or 0) + 1,
    merger=lambda key, older, newer: (older or 0) + (newer or 0),
)


@pytest.mark.thorough
@pytest.mark.compiled
@pytest.mark.parametrize("aggregation", [sk.count(), FORGETFUL], ids=["count", "null"])
@pytest.mark.parametrize("emit", [UPDATE, CLOSE])
@pytest.mark.parametrize("windows", [SESSIONS, TUMBLING, SLIDING, sk.TimeWindows(size="9s", advance="4s", grace="20s")])
def test_it_does_what_a_run_under_kafkas_rules_does(windows: Any, emit: str, aggregation: Any) -> None:
    """Though the processor of a run reads its store, and that of an audit finds all in the cache."""
    plan = BY_KEY.windowed_by(windows).emit(emit).aggregate(n=aggregation)
    for seed in range(2):
        rows = stream_of(seed)
        table, commits = table_of(rows), list(range(6, len(rows), 7))
        options: dict[str, Any] = {"caching": True, "commit_every": commits}
        for retention in (windows.retention_ms(None), 40_000, 3_600_000):
            audit = audit_deployed(
                plan, table, store="memory", emit_interval="0s", retention=f"{retention}ms", **options
            )
            run = run_deployed(plan, table, retention=f"{retention}ms", **options)
            assert audit._lives[0].changelog().equals(run.changelog())
            assert audit._lives[0].metrics() == run.metrics()


# ---- what is refused


@pytest.mark.parametrize("caching", [10_485_760, 0, 3])
def test_a_cache_without_a_unit_is_refused(caching: Any) -> None:
    """Kafka's own number is one of bytes; it was taken for ten million entries."""
    with pytest.raises(
        InvalidArgument, match=rf'a cache needs a unit; got caching={caching}; .*"{caching} B" or "10MB"'
    ):
        audit_of(SESSIONS, [("a", 0)], caching=caching)


def starts_of(restarts: Any, count: int) -> Any:
    plan = BY_KEY.windowed_by(TUMBLING).count()
    return settings_of(plan, sk.Deployment(restarts=restarts), count).starts


def test_lives_begin_behind_the_rows_of_restarts() -> None:
    assert starts_of([], 10) == [0]
    assert starts_of([0, (4, "disk"), 9], 10) == [0, 1, 5, 10]


@pytest.mark.parametrize("rows", [[-1], [10], [3, 3], [4, 2], [1.5], ["a"], 3, [3, (4, "burnt")]])
def test_restarts_are_rising_rows(rows: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"restarts must list the rows .* from 0|the kind of a restart"):
        starts_of(rows, 10)


def test_an_audit_names_the_kinds_of_restarts_that_it_does_not_replay() -> None:
    """NumPy's ValueError about an inhomogeneous shape before."""
    with pytest.raises(
        NotBuilt, match=r"starts an application again on the same disk; got \(1, 'killed'\); .*plan\.run"
    ):
        audit_of(SESSIONS, [("a", 0), ("a", 1)], restarts=[0, (1, "killed")])
