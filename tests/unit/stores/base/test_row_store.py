"""A store out of rows: what the base adds to six calls. What it promises as a store: tests/contract/test_stores.py."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sessionkit.errors import InvalidArgument, StoreCorrupted, StoreMismatch
from sessionkit.stores import Place, RawKeys, RowStore, SessionRowStore, Snapshot, Times, WindowRowStore

Rows = dict[tuple[int, Place], bytes]


class Shelf:
    """What outlives a store in these tests: rows and notes, and how often a transaction was begun and ended."""

    def __init__(self) -> None:
        self.rows: Rows = {}
        self.notes: dict[str, bytes] = {}
        self.told: list[str] = []


class DictRows(RowStore):
    """Rows in a dict, in no order at all."""

    def __init__(self, shelf: Shelf, **options: Any) -> None:
        self.shelf = shelf
        super().__init__(**{"name": "shelf", **options})

    def find_rows(self, partition: int, times_ms: Times, keys: RawKeys) -> Iterator[tuple[Place, bytes]]:
        """Goes through all of them while others may be written."""
        (low, high), (first, last) = keys, times_ms
        for (of, place), value in reversed(self.shelf.rows.items()):
            is_within = first <= place.time_ms <= last and (low or b"") <= place.key
            if of == partition and is_within and (high is None or place.key <= high):
                yield place, value

    def write_row(self, partition: int, place: Place, value: bytes) -> None:
        assert self._depth, "a row is written in a transaction"
        self.shelf.rows[partition, place] = value

    def delete_row(self, partition: int, place: Place) -> None:
        assert self._depth, "a row is deleted in a transaction"
        self.shelf.rows.pop((partition, place), None)

    def read_notes(self) -> dict[str, bytes]:
        return self.shelf.notes

    def write_note(self, name: str, value: bytes) -> None:
        self.shelf.notes[name] = value

    @contextmanager
    def transaction(self) -> Iterator[None]:
        before = dict(self.shelf.rows), dict(self.shelf.notes)
        self.shelf.told.append("begun")
        try:
            yield
        except BaseException:
            self.shelf.rows, self.shelf.notes = before
            raise
        finally:
            self.shelf.told.append("ended")

    def close_rows(self) -> None:
        self.shelf.told.append("closed")


class Sessions(SessionRowStore, DictRows):
    """Sessions in a dict."""


class Windows(WindowRowStore, DictRows):
    """Windows in a dict."""


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


def test_a_class_that_lacks_a_call_is_told_so() -> None:
    class Half(SessionRowStore):
        """It cannot write."""

    with pytest.raises(TypeError, match=r"close_rows.*delete_row.*find_rows.*read_notes.*transaction.*write_note"):
        Half(name="half")  # type: ignore[abstract]


def test_orders_are_those_of_kafkas_stores_in_memory(shelf: Shelf) -> None:
    sessions = Sessions(shelf)
    for key, start, end in [("b", 1, 5), ("a", 1, 9), ("a", 1, 5), ("a", 4, 5), ("aa", 2, 5)]:
        sessions.put(key, start, end, 0)
    spans = [(s.key, s.window_start_ms, s.window_end_ms) for s in sessions.all()]
    assert spans == [("a", 4, 5), ("a", 1, 5), ("aa", 2, 5), ("b", 1, 5), ("a", 1, 9)]
    assert [s[:2] for s in sessions.backward_fetch("a")] == [(1, 9), (1, 5), (4, 5)]
    assert [s.key for s in sessions.find_sessions_by_end(5, 5)] == ["a", "a", "aa", "b"]
    with pytest.raises(InvalidArgument, match="a range of times must not go backwards; got 6 to 5; swap them"):
        sessions.find_sessions_by_end(6, 5)


def test_an_answer_is_fixed_when_the_call_is_made(shelf: Shelf) -> None:
    sessions = Sessions(shelf)
    sessions.put("a", 1, 5, 1)
    found = sessions.all()
    sessions.put("a", 1, 5, 2)
    sessions.remove("a", 1, 5)
    assert [s.aggregate for s in found] == [1]


def test_what_expires_is_deleted(shelf: Shelf) -> None:
    windows = Windows(shelf, retention="10ms")
    for start in (0, 5, 10):
        assert windows.put("a", start, start, start)
    assert [w[0] for w in windows.all()] == [5, 10]
    assert [place.time_ms for _, place in shelf.rows] == [5, 10]
    assert not windows.put("a", 0, 1, 1)
    assert windows.put("a", 1, 1, 1, partition=2)  # each partition has a time of its own
    assert not windows.put("b", 0, None, 1)
    assert windows.put("b", 15, None, 15)  # a null moves the time, too
    assert [w[0] for w in windows.fetch("a", 0, 99)] == [10]
    assert windows.fetch_window("a", 5) is None


def test_it_tells_its_oldest_and_its_newest_time_of_all_partitions(shelf: Shelf) -> None:
    sessions = Sessions(shelf, retention="60000ms")
    assert sessions.facts() == []
    for partition, end in ((0, 7_000), (0, 9_000), (2, 5_000), (2, 8_000)):
        sessions.put("a", 1, end, 1, partition=partition)
    oldest, expires = sessions.facts()
    at = "a session that ends at 1970-01-01 00:0"
    assert oldest == f"oldest: {at}0:05; newest: {at}0:09 (UTC)"
    assert expires == f"the oldest expires when {at}1:05 is put into partition 2"


def test_a_restarted_task_has_forgotten_the_stream_time_alone(shelf: Shelf) -> None:
    sessions = Sessions(shelf, retention="10ms")
    sessions.put("a", 1, 25, 1)
    sessions.commit_snapshots({0: Snapshot(7, 8, 9)})
    sessions.restart_task()
    for store in (sessions, Sessions(shelf, retention="10ms")):
        assert store.snapshot(0) == Snapshot(7, -1, 9)
        assert not store.put("a", 1, 15, 1)


def test_a_single_change_is_a_transaction_and_a_block_is_one(shelf: Shelf) -> None:
    sessions = Sessions(shelf)
    shelf.told.clear()
    sessions.put("a", 1, 5, 1)
    assert shelf.told == ["begun", "ended"]
    shelf.told.clear()
    with sessions.all_or_nothing():
        sessions.put("a", 1, 6, 1)
        sessions.remove("a", 1, 5)
        sessions.commit_snapshots({0: Snapshot(1, 2, 3)}, {"n"})
    assert shelf.told == ["begun", "begun", "ended", "ended"]
    sessions.close()
    sessions.close()
    assert shelf.told[4:] == ["closed"]


def test_a_block_that_fails_leaves_nothing_behind(shelf: Shelf) -> None:
    sessions = Sessions(shelf, retention="10ms")
    before = dict(shelf.notes)
    with pytest.raises(KeyError), sessions.all_or_nothing():
        sessions.put(7, 90, 95, 1)
        sessions.bind({"windows": "these"})
        sessions.commit_snapshots({0: Snapshot(1, 2, 3)}, {"n"})
        raise KeyError
    assert (shelf.rows, shelf.notes) == ({}, before)
    assert sessions.snapshot(0) == Snapshot()
    sessions.check_names(["any"])
    sessions.bind({"windows": "others"})
    assert sessions.put("a", 1, 5, 1)  # neither the type of keys nor the time has stayed


def test_it_is_found_again(shelf: Shelf) -> None:
    sessions = Sessions(shelf, retention="10ms")
    sessions.put("a", 1, 25, {"n": 1}, partition=3, opened_by=4, closed_by=5)
    sessions.commit_snapshots({3: Snapshot(7, 25, 9)}, ["n"])
    sessions.bind({"windows": "these"})
    again = Sessions(shelf, retention="10ms")
    assert [tuple(s) for s in again.all(partition=3)] == [(1, 25, {"n": 1}, "a", 4, 5, -1)]
    assert (again.snapshot(3), again.partitions) == (Snapshot(7, 25, 9), [3])
    assert not again.put("b", 1, 15, 1, partition=3)  # its time was committed with the position
    with pytest.raises(StoreMismatch, match="windows 'these', not 'others'"):
        again.bind({"windows": "others"})
    with pytest.raises(
        StoreMismatch, match="store 'shelf' was made with other settings; got retention 10 ms, not none"
    ):
        Sessions(shelf)
    with pytest.raises(StoreMismatch, match="it holds sessions, not windows"):
        Windows(shelf, retention="10ms")


def test_an_empty_store_is_bound_to_its_settings(shelf: Shelf) -> None:
    Sessions(shelf)
    with pytest.raises(StoreMismatch, match="it holds sessions, not windows"):
        Windows(shelf)


def test_a_row_that_was_changed_or_moved_is_damage(shelf: Shelf) -> None:
    sessions = Sessions(shelf)
    sessions.put("a", 1, 5, 1)
    sessions.put("a", 1, 6, 2)
    (one, value), (other, _) = shelf.rows.items()
    shelf.rows[other] = value
    with pytest.raises(StoreCorrupted, match="a stored value fails its checksum"):
        sessions.fetch_session("a", 1, 6)
    shelf.rows[one] = value[:-1] + b"\xff"
    with pytest.raises(StoreCorrupted, match="a stored value fails its checksum"):
        list(sessions.all())
    shelf.rows.clear()
    shelf.rows[4, one[1]] = value  # in another partition
    shelf.notes["4"] = shelf.notes["0"]
    with pytest.raises(StoreCorrupted, match="a stored value fails its checksum"):
        Sessions(shelf)


def test_a_read_step_by_step_sees_what_is_written_ahead_of_it(shelf: Shelf) -> None:
    windows = Windows(shelf)
    for backward, order in ((False, [1, 3, 4, 6, 7]), (True, [7, 6, 4, 3, 2, 1])):
        for start in (1, 3, 5, 7):
            windows.put("a", start, "old", start)
        starts = []
        for window in windows.fetch_step_by_step("a", "a", 0, 9, backward=backward):
            starts.append(window.window_start_ms)
            if window.window_start_ms == (7 if backward else 3):
                for written in (2, 4, 6):
                    windows.put("a", written, "new", written)
                windows.put("a", 5, None, 5)
        assert starts == order


def test_partitions_are_numbers(shelf: Shelf) -> None:
    sessions = Sessions(shelf)
    for partition in (-1, 2**32, "0", True, 1.0):
        with pytest.raises(InvalidArgument, match="a partition must be a number"):
            sessions.put("a", 1, 5, 1, partition=partition)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgument, match="a partition must be a number"):
            list(sessions.all(partition=partition))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("span", "telling"),
    [
        *(((9, 5), "swap them"), ((-1, 5), "times from 0 to 2**63 - 1")),
        *(((-1, -1), "times from 0 to 2**63 - 1"), ((0, 2**63), "times from 0 to 2**63 - 1")),
    ],
)
def test_spans_that_cannot_be(shelf: Shelf, span: tuple[int, int], telling: str) -> None:
    sessions = Sessions(shelf)
    with pytest.raises(InvalidArgument, match="a session starts at 0 or later and does not end before") as error:
        sessions.put("a", *span, 1)
    assert telling in str(error.value)
    sessions.remove("a", *span)
    assert sessions.fetch_session("a", *span) is None


def test_a_timestamp_that_cannot_be(shelf: Shelf) -> None:
    for start, timestamp in ((-1, 5), (2**63, 5), (0, 2**63)):
        with pytest.raises(InvalidArgument, match=f"got start {start}, timestamp {timestamp}"):
            Windows(shelf).put("a", start, 1, timestamp)
