"""A log of chunks, read again, holds what the state held when it was sealed; and it does not grow without end."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sessionkit.errors import StoreCorrupted
from sessionkit.stores.contract import FixedColumns, SessionColumns, Snapshot, no_columns
from sessionkit.stores.state import chunked_state as chunks
from sessionkit.stores.state.chunked_state import Chunk, ChunkedState
from tests.interpreted import fewer

KINDS: dict[str, Any] = {"sessions": SessionColumns, "windows": FixedColumns}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 7)
    monkeypatch.setattr(chunks, "MOST_CHUNKS", 3)
    monkeypatch.setattr(chunks, "MOVED_ROWS", 4)


def seal(state: ChunkedState, log: dict[int, Chunk]) -> None:
    """As a checkpoint keeps the chunks that were written, and lets go of what is forgotten."""
    change = state.seal()
    log |= {chunk.number: chunk for chunk in change.written}
    for number in change.forgotten:
        del log[number]


def columns(of: str, rows: list[tuple[str, int, int]], first: int, *, python: bool) -> Any:
    start = np.array([row[1] for row in rows], np.int64)
    own = np.empty(len(rows), object)
    own[:] = [{"seen": [key, None], "n": n} for key, _, n in rows]
    return KINDS[of](
        pa.array([row[0] for row in rows], pa.large_string()),
        np.full(len(rows), 3),
        start,
        start + np.array([row[2] for row in rows], np.int64),
        np.arange(first, first + len(rows)),
        np.full(len(rows), -1),
        {
            "count": pa.array([row[2] for row in rows], pa.int64(), mask=np.array([row[2] == 5 for row in rows], bool)),
            "mean": pa.StructArray.from_arrays([pa.array([row[2] / 3 for row in rows], pa.float64())], ["sum"]),
            **({"own": own} if python else {}),
        },
    )


def listed(state: ChunkedState) -> list[Any]:
    held = state._held
    if held is None:
        return []
    values = [c.to_pylist() if isinstance(c, pa.Array) else c.tolist() for c in held.aggregates.values()]
    return sorted(zip(held.key.to_pylist(), *(c.tolist() for c in held[1:6]), *values, strict=True), key=repr)


keys = st.sampled_from(["a", "b", "c", "é", ""])
rows = st.lists(st.tuples(keys, st.integers(0, 90), st.integers(0, 9)), max_size=12)
steps = st.lists(st.tuples(st.lists(keys, max_size=3, unique=True), st.integers(-1, 90), rows, st.booleans()))


@pytest.mark.parametrize("of", KINDS)
@settings(max_examples=fewer(150))
@given(steps=steps, python=st.booleans())
def test_what_is_read_is_what_was_sealed(of: str, steps: Any, python: bool) -> None:
    state, log, first = ChunkedState(of, 3), dict[int, Chunk](), 0
    for place, (asked, until_ms, puts, is_sealed) in enumerate(steps):
        names = ("count", "mean", *(["own"] if python else []))
        loaded = state.load(pa.array(asked, pa.large_string()), {3: until_ms}, names)
        state.commit(loaded, columns(of, puts, first, python=python), {3: Snapshot(place, place * 2, place - 1)})
        first += len(puts)
        if not is_sealed:
            continue
        seal(state, log)
        again = ChunkedState.read(of, 3, log.values(), state.snapshot(3))
        sink = pa.BufferOutputStream()
        state.save(sink)
        mapped = ChunkedState.opened(of, 3, sink.getvalue())
        for other in (again, mapped):
            assert listed(other) == listed(state)
            assert other.snapshots == state.snapshots
            assert other._written == state._written == {n: again._written[n] for n in log}
        again_at, at = (sorted(zip(s._chunk.tolist(), s._row.tolist(), strict=True)) for s in (again, state))
        assert again_at == at == sorted(zip(mapped._chunk.tolist(), mapped._row.tolist(), strict=True))
        state = (state, again, mapped)[place % 3]


@settings(max_examples=fewer(150))
@given(st.lists(st.tuples(st.lists(st.booleans(), max_size=30), rows, st.booleans())))
def test_rows_that_stay_in_another_order_are_not_written_again(steps: Any) -> None:
    """As a buffer takes the place of the one before it: of some rows only where they lie has changed."""
    state, log, first, written = ChunkedState("sessions", 3), dict[int, Chunk](), 0, 0
    for place, (stays, puts, is_sealed) in enumerate(steps):
        kept = [row for row, (stay, _) in enumerate(zip(stays, range(len(state)), strict=False)) if stay][::-1]
        before = np.array([*kept, *[-1] * len(puts)], np.int64)
        new = columns("sessions", puts, first, python=False)
        held = new if state._held is None else state._joined(state._held.take(np.array(kept, np.int64)), new)
        state.replace(before, held, Snapshot(place, place * 2))
        first += len(puts)
        written += len(puts)
        if is_sealed:
            numbers = set(log)
            seal(state, log)
            again = ChunkedState.read("sessions", 3, log.values(), state.snapshot(3), windows=len(state))
            assert listed(again) == listed(state)
            new_rows = sum(chunks._of_bytes(log[number].rows).num_rows for number in set(log) - numbers)
            assert new_rows <= written + max(written, chunks.MOVED_ROWS) + chunks.CHUNK_ROWS
            written, state = 0, (state, again)[place % 2]


def test_a_lost_chunk_is_noticed_though_as_many_windows_are_left() -> None:
    """The window of the older chunk is gone since the newer one, which has the one in its place."""
    state, log = ChunkedState("sessions", 3), list[Chunk]()
    for step in range(2):
        loaded = state.load(pa.array(["a"], pa.large_string()), {3: 0}, ("count", "mean"))
        state.commit(loaded, columns("sessions", [("a", step, 1)], 0, python=False), {3: Snapshot(step)})
        log += state.seal().written
    assert len(state) == 1
    token, old_token = state.token(), state.token()[:32]
    for known in (token, old_token):
        assert listed(ChunkedState.read("sessions", 3, log, Snapshot(1), windows=1, token=known)) == listed(state)
    for wrong in (log[:1], log[1:]):
        assert len(ChunkedState.read("sessions", 3, wrong, Snapshot(1), windows=1)) == 1
        with pytest.raises(StoreCorrupted, match=r"is incomplete; got 1 window of partition 3 in 1 chunk; the chunks "):
            ChunkedState.read("sessions", 3, wrong, Snapshot(1), windows=1, token=token)


def test_it_does_not_grow() -> None:
    """Ten live rows that are written again and again."""
    state, log = ChunkedState("sessions", 3), dict[int, Chunk]()
    for step in range(200):
        rows = [("a", place, step % 10) for place in range(10)]
        loaded = state.load(pa.array(["a"], pa.large_string()), {3: 0}, ("count", "mean"))
        state.commit(loaded, columns("sessions", rows, 0, python=False), {3: Snapshot(step)})
        seal(state, log)
        assert len(log) <= 8 and sum(state._written.values()) <= 10 + 5 + 4 + 20


def test_a_large_first_chunk_is_moved_piece_by_piece() -> None:
    """What has to be written at a time is bounded by what is new, not by what is there."""
    state = ChunkedState("sessions", 3)
    rows = [(f"k{place}", place, 1) for place in range(700)]
    state.commit(
        no_columns("sessions", pa.large_string(), ("count", "mean")), columns("sessions", rows, 0, python=False), {}
    )
    assert len(state.seal().written) == 100
    for step in range(50):
        asked = [f"k{place}" for place in range(step * 10, step * 10 + 10)]
        loaded = state.load(pa.array(asked, pa.large_string()), {3: 0}, ("count", "mean"))
        assert len(loaded.key) == 10
        state.commit(loaded, columns("sessions", [(key, 1, 2) for key in asked], 0, python=False), {})
        written = sum(chunks._of_bytes(chunk.rows).num_rows for chunk in state.seal().written)
        assert 10 <= written <= 10 + 10 + 7
    assert len(state) == 700


def test_a_chunk_that_is_none_is_refused() -> None:
    state = ChunkedState("sessions", 3)
    state.commit(
        no_columns("sessions", pa.large_string(), ("count", "mean")),
        columns("sessions", [("a", 1, 1)], 0, python=False),
        {},
    )
    (chunk,) = state.seal().written
    for wrong in (
        Chunk(0, chunk.rows[:40], chunk.gone),
        Chunk(0, chunk.rows, chunk.gone[:20]),
        Chunk(0, chunk.rows, chunks._to_bytes(pa.table({"chunk": [0], "row": [4]}))),
        Chunk(0, chunks._to_bytes(pa.table({"key": ["a"]})), chunk.gone),
    ):
        with pytest.raises(StoreCorrupted):
            ChunkedState.read("sessions", 3, [wrong], Snapshot())
