"""Where rows lie: the bytes of their keys are the format that a later version reads."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sessionkit.stores.contract import Snapshot
from sessionkit.stores.rocksdb.row_space import Question, RowSpace
from sessionkit.stores.rocksdb.sessions import RocksDBSessionStore
from sessionkit.stores.rocksdb.windows import RocksDBWindowStore
from sessionkit.stores.segments import Segments
from sessionkit.stores.typed_bytes import SESSIONS, Place, unpack_value
from tests.contract.stores_model import sort_key

AT_258, SEGMENT_3, START, END = b"\2" + b"\0\0\1\2", b"\0" * 7 + b"\3", b"\0" * 7 + b"\x20", b"\0" * 7 + b"\x27"
SEQUENCE = b"\0\0\0\0"  # Kafka numbers duplicates; there are none


def keys_of(store: Any) -> list[bytes]:
    """The keys of all rows that it has on disk."""
    keys: list[bytes] = store._database.rows(b"", b"\xff")[0]
    return keys


OWN, NOTED = [b"\0"], [b"\3", b"\4"]  # the header; whose the changes are, and which store it is


def test_keys_of_rows_are_written_down(tmp_path: Path) -> None:
    """A session from 32 to 39 of partition 258, in the segment from 30 on."""
    prefix = AT_258 + SEGMENT_3
    forms: dict[str, list[bytes]] = {
        "ordinary": [prefix + b"ada" + END + START],
        "by time": [prefix + b"\0" + END + START + b"ada", prefix + b"\1" + b"ada" + END + START],
    }
    for form, expected in forms.items():
        options: Any = {"directory": tmp_path, "segment_interval": "10ms", "time_ordered": form == "by time"}
        with RocksDBSessionStore(name=form.replace(" ", "-"), **options) as store:
            store.put("ada", 32, 39, 1, partition=258)
            assert keys_of(store) == [*OWN, *expected, *NOTED]
            assert store._space.row(258, Place(b"ada", 32, 39)) == expected[0]
            assert store._space.index_row(258, Place(b"ada", 32, 39)) == (expected[1] if expected[1:] else None)
    windows: dict[str, list[bytes]] = {
        "ordinary": [prefix + b"ada" + START + SEQUENCE],
        "by-time": [prefix + b"\0" + START + b"ada" + SEQUENCE],
    }
    for form, expected in windows.items():
        options = {"directory": tmp_path, "segment_interval": "10ms", "time_ordered": form == "by-time"}
        with RocksDBWindowStore(name=f"windows-{form}", **options) as store:
            store.put("ada", 32, 1, 35, partition=258)
            assert keys_of(store) == [*OWN, *expected, *NOTED]


def test_positions_are_written_down(tmp_path: Path) -> None:
    with RocksDBSessionStore(name="s", directory=tmp_path, retention="20ms", segment_interval="10ms") as store:
        store.put("ada", 32, 59, 1, partition=258)
        store.commit_snapshots({258: Snapshot(7, 39, 5), 2**32 - 1: Snapshot(8, 40, 6)})
        at = b"\1\0\0\1\2"
        assert [key for key in keys_of(store) if key[:1] == b"\1"] == [at, b"\1\xff\xff\xff\xff"]
        raw = store._database.get(at)
        assert raw is not None and unpack_value(raw, at) == (59, 3, 7, 39, 5)
    with RocksDBSessionStore(name="s", directory=tmp_path, retention="20ms", segment_interval="10ms") as store:
        assert store.snapshot(2**32 - 1) == Snapshot(8, 40, 6)
        assert store.snapshot(258) == Snapshot(7, 39, 5)
        assert store.snapshot(2) == Snapshot()


def test_partitions_lie_one_behind_the_other(tmp_path: Path) -> None:
    numbers = [0, 1, 255, 256, 2**24, 2**32 - 2, 2**32 - 1]
    with RocksDBSessionStore(name="s", directory=tmp_path) as store:
        for number in reversed(numbers):
            store.put("ada", 1, 2**62, number, partition=number)
        assert store.partitions == numbers
        assert [[s.aggregate for s in store.all(partition=number)] for number in numbers] == [[n] for n in numbers]
        bounds = [bound for n in numbers for bound in (store._space.partition(n), store._space.behind(n))]
        assert bounds == sorted(bounds) and bounds[-1] == b"\3"


PLACE = Place(b"m", 5, 9)
EVERYTHING = Question(0, 0, 99)


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({}, True), ({"from_ms": 9}, True), ({"from_ms": 10}, False), ({"to_ms": 9}, True), ({"to_ms": 8}, False),
        ({"latest_start_ms": 5}, True), ({"latest_start_ms": 4}, False), ({"low": b"m"}, True),
        ({"low": b"m\0"}, False), ({"high": b"m"}, True), ({"high": b"l"}, False),
        ({"low": b"a", "high": b"z"}, True),
    ],
)  # fmt: skip
def test_all_bounds_of_a_question_are_included(change: dict[str, Any], holds: bool) -> None:
    assert EVERYTHING._replace(**change).holds(PLACE) is holds


def test_rows_sort_as_a_range_of_keys_comes() -> None:
    """By segment and then by key, by time in one key; whatever the form, if it has an index."""
    places = [Place(b"b", 1, 5), Place(b"a", 3, 9), Place(b"a", 1, 9), Place(b"a", 0, 12), Place(b"a", 2, 4)]
    expected = [Place(b"a", 2, 4), Place(b"a", 1, 9), Place(b"a", 3, 9), Place(b"b", 1, 5), Place(b"a", 0, 12)]
    for index in (False, True):
        space = RowSpace(SESSIONS, Segments(None, 10), time_ordered=index, index=index)
        assert sorted(places, key=partial(sort_key, space)) == expected
    by_time = RowSpace(SESSIONS, Segments(None, 10), time_ordered=True, index=False)
    assert sorted(places, key=partial(sort_key, by_time)) == [expected[0], expected[3], *expected[1:3], expected[4]]
