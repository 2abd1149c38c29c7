"""Where Kafka Streams 4.4.0 itself is odd: what it answers, and what sessionkit does there. README lists them.

Each test asks Kafka: should a later version answer otherwise, this is where one learns of it.
"""

import base64
from typing import Any

import pytest

from tests.differential.oracle import Oracle, running_oracle
from tests.differential.run import our_answer

pytestmark = pytest.mark.kafka

LARGEST = 2**63 - 1
TUMBLING = {"kind": "tumbling", "size_ms": 1, "grace_ms": 0, "retention_ms": 1000}
SESSIONS = {"kind": "session", "gap_ms": 1, "grace_ms": 0, "retention_ms": 1000}
oracle = pytest.fixture(running_oracle, scope="module")


def _case(window: dict[str, Any], records: list[tuple[bytes, int]], **more: Any) -> dict[str, Any]:
    return {
        "id": "odd", "window": window, "aggregation": "count", "emit": "on_update", "store": "rocksdb",
        "caching": False, "keys": "bytes",
        "records": [{"key": _text(key), "value": 1, "timestamp": time} for key, time in records], **more,
    }  # fmt: skip


def _text(key: bytes) -> str:
    return base64.b64encode(key).decode()


def _answers(oracle: Oracle, case: dict[str, Any], query: dict[str, Any]) -> tuple[Any, Any]:
    """(Kafka's answer, ours): starts of windows, or what failed."""
    keys = {name: _text(key) for name, key in query.items() if isinstance(key, bytes)}
    asked = {**case, "queries": [{**query, **keys}]}
    kafka, ours = (answer["query_results"][0] for answer in (oracle.ask(asked), our_answer(asked)))
    return _short(kafka), _short(ours)


def _short(answer: Any) -> Any:
    return answer["error"] if isinstance(answer, dict) else [row["window_start"] for row in answer]


@pytest.mark.parametrize(("key", "last"), [(b"", b"\x00"), (b"a", b"a\x00")], ids=["an empty key", "a NUL byte"])
def test_a_range_of_keys_on_disk_misses_windows(oracle: Oracle, key: bytes, last: bytes) -> None:
    """Times lie behind keys in Kafka's bytes, and its bounds take no account of it; we find them."""
    query = {"op": "fetch_keys", "key_from": key, "key_to": last, "from": 0, "to": 70}
    assert _answers(oracle, _case(TUMBLING, [(key, 70)]), query) == ([], [70])


def test_a_range_of_keys_on_disk_misses_sessions(oracle: Oracle) -> None:
    case = _case(SESSIONS, [(b"", 2**62)])
    query = {"op": "find_sessions_keys", "key_from": None, "key_to": b"\x00", "from": 2**62, "to": 2**62}
    assert _answers(oracle, case, query) == ([], [2**62])


def test_an_end_of_all_times_finds_no_session_in_order_of_time(oracle: Oracle) -> None:
    case = _case(SESSIONS, [(b"a", 1)], emit="on_close")
    assert _answers(oracle, case, {"op": "find_sessions_by_end", "from": 0, "to": LARGEST}) == ([], [1])
    assert _answers(oracle, case, {"op": "find_sessions_by_end", "from": 0, "to": LARGEST - 1}) == ([1], [1])


@pytest.mark.parametrize("op", ["fetch_all", "backward_fetch_all"])
def test_a_time_before_1970_finds_no_window_in_order_of_time(oracle: Oracle, op: str) -> None:
    case = _case(TUMBLING, [(b"a", 1)], emit="on_close")
    assert _answers(oracle, case, {"op": op, "from": -1, "to": 70}) == ([], [1])
    assert _answers(oracle, {**case, "emit": "on_update"}, {"op": op, "from": -1, "to": 70}) == ([1], [1])


@pytest.mark.parametrize("store", [{}, {"store": "in_memory", "caching": True}], ids=["on disk", "behind a cache"])
@pytest.mark.parametrize("op", ["find_sessions", "backward_find_sessions"])
def test_sessions_that_start_before_1970_are_no_question(oracle: Oracle, op: str, store: dict[str, Any]) -> None:
    """Kafka refuses it, but not of its plain store in memory; we say that there are none."""
    query = {"op": op, "key": b"a", "from": 0, "to": -1}
    assert _answers(oracle, _case(SESSIONS, [(b"a", 1)], **store), query) == ("IllegalArgumentException", [])
    assert _answers(oracle, _case(SESSIONS, [(b"a", 1)], store="in_memory"), query) == ([], [])


@pytest.mark.parametrize("op", ["all", "fetch_all", "fetch_keys"])
def test_the_cache_over_windows_in_memory_gives_one_twice(oracle: Oracle, op: str) -> None:
    """Final results go the same way, so we do as Kafka does."""
    case = _case(TUMBLING, [(b"a", 5), (b"a\x00", 5)], store="in_memory", caching=True)
    query = {"op": op, "key_from": b"a", "key_to": b"a\x00", "from": 0, "to": 70}
    assert _answers(oracle, case, query) == ([5, 5, 5], [5, 5, 5])
    assert _answers(oracle, {**case, "caching": False}, query) == ([5, 5], [5, 5])


def test_the_cache_over_disk_takes_wrong_segments(oracle: Oracle) -> None:
    """It fails where a range ends before its first segment, and gives windows again for each one of an open range."""
    case = _case(TUMBLING, [(b"a", 1), (b"b", 130_000)], caching=True)
    backwards = {"op": "fetch", "key": b"a", "from": 130_000, "to": 1}
    assert _answers(oracle, case, backwards) == ("IllegalStateException", [])
    open_range = {"op": "fetch_keys", "key_from": None, "key_to": None, "from": 0, "to": 200_000}
    kafka, ours = _answers(oracle, {**case, "window": {**TUMBLING, "retention_ms": 10**6}}, open_range)
    assert ours == [1, 130_000]
    assert sorted(set(kafka)) == ours


def test_the_cache_over_sessions_on_disk_fails_before_1970(oracle: Oracle) -> None:
    """A gap of a minute or more reaches below 0, where the cache finds no segment: Kafka's task ends, we go on."""
    window = {"kind": "session", "gap_ms": 60_000, "grace_ms": 0}
    case = _case(window, [(b"a", 0)], caching=True)
    kafka, ours = oracle.ask(case), our_answer(case)
    assert (kafka["error"]["class"], kafka["error"]["after_record"]) == ("IllegalStateException", 0)
    assert [row["value"] for row in ours["final_store"]] == [1]


def test_the_cache_over_sliding_windows_fails_at_a_deleted_one(oracle: Oracle) -> None:
    """An aggregator's null has deleted it since the last commit: Kafka's task ends, we go on."""
    window = {"kind": "sliding", "difference_ms": 10, "grace_ms": 100, "retention_ms": 1000}
    case = _case(window, [(b"a", 20), (b"a", 21), (b"a", 22)], caching=True, aggregation="fading", commit_after=[0, 2])
    for record, value in zip(case["records"], (1, 5, 1), strict=True):
        record["value"] = value
    kafka, ours = oracle.ask(case), our_answer(case)
    assert kafka["error"]["class"] == "NullPointerException"
    assert len(ours["per_record"]) == 3
