"""Suppress by hand-made records: what goes out, when, and what is refused."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import sessionkit as sk
from sessionkit.errors import BufferFull, InvalidArgument, NotBuilt, NotKept
from sessionkit.stores.sizes import value_bytes
from sessionkit.suppression.stage import FIXED_BYTES, ranks_of_windows, windowed_key
from tests.deployments import run_by
from tests.kinds import EACH_KIND, plan_of, shown_in_ms

SESSIONS = sk.SessionWindows(inactivity_gap_ms=10, grace_ms=5)
RULES = ["sessionkit", "kafka"]


def sent(plan: sk.Plan, *times: int, rules: str = "sessionkit", key: str = "a") -> list[tuple[Any, ...]]:
    """(offset, what, start, end, count) of all that goes out."""
    names = ["offset", "what", "window_start_ms", "window_end_ms", "count"]
    table = pa.table({"key": [key] * len(times), "at": times})
    rows = run_by(
        plan, table, rules=rules, retention="1h"
    ).changelog()  # a store that expires forgets what could come twice
    return [tuple(row.values()) for row in rows.select(names).to_pylist()]


@pytest.mark.parametrize("rules", RULES)
def test_a_final_of_a_session_can_come_twice(rules: str) -> None:
    """The buffer lets go of a session one millisecond before the operator closes it (seen in Kafka Streams 4.3.1)."""
    plan = plan_of(SESSIONS).suppress("until_window_closes")
    assert sent(plan, 20, 35, rules=rules) == [(1, "final", 20, 20, 1)]
    again = [(1, "final", 20, 20, 1), (2, "final", 20, 20, 2)]
    assert sent(plan, 20, 35, 20, rules=rules) == again
    grown = sent(plan, 20, 35, 25, 60, rules=rules)
    assert grown == [(1, "final", 20, 20, 1), (3, "final", 20, 35, 3)]  # and nothing is withdrawn


@pytest.mark.parametrize("rules", RULES)
def test_only_results_move_its_clock(rules: str) -> None:
    plan = plan_of(sk.TimeWindows(size_ms=10, grace_ms=0)).suppress("until_window_closes")
    assert sent(plan, 3, 12, rules=rules) == [(1, "final", 0, 10, 1)]
    table = pa.table({"key": ["a", None, "a"], "at": [3, 50, 4]})
    assert run_by(plan, table, rules=rules).changelog().num_rows == 0


@pytest.mark.parametrize("rules", RULES)
def test_a_time_limit_sends_the_newest_update(rules: str) -> None:
    plan = plan_of(sk.TimeWindows(size_ms=100, grace_ms=0)).suppress("until_time_limit", "10ms")
    assert sent(plan, 0, 4, 9, 10, 12, 22, rules=rules) == [(3, "update", 0, 100, 4), (5, "update", 0, 100, 6)]


@pytest.mark.parametrize("rules", RULES)
def test_a_time_limit_sends_tombstones(rules: str) -> None:
    plan = plan_of(SESSIONS).suppress("until_time_limit", 0)
    found = sent(plan, 0, 5, rules=rules)
    assert found == [(0, "update", 0, 0, 1), (1, "tombstone", 0, 0, None), (1, "update", 0, 5, 2)]


@pytest.mark.parametrize("rules", RULES)
def test_a_full_buffer_sends_the_oldest_early(rules: str) -> None:
    plan = plan_of(sk.TimeWindows(size_ms=10, grace_ms=1_000)).suppress("until_time_limit", "1h", max_records=1)
    assert sent(plan, 3, 14, 5, rules=rules) == [(1, "update", 0, 10, 1), (2, "update", 0, 10, 2)]


@pytest.mark.parametrize("rules", RULES)
def test_a_full_buffer_stops_the_run(rules: str) -> None:
    plan = plan_of(sk.TimeWindows(size_ms=10, grace_ms=1_000)).suppress("until_window_closes", max_records=2)
    assert sent(plan, 3, 14, 5, rules=rules) == []
    telling = "suppress is full at partition 0, offset 2, with max_records=2; got 3 results; more room"
    with pytest.raises(BufferFull, match=telling):
        sent(plan, 3, 14, 25, rules=rules)


@pytest.mark.parametrize("kind", EACH_KIND)
@pytest.mark.parametrize("rules", RULES)
def test_what_an_entry_weighs(kind: str, rules: str) -> None:
    """Kafka: 8 bytes for its time, the windowed key, the value, and 20 with the topic's name for its record."""
    plan = plan_of(EACH_KIND[kind]).suppress("until_window_closes")
    buffer = run_by(plan, pa.table({"key": ["é"], "at": [100]}), rules=rules).suppress_buffer()
    times, began_with = (16, 0) if kind == "session" else (8, 8)  # a new window replaces the 0 that it began with
    count = len(buffer.table())
    assert buffer.most_records == count
    assert buffer.most_bytes == count * (8 + (2 + times) + 8 + began_with + 20 + len("input"))


def test_what_values_weigh() -> None:
    values = [None, 7, 2.5, "é", b"abc", True, [1, 2], {"n": 1, "word": "é"}]
    assert [value_bytes(value) for value in values] == [0, 8, 8, 2, 3, 4, 5, 19]
    assert FIXED_BYTES == 33


@pytest.mark.parametrize(
    ("aggregation", "size"), [(sk.min("n"), 108), (sk.sum("n"), 124), (sk.count(), 124), (sk.last("n"), 108)]
)
def test_old_values_weigh_too(aggregation: Any, size: int) -> None:
    """Two windows of key d, the second with two records: what Kafka Streams 4.3.1 counts, found by trying each size."""
    plan = plan_of(sk.TimeWindows(size_ms=2, grace_ms=100), named={"value": aggregation})
    table = pa.table({"key": ["d", "d", "d"], "at": [2, 24, 24], "n": [7, 5, 8]})
    plan.suppress("until_window_closes", max_bytes=size).run(table)
    with pytest.raises(BufferFull, match=f"got 2 results of {size} bytes"):
        plan.suppress("until_window_closes", max_bytes=size - 1).run(table)


@pytest.mark.parametrize("holds", ["windows", "sessions"])
@pytest.mark.parametrize(
    "keys", [["a", "", "ab", "b", "a!"], ["a", "a\0", "ab", "\0", "a\0\0\0"], [3, -1, 0, 2**62, -(2**63)]]
)
@pytest.mark.parametrize("latest", [9, 2**40, 2**60])
def test_windowed_keys_are_sorted_by_their_bytes(keys: list[Any], holds: str, latest: int) -> None:
    """Also where a key goes on with bytes that a time could begin with."""
    rng = np.random.default_rng(latest)
    code, start = rng.integers(0, len(keys), 60), rng.integers(0, latest, 60)
    end = start + rng.integers(0, 5, 60)
    raw = [windowed_key(keys[c], int(s), int(e), holds) for c, s, e in zip(code, start, end, strict=True)]
    ranks = ranks_of_windows(pa.array(keys), code, start, end, holds)
    assert [raw[row] for row in np.argsort(ranks)] == sorted(raw)


def test_the_buffer_shows_what_waits() -> None:
    plan = plan_of(SESSIONS).suppress("until_window_closes")
    buffer = plan.run(pa.table({"key": ["a", "<b>"], "at": [20, 21]})).suppress_buffer()
    assert str(buffer) == "buffer of suppress: 2 results wait; no partition held more than 2 at once"
    assert "2 results wait" in buffer._repr_html_()
    assert buffer.table()["key"].to_pylist() == ["a", "<b>"]
    none = plan.run(pa.table({"key": pa.array([], pa.string()), "at": pa.array([], pa.int64())}))
    assert (len(none.changelog()), str(none.suppress_buffer())[:35]) == (0, "buffer of suppress: 0 results wait;")


def test_what_went_downstream_for_a_key() -> None:
    """The results of other keys move the clock, so the whole run is asked."""
    plan = plan_of(sk.TimeWindows(size_ms=10, grace_ms=0)).suppress("until_window_closes")
    run = plan.run(pa.table({"key": ["a", "b", "a"], "at": [3, 12, 13]}))
    table = run.emissions("a").table()
    assert table["what"].to_pylist() == ["final", "pending"]
    assert table["offset"].to_pylist() == [1, 2]
    assert "1 final result went downstream. With on_window_update it would have been 2 updates." in str(
        run.emissions("a")
    )


def test_the_plan_as_code() -> None:
    plan = plan_of(SESSIONS)
    written = [
        (plan.suppress("until_window_closes"), '.suppress("until_window_closes")'),
        (plan.suppress("until_window_closes", max_bytes=9), '.suppress("until_window_closes", max_bytes=9)'),
        (
            plan.suppress("until_time_limit", "90s", max_records=0, when_full="shut_down"),
            '.suppress("until_time_limit", "1m30s", max_records=0, when_full="shut_down")',
        ),
    ]
    for each, line in written:
        assert each.code()[-1] == line
        assert shown_in_ms(eval(repr(each), {"sk": sk})) == each  # noqa: S307


def test_what_is_always_so_may_be_said() -> None:
    """Kafka's shutDownWhenFull of untilWindowCloses was refused."""
    plan = plan_of(SESSIONS)
    assert plan.suppress("until_window_closes", when_full="shut_down") == plan.suppress("until_window_closes")


@pytest.mark.parametrize(("arguments", "options", "telling"), [
    (("for ever",), {}, "suppress must be a known choice"),
    (("until_window_closes", "1s"), {}, "has no time; got '1s'"), (("until_time_limit",), {}, "has a time; got None"),
    (("until_time_limit", -1), {}, "wait"),
    (("until_window_closes",), {"when_full": "emit_early"}, "shuts down when it is full"),
    (("until_time_limit", "1s"), {"when_full": "wait"}, "when_full must be a known choice"),
    (("until_window_closes",), {"max_records": -1}, "max_records is no size; got -1"),
    (("until_window_closes",), {"max_bytes": 1.5}, "max_bytes is no size; got 1.5"),
    (("until_window_closes",), {"max_bytes": True}, "max_bytes is no size; got True"),
    (("until_window_closes",), {"most": 1}, "suppress cannot be called like this"),
])  # fmt: skip
def test_what_cannot_be_said(arguments: Any, options: dict[str, Any], telling: str) -> None:
    with pytest.raises(InvalidArgument, match=telling):
        plan_of(SESSIONS).suppress(*arguments, **options)


def test_what_does_not_go_together() -> None:
    table = pa.table({"key": ["a"], "at": [1]})
    plan = plan_of(SESSIONS).suppress("until_window_closes")
    with pytest.raises(InvalidArgument, match="final results need no suppress"):
        plan.emit("on_window_close").run(table)
    never = sk.SessionWindows.until(inactivity_gap_ms=5, retention_ms=60_000)
    with pytest.raises(InvalidArgument, match="these windows never close"):
        plan.windowed_by(never).run(table)
    assert plan.windowed_by(never).suppress("until_time_limit", 0).run(table).changelog().num_rows == 1
    with pytest.raises(NotBuilt, match="results that wait end with the run"):
        plan.run(table, store=sk.open_store("memory", "s"))
    with pytest.raises(InvalidArgument, match="a run of some keys stands by itself; got suppress"):
        plan.run(table, keys=["a"])
    with pytest.raises(NotKept):
        plan.suppress("until_window_closes", max_records=1).run(table, trace=False)
    with pytest.raises(InvalidArgument, match="no old values are sent"):
        plan.run(table).changelog(old_values=True)
    with pytest.raises(InvalidArgument, match="holds no results back"):
        plan_of(SESSIONS).run(table).suppress_buffer()


def test_exports() -> None:
    plan = plan_of(SESSIONS)
    closes, limit = plan.suppress("until_window_closes"), plan.suppress("until_time_limit", "10s", max_records=5)
    java = closes.to_java().code
    assert ".suppress(Suppressed.untilWindowCloses(BufferConfig.unbounded()))" in java
    assert "import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;" in java
    assert "untilTimeLimit(Duration.ofSeconds(10), BufferConfig.maxRecords(5L)))" in limit.to_java().code
    both = plan.suppress("until_window_closes", max_records=5, max_bytes=70)
    assert "BufferConfig.maxRecords(5L).withMaxBytes(70L).shutDownWhenFull()" in both.to_java().code
    assert "EMIT FINAL;" in closes.to_ksql().code
    assert "EMIT CHANGES;" in plan.to_ksql().code
    for refused in (limit.to_ksql, both.to_ksql, closes.to_flink_sql, closes.to_spark):
        with pytest.raises(NotBuilt, match="has no such buffer"):
            refused()


def test_a_buffer_that_counts_bytes_shows_the_same_columns() -> None:
    table = pa.table({"key": ["a", "b"], "at": [1, 2]})
    plain, weighed = (
        plan_of(SESSIONS).suppress("until_window_closes", max_bytes=most).run(table).suppress_buffer().table()
        for most in (None, 10_000)
    )
    assert weighed.equals(plain)
    assert plain.num_rows == 2
