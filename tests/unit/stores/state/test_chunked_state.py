"""A log of chunks by hand: which rows go into which chunk, and when old ones are written anew."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.base.durations import INT64_MAX
from sessionkit.errors import StoreCorrupted
from sessionkit.stores.contract import FixedColumns, SessionColumns, Snapshot, no_columns
from sessionkit.stores.state import chunked_state as chunks
from sessionkit.stores.state.chunked_state import Change, Chunk, ChunkedState


def sessions(*names: str) -> SessionColumns:
    """Sessions of these keys, the first at 0, the next at 10, each with its place as the aggregate."""
    start = np.arange(len(names)) * 10
    keys = pa.array(names, pa.large_string())
    none = np.full(len(names), -1, np.int64)
    return SessionColumns(keys, np.zeros_like(start), start, start + 5, none, none, {"n": pa.array(start // 10)})


def put(state: ChunkedState, *names: str) -> Change:
    """Writes sessions of these keys in place of those that the keys have, and seals."""
    removes = state.load(pa.array(names, pa.large_string()), {0: -1}, ("n",))
    state.commit(removes, sessions(*names), {0: Snapshot(1, 2, 3)})
    return state.seal()


def in_chunks(count: int, size: int) -> tuple[ChunkedState, list[str]]:
    """A state of so many keys, with chunks of this size, and their names."""
    state, names = ChunkedState("sessions", 0), [f"key {number}" for number in range(count)]
    for first in range(0, count, size):
        assert put(state, *names[first : first + size]).forgotten == ()
    return state, names


def rows_in(chunk: Chunk) -> list[Any]:
    table: pa.Table = chunks._of_bytes(chunk.rows)
    return table["key"].to_pylist() if table.num_columns else []


def gone_in(chunk: Chunk) -> list[tuple[int, int]]:
    """(chunk, row) of what it says is gone."""
    table = chunks._of_bytes(chunk.gone)
    return list(zip(table["chunk"].to_pylist(), table["row"].to_pylist(), strict=True))


@pytest.fixture
def chunks_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 2)


@pytest.mark.usefixtures("chunks_of_two")
def test_rows_go_into_chunks_of_so_many_with_rising_numbers() -> None:
    state = ChunkedState("sessions", 0)
    first, second = put(state, "a", "b", "c", "d", "e"), put(state, "f")
    assert [(chunk.number, rows_in(chunk)) for chunk in (*first.written, *second.written)] == [
        (0, ["a", "b"]),
        (1, ["c", "d"]),
        (2, ["e"]),
        (3, ["f"]),
    ]
    assert first.forgotten == second.forgotten == ()


@pytest.mark.usefixtures("chunks_of_two")
def test_what_is_gone_is_said_once() -> None:
    """In the first of the chunks that are written together."""
    state = ChunkedState("sessions", 0)
    put(state, "a", "b", "c")
    written = put(state, "b", "x", "c").written
    assert [(rows_in(chunk), gone_in(chunk)) for chunk in written] == [(["b", "x"], [(0, 1), (1, 0)]), (["c"], [])]
    assert put(state, "y").written[0].gone == written[1].gone


def test_where_something_is_gone_and_nothing_new_a_chunk_without_rows_says_so() -> None:
    state = ChunkedState("sessions", 0)
    put(state, "a", "b")
    removes = state.load(pa.array(["a"], pa.large_string()), {0: -1}, ("n",))
    state.commit(removes, sessions(), {})
    (chunk,) = state.seal().written
    assert (chunk.number, rows_in(chunk), gone_in(chunk)) == (1, [], [(0, 0)])
    assert state.seal() == Change((), ())


def test_a_window_that_came_and_went_between_two_seals_is_in_no_chunk() -> None:
    state = ChunkedState("sessions", 0)
    for names in (("a", "b"), ("b",)):
        removes = state.load(pa.array(["a", "b"], pa.large_string()), {0: -1}, ("n",))
        state.commit(removes, sessions(*names), {})
    (chunk,) = state.seal().written
    assert (rows_in(chunk), gone_in(chunk)) == (["b"], [])


def test_what_is_read_goes_on_with_the_next_number() -> None:
    state = ChunkedState("sessions", 0)
    log = [*put(state, "a").written, *put(state, "b").written]
    again = ChunkedState.read("sessions", 0, log, Snapshot(), windows=2)
    assert [chunk.number for chunk in put(again, "c").written] == [2]


def test_of_many_small_chunks_the_oldest_are_written_anew_together() -> None:
    """So a log has 32 chunks at most, as long as its windows are few."""
    state = ChunkedState("sessions", 0)
    for number in range(32):
        assert put(state, f"key {number}").forgotten == ()
    change = put(state, "one more")
    assert change.forgotten == (0,)
    assert [rows_in(chunk) for chunk in change.written] == [["key 0", "one more"]]
    assert len(state._written) == 32


def test_two_small_chunks_more_are_allowed_for_as_many_windows_as_fill_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten rows each: with 41 windows 40 chunks are as many as there may be."""
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 10)
    state = ChunkedState("sessions", 0)
    for number in range(40):
        assert put(state, f"key {number}").forgotten == ()
    assert put(state, "one more").forgotten == (0,)


def test_old_chunks_are_written_anew_when_a_third_of_all_rows_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """And a few more, here 4: nothing moves while 19 rows are written for 10 windows."""
    monkeypatch.setattr(chunks, "MOVED_ROWS", 4)
    state = ChunkedState("sessions", 0)
    names = [f"key {number}" for number in range(10)]
    put(state, *names)
    assert put(state, *names[:5]).forgotten == ()
    assert put(state, *names[:4]).forgotten == ()
    assert sum(state._written.values()) == 10 + 5 + 4
    change = put(state, names[0])
    assert change.forgotten == (0,)
    assert [sorted(rows_in(chunk)) for chunk in change.written] == [[names[0], *names[5:]]]
    assert [gone_in(chunk) for chunk in change.written] == [[(2, 0)]]


def test_no_more_chunks_are_written_anew_than_have_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six of two rows, of which one is gone: without the oldest five 19 rows are written for 12 windows."""
    monkeypatch.setattr(chunks, "MOVED_ROWS", 1)
    state, names = in_chunks(12, 2)
    assert put(state, *names[1::2]).forgotten == ()
    assert put(state, *names[1::2]).forgotten == (0, 1, 2, 3, 4)
    assert sum(state._written.values()) == 2 + 6 + 6 + 5


@pytest.mark.parametrize(("added", "forgotten"), [((), (0,)), (("x",), (0,)), (("x", "y"), (0, 1))])
def test_as_many_rows_are_moved_at_a_time_as_are_new(
    monkeypatch: pytest.MonkeyPatch, added: tuple[str, ...], forgotten: tuple[int, ...]
) -> None:
    """Each of the four chunks has three that live: six new ones allow two of them."""
    monkeypatch.setattr(chunks, "MOVED_ROWS", 1)
    state, names = in_chunks(16, 4)
    for _ in range(2):
        assert put(state, *names[3::4]).forgotten == ()
    assert put(state, *names[3::4], *added).forgotten == forgotten


def test_chunks_of_which_nothing_lives_are_forgotten_without_a_row_written_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chunks, "MOVED_ROWS", 1)
    state = ChunkedState("sessions", 0)
    for name in "abcde":
        put(state, name)
    removes = state.load(pa.array(["a", "b", "c", "d"], pa.large_string()), {0: -1}, ("n",))
    state.commit(removes, sessions(), {})
    change = state.seal()
    assert change.forgotten == (0, 1, 2)  # one row more than there are windows may stay
    assert [(rows_in(chunk), gone_in(chunk)) for chunk in change.written] == [([], [(3, 0)])]


def test_a_window_that_is_written_again_and_again_is_in_two_chunks_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "MOVED_ROWS", 1)
    state = ChunkedState("sessions", 0)
    assert [put(state, "a").forgotten for _ in range(5)] == [(), (), (0,), (1,), (2,)]


# ---- read again


def objects(*values: Any) -> Any:
    column = np.empty(len(values), object)
    column[:] = values
    return column


def test_what_is_read_has_to_be_as_many_windows_as_were_written() -> None:
    state = ChunkedState("sessions", 2)
    (chunk,) = put(state, "a", "b").written
    assert len(ChunkedState.read("sessions", 2, [chunk], Snapshot(), windows=2)) == 2
    for windows in (1, 3):
        said = f"got 2 windows of partition 2 in 1 chunk, where {windows} were written"
        with pytest.raises(StoreCorrupted, match=said):
            ChunkedState.read("sessions", 2, [chunk], Snapshot(), windows=windows)
    assert len(ChunkedState.read("sessions", 2, [], Snapshot(), windows=0)) == 0


def test_rows_that_are_gone_are_those_of_the_chunks_that_are_there() -> None:
    """What was gone of a chunk that was forgotten went with it."""
    state = ChunkedState("sessions", 0)
    log = [chunk for names in ("abc", "d", "be", "a") for chunk in put(state, *names).written]
    again = ChunkedState.read("sessions", 0, log, Snapshot())
    assert sorted(again.to_table()["key"].to_pylist()) == ["a", "b", "c", "d", "e"]
    behind = ChunkedState.read("sessions", 0, log[1:], Snapshot())
    assert sorted(behind.to_table()["key"].to_pylist()) == ["a", "b", "d", "e"]
    for row in (-1, 3):
        gone = chunks._to_bytes(pa.table({"chunk": [0], "row": [row]}))
        with pytest.raises(StoreCorrupted, match="a state names rows that none of its chunks has; got 1; its own"):
            ChunkedState.read("sessions", 0, [log[0], log[1]._replace(gone=gone)], Snapshot())


def test_what_was_read_was_not_loaded() -> None:
    state = ChunkedState("sessions", 0)
    log = put(state, "a", "b").written
    again = ChunkedState.read("sessions", 0, log, Snapshot())
    again.commit(sessions(), sessions("c"), {})
    assert again.to_table()["key"].to_pylist() == ["a", "b", "c"]
    assert [(rows_in(chunk), gone_in(chunk)) for chunk in again.seal().written] == [(["c"], [])]


def test_a_table_of_sessions_has_keys_bounds_and_results() -> None:
    state = ChunkedState("sessions", 7)
    assert state.to_table().num_columns == 0
    columns = sessions("a", "b")._replace(partition=np.array([7, 7]))
    columns = columns._replace(aggregates={"n": pa.array([1, None]), "own": objects({"x"}, None)})
    state.commit(no_columns("sessions", pa.large_string(), ()), columns, {})
    assert state.to_table().to_pylist() == [
        {"partition": 7, "key": "a", "window_start_ms": 0, "window_end_ms": 5, "n": 1, "own": "{'x'}"},
        {"partition": 7, "key": "b", "window_start_ms": 10, "window_end_ms": 15, "n": None, "own": "None"},
    ]


def test_a_table_of_windows_has_their_newest_times() -> None:
    state = ChunkedState("windows", 0)
    number = np.array([4])
    columns = FixedColumns(pa.array([9]), number - 4, number, number + 3, number, number, {"n": pa.array([1.5])})
    state.commit(no_columns("sessions", pa.int64(), ()), columns, {})
    expected = [{"partition": 0, "key": 9, "window_start_ms": 4, "timestamp_ms": 7, "n": 1.5}]
    assert state.to_table().to_pylist() == expected
    again = ChunkedState.read("windows", 0, state.seal().written, Snapshot())
    assert again.to_table().to_pylist() == expected


def test_what_is_saved_goes_on_as_it_was() -> None:
    """With chunk and row of each window, the chunks that were written, and the number of the next."""
    state = ChunkedState("sessions", 0)
    put(state, "a", "b"), put(state, "b", "c")
    state.snapshots = {0: Snapshot(7, 8, 9)}
    sink = pa.BufferOutputStream()
    state.save(sink)
    again = ChunkedState.opened("sessions", 0, sink.getvalue())
    assert again.snapshot(0) == Snapshot(7, 8, 9)
    assert again.to_table().equals(state.to_table())
    assert again._written == {0: 2, 1: 2}
    again.commit(sessions(), sessions("d"), {})  # nothing was loaded, so nothing goes
    (chunk,) = again.seal().written
    assert (chunk.number, rows_in(chunk), gone_in(chunk)) == (2, ["d"], [])
    (chunk,) = put(again, "a", "c", "d").written
    assert gone_in(chunk) == [(0, 0), (1, 1), (2, 0)]


def test_an_empty_state_is_saved_and_opened() -> None:
    sink = pa.BufferOutputStream()
    ChunkedState("windows", 4).save(sink)
    again = ChunkedState.opened("windows", 4, sink.getvalue())
    assert (len(again), again.snapshot(4), again.seal()) == (0, Snapshot(), Change((), ()))


def test_values_of_python_come_back_as_they_were() -> None:
    state = ChunkedState("sessions", 0)
    values = [{"seen": (1, None)}, [b"\0"], None]
    state.commit(
        no_columns("sessions", pa.large_string(), ()),
        sessions("a", "b", "c")._replace(aggregates={"own": objects(*values)}),
        {},
    )
    again = ChunkedState.read("sessions", 0, state.seal().written, Snapshot())
    assert again.load(pa.array([], pa.large_string()), {0: INT64_MAX}, ("own",)).aggregates["own"].tolist() == values


def test_a_state_of_another_format_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    log = put(ChunkedState("sessions", 0), "a").written
    monkeypatch.setattr(chunks, "FORMAT", 2)
    with pytest.raises(StoreCorrupted, match="a state is of another format; got 1; 2, as this version writes"):
        ChunkedState.read("sessions", 0, log, Snapshot())
