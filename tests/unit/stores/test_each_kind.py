"""What the stores in memory and on disk answer alike, of sessions and of windows."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.errors import InvalidArgument, StoreClosed
from sessionkit.stores import HOLDS, Snapshot, store_class
from sessionkit.stores.contract import StoredWindow
from tests.contract.stores_model import opened, put, session_columns, times_of

KINDS = ("memory", "rocksdb")
each_kind = pytest.mark.parametrize("kind", KINDS)
each_store = pytest.mark.parametrize(("kind", "of"), [(kind, of) for kind in KINDS for of in HOLDS])


def fetched(store: Any, key: Any, time_ms: int) -> Any:
    """The aggregate of the session that starts and ends then, or of the window that starts then."""
    if store.holds == "sessions":
        return store.fetch_session(key, time_ms, time_ms)
    window = store.fetch_window(key, time_ms)
    return None if window is None else window.aggregate


def reads_of(store: Any, key: Any) -> tuple[Any, ...]:
    """Calls that ask for a key, to be made one by one."""
    if store.holds == "sessions":
        finds = (lambda: store.find_sessions(key, 0, 9), lambda: store.remove(key, 5, 5))
        return (lambda: store.fetch(key), *finds)
    return lambda: store.fetch(key, 0, 9), lambda: store.fetch_window(key, 5)


# ---- keys and partitions


@each_store
def test_keys_are_in_the_order_of_their_bytes(kind: str, of: str, tmp_path: Path) -> None:
    keys = ["\U0001f600", "\uffff", "é", "z", "a", "aa", "B", ""]  # UTF-16, as in Java, has the first two reversed
    with opened(kind, of, tmp_path) as store, opened(kind, of, tmp_path, "numbers") as numbers:
        for key in keys:
            put(store, key, 9, 1)
        assert [each.key for each in store.all()] == ["", "B", "a", "aa", "z", "é", "\uffff", "\U0001f600"]
        for number in (-1, 5, 0, -(2**63)):
            put(numbers, number, 9, 1)
        assert [each.key for each in numbers.all()] == [0, 5, -(2**63), -1]


@pytest.mark.parametrize("of", HOLDS)
def test_partitions_are_numbers_on_disk(of: str, tmp_path: Path) -> None:
    with opened("rocksdb", of, tmp_path) as store:
        for number in (-1, 2**32, "0", True, 1.0):
            with pytest.raises(InvalidArgument, match="a partition must be a number; got "):
                put(store, "ada", 5, 1, partition=number)


@each_store
def test_integers_of_numpy_come_back_as_those_of_python(kind: str, of: str, tmp_path: Path) -> None:
    with opened(kind, of, tmp_path) as store:
        put(store, np.int64(7), np.int64(5), 1)
        (found,) = store.all()
        assert (found.key, found.window_start_ms, type(found.window_start_ms)) == (7, 5, int)
        assert fetched(store, 7, 5) == 1


@each_store
def test_partitions_are_apart(kind: str, of: str, tmp_path: Path) -> None:
    with opened(kind, of, tmp_path, retention="10ms") as store:
        for time_ms, partition in ((5, 0), (900, 3), (895, 3)):
            put(store, "ada", time_ms, f"in {partition}", partition=partition)
        assert times_of(store) == [("ada", 5)]  # the clock of partition 3 has not moved that of 0
        assert times_of(store, partition=3) == [("ada", 895), ("ada", 900)]
        assert times_of(store, partition=1) == []
        assert (fetched(store, "ada", 5), fetched(store, "ada", 900)) == ("in 0", None)
        bounds = () if of == "sessions" else (0, 999)
        assert [each.aggregate for each in store.fetch("ada", *bounds)] == ["in 0"]
        for call in (store.fetch, store.backward_fetch):
            assert [each.aggregate for each in call("ada", *bounds, partition=3)] == ["in 3", "in 3"]
        store.remove("ada", 5, 5, partition=3) if of == "sessions" else put(store, "ada", 5, None, partition=3)
        assert len(store) == 3
        put(store, "ada", 5, None)
        assert len(store) == 2


@each_store
@pytest.mark.parametrize("key", [None, 1.0, True, ("a",), object(), "\ud800", 2**63])
def test_what_is_no_key(kind: str, of: str, tmp_path: Path, key: Any) -> None:
    with opened(kind, of, tmp_path) as store:
        put(store, "ada", 5, 1)
        for call in (lambda: put(store, key, 5, 1), *reads_of(store, key)):
            with pytest.raises(InvalidArgument, match="this cannot be a key"):
                call()
        assert times_of(store) == [("ada", 5)]


@each_store
@pytest.mark.parametrize("key", ["\0\0\0\0\0\0\0\1", b"\0\0\0\0\0\0\0\1"])
def test_a_store_has_one_type_of_key(kind: str, of: str, tmp_path: Path, key: Any) -> None:
    """As bytes, the integer 1 and this text are the same."""
    with opened(kind, of, tmp_path) as store:
        put(store, 1, 5, "kept")
        for call in (lambda: put(store, key, 5, 2), *reads_of(store, key)):
            with pytest.raises(InvalidArgument, match=r"'clicks' holds keys of another type; got .*; its keys are int"):
                call()
        assert [each.aggregate for each in store.all()] == ["kept"]


# ---- puts and answers


@each_store
def test_a_put_replaces_and_null_deletes_unless_it_is_to_be_kept(kind: str, of: str, tmp_path: Path) -> None:
    with opened(kind, of, tmp_path) as store:
        for key in ("ada", "bob"):
            put(store, key, 5, "old")
        assert put(store, "ada", 5, "new")
        assert [each.aggregate for each in store.all()] == ["new", "old"]
        for _ in range(2):  # the second time there is nothing to delete
            assert put(store, "ada", 5, None)
            assert (fetched(store, "ada", 5), times_of(store), len(store)) == (None, [("bob", 5)], 1)
        assert put(store, "bob", 5, None, keep_null=True)
        assert [(each.key, each.aggregate) for each in store.all()] == [("bob", None)]


@each_store
def test_an_answer_is_fixed_when_the_call_is_made(kind: str, of: str, tmp_path: Path) -> None:
    with opened(kind, of, tmp_path) as store:
        for key, time_ms in (("ada", 5), ("bob", 5), ("cat", 9)):
            put(store, key, time_ms, 1)
        found, of_bob = store.all(), store.fetch("bob", *(() if of == "sessions" else (0, 9)))
        next(found)
        put(store, "bob", 5, None)
        put(store, "eve", 5, 1)
        assert [each.key for each in found] == ["bob", "cat"]
        assert [each.key for each in of_bob] == ["bob"]


# ---- sessions


@each_kind
def test_a_range_of_keys_includes_both_bounds_and_none_is_open(kind: str, tmp_path: Path) -> None:
    ranges = {
        ("a", "b"): ["a", "aa", "b"], ("aa", "aa"): ["aa"], (None, "aa"): ["a", "aa"], ("aa", None): ["aa", "b", "c"],
        ("x", "z"): [], ("ab", "bb"): ["b"], ("b", "a"): [],
    }  # fmt: skip
    with opened(kind, "sessions", tmp_path) as store:
        for key in ("a", "aa", "b", "c"):
            store.put(key, 0, 9, 1)
        for (low, high), keys in ranges.items():
            assert [s.key for s in store.find_sessions_in_keys(low, high, 9, 0)] == keys
            if (kind, low) != ("memory", "b"):  # Kafka's in-memory store alone throws on a fetch that goes backwards
                assert [s.key for s in store.fetch(low, high)] == keys
                assert [s.key for s in store.backward_fetch(low, high)] == keys[::-1]


@each_kind
@pytest.mark.parametrize(
    ("earliest_end", "latest_start", "found"),
    [(9, 5, True), (10, 5, False), (9, 4, False), (0, 2**63 - 1, True), (-1, 5, True), (-(2**63), 2**70, True)],
)
def test_bounds_of_sessions_are_inclusive(
    kind: str, tmp_path: Path, earliest_end: int, latest_start: int, found: bool
) -> None:
    with opened(kind, "sessions", tmp_path) as store:
        store.put("ada", 5, 9, 1)
        assert bool(list(store.find_sessions("ada", earliest_end, latest_start))) is found
        assert bool(list(store.find_sessions_in_keys("a", "b", earliest_end, latest_start))) is found
        assert list(store.find_sessions("bob", earliest_end, latest_start)) == []


@each_kind
def test_fetch_session_is_exact(kind: str, tmp_path: Path) -> None:
    with opened(kind, "sessions", tmp_path) as store:
        store.put("ada", 5, 9, "found")
        assert store.fetch_session("ada", 5, 9) == "found"
        for key, start, end in (("ada", 4, 9), ("ada", 5, 10), ("bob", 5, 9), ("ada", 9, 5), ("ada", -1, 9)):
            assert store.fetch_session(key, start, end) is None


@pytest.mark.parametrize(("kinds", "start", "end", "telling"), [
    (KINDS, 9, 5, "a session starts at 0 or later and does not end before; got [9, 5]; swap them"),
    (KINDS, -1, 5, "a session starts at 0 or later and does not end before; got [-1, 5]"),
    (KINDS, 1.0, 5, "a time of a session must be a moment; got 1.0; a time such as"),
    (KINDS, 1, None, "a time of a session must be a moment; got None"),
    (KINDS, 1, True, "a time of a session must be a moment; got True"),
    (KINDS, "1", 5, "a time of a session must be a moment; got '1'"),
    (["rocksdb"], 1, 2**63, "got [1, 9223372036854775808]; times from 0 to 2**63 - 1"),
    (["rocksdb"], -1, -1, "got [-1, -1]; times from 0 to 2**63 - 1"),
])  # fmt: skip
def test_spans_that_cannot_be(kinds: list[str], start: Any, end: Any, telling: str, tmp_path: Path) -> None:
    for kind in kinds:
        with opened(kind, "sessions", tmp_path) as store, pytest.raises(InvalidArgument) as caught:
            store.put("ada", start, end, 1)
        assert telling in str(caught.value), kind


# ---- windows


FORMS = ({"time_ordered": True}, {"time_ordered": True, "index": True})


@pytest.mark.parametrize(("kind", "form"), [*((kind, {}) for kind in KINDS), *(("rocksdb", form) for form in FORMS)])
def test_one_window(kind: str, form: dict[str, bool], tmp_path: Path) -> None:
    with opened(kind, "windows", tmp_path, **form) as store:
        assert store.put("ada", 5, [1], 9, opened_by=3, closed_by=8)
        assert store.fetch_window("ada", 5) == StoredWindow(5, [1], 9, "ada", 3, 8)
        assert next(store.fetch("ada", 0, 9)) == StoredWindow(5, [1], 9, "ada", 3, 8)
        for key, start in (("ada", 4), ("bob", 5), ("ada", -1)):
            assert store.fetch_window(key, start) is None
        store.put("ada", 5, 2, 10)
        assert store.fetch_window("ada", 5) == (5, 2, 10, "ada", -1, -1, -1)
        store.put("ada", 5, None, 11, keep_null=True)
        assert tuple(next(store.all())) == (5, None, 11, "ada", -1, -1, -1)
        store.put("ada", 5, None, 11)
        assert (store.fetch_window("ada", 5), len(store), list(store.all())) == (None, 0, [])


# ---- by name, and closed


@pytest.mark.parametrize("name", ["a", "A-Z_0.9", "...", "-rf", "x" * 200, "x" * 249])
@each_kind
def test_names(kind: str, name: str, tmp_path: Path) -> None:
    name = name if kind == "memory" else name[:200]  # a folder has a few letters more while it is made
    with opened(kind, "sessions", tmp_path, name) as store:
        assert store.name == name
    assert [file.name for file in tmp_path.iterdir()] == ([name] if store.is_persistent else [])


PATHS = ["", ".", "..", "../x", "a/b", "a\\b", "/etc", "~"]
NO_NAMES = ["a\0", "a\0b", "é", "a b", "a\n", "x" * 250, None, 7, b"a", Path("a")]


@each_kind
@pytest.mark.parametrize("name", [*PATHS, *NO_NAMES])
def test_names_that_are_refused(kind: str, name: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"this cannot be the name of a store; got .*; letters, digits, "):
        opened(kind, "sessions", tmp_path / "state", name)
    assert list(tmp_path.iterdir()) == []


CALLS: dict[str, dict[str, tuple[Any, ...]]] = {
    "sessions": {
        "put": ("ada", 5, 9, 1), "remove": ("ada", 5, 9), "find_sessions": ("ada", 0, 10),
        "backward_find_sessions": ("ada", 0, 10), "find_sessions_in_keys": ("a", "b", 0, 10),
        "backward_find_sessions_in_keys": ("a", "b", 0, 10), "find_sessions_by_end": (0, 10),
        "fetch_session": ("ada", 5, 9), "fetch": ("ada",), "backward_fetch": ("ada",),
        "load": (pa.array(["ada"]), {0: 5}, ("count",)), "commit": (session_columns([]), session_columns([]), {}),
    },
    "windows": {
        "put": ("ada", 5, 1, 9), "fetch_window": ("ada", 5), "fetch": ("ada", 0, 10), "backward_fetch": ("ada", 0, 10),
        "fetch_in_keys": ("a", "b", 0, 10), "backward_fetch_in_keys": ("a", "b", 0, 10), "fetch_all": (0, 10),
        "backward_fetch_all": (0, 10), "backward_all": (),
    },
}  # fmt: skip
for of in HOLDS:
    CALLS[of] |= {"all": (), "snapshot": (0,), "commit_snapshots": ({0: Snapshot()},), "bind": ({},), "__len__": ()}
    CALLS[of] |= {"check_names": (("count",),), "check_windows": ({"kind": "TimeWindows"},), "to_pandas": ()}


@pytest.mark.lengthy
@each_kind
@pytest.mark.parametrize(("of", "name"), [(of, name) for of, calls in CALLS.items() for name in calls])
def test_a_closed_store_refuses_every_call(kind: str, of: str, name: str, tmp_path: Path) -> None:
    options = {"time_ordered": True} if kind == "rocksdb" else {}
    with opened(kind, of, tmp_path, **options) as store:
        put(store, "ada", 5, 1)
        getattr(store, name)(*CALLS[of][name])
    with pytest.raises(StoreClosed, match="store 'clicks' is closed; got a call; open it again"):
        getattr(store, name)(*CALLS[of][name])
    store.close()  # again: nothing to do
    assert repr(store) == f"{store_class(kind, of).__name__}('clicks'): closed"
    assert "closed" in store._repr_html_()
