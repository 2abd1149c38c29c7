"""A state as columns, by hand: what is loaded, what a commit replaces, and the order in which it is shown."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sessionkit.base.durations import INT64_MAX
from sessionkit.stores.contract import FixedColumns, SessionColumns, Snapshot
from sessionkit.stores.state.column_state import ColumnState

Row = tuple[str, int, int, int]  # key, partition, start, end


def sessions(*rows: Row) -> SessionColumns:
    """Each with its place as the aggregate."""
    partition, start, end = (np.array([row[at] for row in rows], np.int64) for at in (1, 2, 3))
    none = np.full(len(rows), -1, np.int64)
    count = pa.array(range(len(rows)), pa.int64())
    keys = pa.array([row[0] for row in rows], pa.large_string())
    return SessionColumns(keys, partition, start, end, none, none, {"n": count})


def rows_of(held: Any) -> list[Row]:
    numbers = (held.partition.tolist(), held.start_ms.tolist(), held[3].tolist())
    return list(zip(held.key.to_pylist(), *numbers, strict=True))


def keys(*names: str) -> pa.Array:
    return pa.array(names, pa.large_string())


A5, B9, A12, C5 = ("a", 0, 1, 5), ("b", 0, 2, 9), ("a", 0, 11, 12), ("c", 3, 1, 5)


@pytest.fixture
def state() -> ColumnState:
    made = ColumnState()
    made.fill(sessions(A5, B9, A12, C5), {0: Snapshot(7, 8, 9)})
    return made


@pytest.mark.parametrize(
    ("asked", "before_ms", "found"),
    [
        ((), {0: 0}, []), ((), {0: 5}, []), ((), {0: 6}, [A5]), ((), {0: 13}, [A5, B9, A12]), ((), {3: 6}, [C5]),
        ((), {0: 6, 3: 6}, [A5, C5]), (("a",), {0: -1}, [A5, A12]), (("b",), {0: 6}, [A5, B9]), (("c",), {0: -1}, []),
        (("c", "b"), {0: -1, 3: -1}, [B9, C5]), (("a",), {}, []), (("x",), {5: 99}, []),
    ],
)  # fmt: skip
def test_loaded_are_the_sessions_of_the_keys_and_those_that_end_before_of_the_partitions_that_are_asked_for(
    state: ColumnState, asked: tuple[str, ...], before_ms: dict[int, int], found: list[Row]
) -> None:
    loaded = state.load(keys(*asked), before_ms, ("n",))
    assert rows_of(loaded) == found
    assert state.is_loaded(loaded)
    assert not state.is_loaded(sessions(A5, A5, A5, A5, A5))
    new = ("new", 0, 90, 95)
    state.commit(loaded, sessions(new), {0: Snapshot(10, 11, 12), 3: Snapshot(1, 1, 1)})
    rest = [row for row in (A5, B9, A12, C5) if row not in found]
    assert rows_of(state.load(keys(), dict.fromkeys((0, 3), INT64_MAX), ("n",))) == [*rest, new]
    assert (state.snapshot(0), state.snapshot(3)) == (Snapshot(10, 11, 12), Snapshot(1, 1, 1))
    assert (state.snapshot(1), state.read_partitions) == (Snapshot(), [0, 3])


def test_keys_of_another_type_are_given_all_for_the_run_to_say_so(state: ColumnState) -> None:
    assert rows_of(state.load(pa.array([7]), {0: -1}, ("n",))) == [A5, B9, A12]


def test_before_the_first_commit_there_is_nothing_of_the_type_that_is_asked_for() -> None:
    state = ColumnState("windows")
    loaded = state.load(pa.array([7]), {0: 9}, ("n", "total"))
    assert isinstance(loaded, FixedColumns)
    assert (loaded.key.type, len(loaded.key), list(loaded.aggregates)) == (pa.int64(), 0, ["n", "total"])
    assert all(len(column) == 0 for column in loaded[1:6])
    assert (len(state), state.edges(), state.ordered()) == (0, [], None)


def test_windows_are_loaded_by_their_starts() -> None:
    state = ColumnState("windows")
    partition, start, newest = (np.array(column) for column in ([0, 0], [3, 6], [90, 95]))
    columns = FixedColumns(keys("a", "b"), partition, start, newest, partition, partition, {"n": pa.array([1, 2])})
    state.fill(columns, {})
    assert state.load(keys(), {0: 6}, ("n",)).start_ms.tolist() == [3]
    assert state.edges() == [(0, 3, 6)]


def test_edges_are_the_oldest_and_newest_ends_of_each_partition(state: ColumnState) -> None:
    assert state.edges() == [(0, 5, 12), (3, 5, 5)]


ORDERED: list[Row] = [("b", 0, 4, 5), ("a", 0, 3, 7), ("a", 0, 1, 7), ("é", 0, 2, 7), ("a", 1, 0, 1), ("b", 1, 0, 1)]


@pytest.mark.parametrize("turn", range(6))
def test_ordered_by_partition_end_key_and_falling_start(turn: int) -> None:
    """Among those of one end the keys decide which are shown, wherever they lie."""
    state = ColumnState()
    state.fill(sessions(*ORDERED[turn:], *ORDERED[:turn]), {})
    held = state.ordered()
    assert held is not None and rows_of(held) == ORDERED
    for rows in ([*ORDERED[turn:], *ORDERED[:turn]], ORDERED[::-1]):
        state.fill(sessions(*rows), {})
        for most in range(1, 8):
            assert rows_of(state.ordered(most)) == ORDERED[:most]


def test_what_is_taken_is_there_no_longer(state: ColumnState) -> None:
    held, snapshots = state.take_all()
    assert held is not None and rows_of(held) == [A5, B9, A12, C5]
    assert snapshots == {0: Snapshot(7, 8, 9)}
    assert (len(state), state.snapshots, state.take_all()) == (0, {}, (None, {}))


def test_columns_of_arrow_and_of_python_are_joined() -> None:
    state = ColumnState()
    own = np.empty(1, object)
    for name in "ab":
        own = own.copy()
        own[0] = {name}
        columns = sessions((name, 0, 1, 5))._replace(aggregates={"n": pa.array([1]), "own": own})
        state.commit(state.load(keys(), {0: -1}, ("n", "own")), columns, {})
    held = state.ordered()
    assert held is not None
    assert held.aggregates["n"].to_pylist() == [1, 1]
    assert list(held.aggregates["own"]) == [{"a"}, {"b"}]


@pytest.mark.parametrize("kept", [pa.array([[1, None], None]), pa.array([2**62 + 1, None]), pa.array([[1, 2], [3, 4]])])
def test_python_objects_and_columns_of_arrow_keep_their_values_beside_each_other(kept: pa.Array) -> None:
    """As in a store whose windows somebody looked at between two runs: NumPy alone makes floats of some."""
    first, second = sessions(A5)._replace(aggregates={"n": np.array([None], object)}), sessions(B9, C5)
    state = ColumnState()
    state.fill(first, {0: Snapshot(7, 8, 9)})
    loaded = state.load(keys("x"), {0: -1}, ("n",))
    state.commit(loaded, second._replace(aggregates={"n": kept}), {0: Snapshot(10, 11, 12)})
    (values,) = state.load(keys(), dict.fromkeys((0, 3), INT64_MAX), ("n",)).aggregates.values()
    assert values.tolist() == [None, *kept.to_pylist()]  # type: ignore[union-attr]
    assert {type(each) for each in values} <= {int, list, type(None)}
