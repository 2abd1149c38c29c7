"""Rows of a store on disk, many at once: the same bytes and the same columns as one by one."""

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sessionkit as sk
from sessionkit.errors import InvalidArgument, StoreCorrupted
from sessionkit.stores.contract import FixedColumns, SessionColumns, Snapshot
from sessionkit.stores.rocksdb import columns as column_codec
from sessionkit.stores.rocksdb.sessions import RocksDBSessionStore
from sessionkit.stores.rocksdb.windows import RocksDBWindowStore
from sessionkit.stores.typed_bytes import pack_value, unpack_value
from tests.interpreted import fewer
from tests.kinds import group_in_ms

pytestmark = pytest.mark.lengthy

ROWS, BEHIND = b"\x02", b"\x03"

numbers = {
    "int": (pa.int64(), st.integers(-(2**63), 2**63 - 1)), "small": (pa.int16(), st.integers(-5, 5)),
    "unsigned": (pa.uint64(), st.integers(0, 2**63 - 1)), "float": (pa.float64(), st.floats(allow_nan=False)),
    "short": (pa.float32(), st.floats(width=32, allow_nan=False)),
    "mean": (
        pa.struct([("sum", pa.float64()), ("count", pa.int64())]),
        st.fixed_dictionaries({"sum": st.floats(allow_nan=False), "count": st.integers(0, 9)}),
    ),
}  # fmt: skip
others = {"text": (pa.string(), st.text(max_size=3)), "list": (pa.list_(pa.int64()), st.lists(st.integers(0, 9)))}
keys = {
    "str": (pa.large_string(), st.text(max_size=3)),
    "int": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "bytes": (pa.large_binary(), st.binary(max_size=3)),
}


@st.composite
def states(draw: st.DrawFn, of: str, aggregates: dict[str, Any]) -> SessionColumns | FixedColumns:
    """Windows of a store, no two in one place."""
    key_type, key = keys[draw(st.sampled_from(list(keys)))]
    place = st.tuples(key, st.sampled_from([0, 1, 7]), st.integers(0, 300_000), st.integers(0, 90_000))
    places = draw(st.lists(place, unique_by=lambda row: row[: 3 + (of == "sessions")], max_size=8))
    columns = {}
    for name in draw(st.lists(st.sampled_from(["count", "total", "ünlü"]), min_size=1, unique=True)):
        kind, value = aggregates[draw(st.sampled_from(list(aggregates)))]
        if not pa.types.is_struct(kind):
            value = st.none() | value
        columns[name] = pa.array(draw(st.lists(value, min_size=len(places), max_size=len(places))), kind)
    partition, start, length = (np.array([row[k] for row in places], np.int64) for k in (1, 2, 3))
    ids = [
        np.array(draw(st.lists(st.integers(-1, 2**62), min_size=n, max_size=n)), np.int64) for n in [len(places)] * 2
    ]
    kind = SessionColumns if of == "sessions" else FixedColumns
    return kind(pa.array([row[0] for row in places], key_type), partition, start, start + length, *ids, columns)


@contextmanager
def two_stores(of: str, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Iterator[tuple[Any, Any, Any]]:
    """A store that does as it does, another, and what to call before that one reads and writes row by row."""
    kind: Any = RocksDBSessionStore if of == "sessions" else RocksDBWindowStore
    with (
        TemporaryDirectory() as folder,
        monkeypatch.context() as patch,
        kind(name="one", directory=folder, **options) as one,
        kind(name="two", directory=folder, **options) as two,
    ):

        def row_by_row() -> None:
            patch.setattr(column_codec, "pack_places", lambda *_: None)
            patch.setattr(column_codec, "unpack", lambda *_: None)

        yield one, two, row_by_row


def listed(state: Any) -> list[tuple[Any, ...]]:
    aggregates = [
        column.tolist() if isinstance(column, np.ndarray) else column.to_pylist() for column in state[6].values()
    ]
    rows = zip(state.key.to_pylist(), *(column.tolist() for column in state[1:6]), *aggregates, strict=True)
    return sorted(rows, key=repr)


@pytest.mark.parametrize("form", [{}, {"time_ordered": True}, {"time_ordered": True, "index": True}])
@pytest.mark.parametrize("retention", [None, "150s"])
@pytest.mark.parametrize("of", ["sessions", "windows"])
@pytest.mark.slow
@settings(max_examples=fewer(12))
@given(data=st.data())
def test_equals_row_by_row(
    monkeypatch_module: pytest.MonkeyPatch, of: str, retention: str | None, form: dict[str, Any], data: st.DataObject
) -> None:
    options = {name: value for name, value in form.items() if of == "windows" or name != "index"}
    state = data.draw(states(of, numbers if data.draw(st.booleans()) else {**numbers, **others}))
    gone = (
        state.take(np.array(data.draw(st.lists(st.sampled_from(range(len(state.key))), unique=True)), np.intp))
        if len(state.key)
        else state
    )
    asked = data.draw(st.lists(st.sampled_from(state.key.to_pylist()), unique=True)) if len(state.key) else []
    load = (pa.array(asked, state.key.type), {0: data.draw(st.integers(-1, 300_000)), 7: -1}, tuple(state.aggregates))
    with two_stores(of, monkeypatch_module, retention=retention, **options) as (one, two, row_by_row):
        nothing = state.take(np.empty(0, np.intp))
        at_once = []
        for store, before in ((one, lambda: None), (two, row_by_row)):
            before()
            store.commit(nothing, state, {0: Snapshot(1, 2, 3)})
            rows = [store._database.rows(ROWS, BEHIND)]
            found = [listed(store.load(*load))]
            with store.all_or_nothing():  # the first commit's rows are on disk, this one's wait to be written
                store.commit(gone, nothing, {})
                found.append(listed(store.load(*load)))
            rows.append(store._database.rows(ROWS, BEHIND))
            at_once.append((rows, found, store._states, len(store)))
        assert at_once[0] == at_once[1]


@pytest.fixture(scope="module")
def monkeypatch_module() -> Iterator[pytest.MonkeyPatch]:
    with pytest.MonkeyPatch.context() as patch:
        yield patch


def some(size: int = 60, **aggregates: pa.Array) -> SessionColumns:
    start = np.arange(size) * 10
    none = np.full(size, -1, np.int64)
    columns = aggregates or {"count": pa.array(start)}
    named = pa.array([f"user-{i}" for i in range(size)], pa.large_string())
    return SessionColumns(named, np.zeros(size, np.int64), start, start + 5, start, none, columns)


SOME_KEYS: dict[str, list[Any]] = {"str": ["x", "", "é"], "int": [9, -1, 7], "bytes": [b"x", b"", b"\0"]}


@pytest.mark.parametrize("kind", [*SOME_KEYS, "numbers"])
def test_numbers_and_keys_of_every_type_take_the_fast_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """An empty key, too, and a part of a longer column; so do sessions of one record."""
    state = some(2)
    if kind == "numbers":
        state = some(count=pa.array(range(60)), mean=pa.StructArray.from_arrays([pa.array([0.5] * 60)], ["sum"]))
    else:
        state = state._replace(key=pa.array(SOME_KEYS[kind], keys[kind][0]).slice(1), end_ms=state.start_ms)
    with RocksDBSessionStore(name="s", directory=tmp_path) as store:
        monkeypatch.setattr(store, "write", None)
        monkeypatch.setattr(store, "_fields", None)
        store.commit(state.take(np.empty(0, np.intp)), state, {})
        assert listed(store.load(state.key, {0: -1}, tuple(state.aggregates))) == listed(state)


@pytest.mark.parametrize("what", ["removes", "puts"])
def test_a_run_observes_the_latest_time_that_it_removes_or_puts(tmp_path: Path, what: str) -> None:
    """Here 100, so with a retention of 10 what ends at 91 is seen, and what ends before is not."""
    nothing = some(0)
    ends = np.array([100, 95])
    changed = some(2)._replace(start_ms=ends, end_ms=ends)
    with RocksDBSessionStore(name="s", directory=tmp_path, retention="10ms") as store:
        for end in (90, 91):
            store.put("seen", 80, end, end)
        store.restart_task()
        assert len(store) == 2
        store.commit(*((changed, nothing) if what == "removes" else (nothing, changed)), {})
        assert [session.window_end_ms for session in store.fetch("seen")] == [91]


def test_a_run_puts_into_segments_that_live_and_what_it_removes_drops_none(tmp_path: Path) -> None:
    """With a retention of 20, segments of 10 and 45 as the latest end, that from 20 on is the first that lives."""
    nothing, options = some(0), {"retention": "20ms", "segment_interval": "10ms", "time_ordered": True}
    with RocksDBSessionStore(name="s", directory=tmp_path, **options) as store:
        ends = np.array([19, 20, 45])
        store.commit(nothing, some(3)._replace(start_ms=ends, end_ms=ends), {})
        assert [s.window_end_ms for s in store.find_sessions_by_end(0, 99)] == [20, 45]
        far = np.array([1_000])
        store.commit(some(1)._replace(start_ms=far, end_ms=far), nothing, {})
        assert list(store.all()) == []
        assert [s.window_end_ms for s in store.find_sessions_by_end(0, 99)] == [20, 45]
        with pytest.raises(InvalidArgument, match="its keys are str"):
            store.put(7, 1_000, 1_000, 1)


def test_a_run_of_which_all_is_refused_says_nothing_of_keys(tmp_path: Path) -> None:
    with RocksDBSessionStore(name="s", directory=tmp_path, retention="20ms", segment_interval="10ms") as store:
        for key, is_kept in ((7, False), ("ada", True)):
            store.put(key, 1_000, 1_000, None)  # deletes nothing, but the time is observed
            state = some(1)._replace(key=pa.array([key]).cast(pa.int64() if key == 7 else pa.large_string()))
            time = np.array([990 if is_kept else 5])
            store.commit(some(0)._replace(key=state.key[:0]), state._replace(start_ms=time, end_ms=time), {})
            assert len(store) == is_kept


@pytest.mark.parametrize("asked", [1, 60])
def test_loaded_are_the_windows_of_the_keys_and_those_before_the_time(tmp_path: Path, asked: int) -> None:
    """Each once, whether its key was asked for or not; with few keys one by one, with many from all rows."""
    state = some()
    wanted = pa.array([f"user-{n}" for n in (2, *range(100, 99 + asked))], pa.large_string())
    with RocksDBSessionStore(name="s", directory=tmp_path, time_ordered=True) as store:
        store.commit(state.take(np.empty(0, np.intp)), state, {})
        for before_ms, ends in (
            (-1, [25]), (5, [25]), (6, [5, 25]), (15, [5, 25]), (16, [5, 15, 25]), (26, [5, 15, 25]),
        ):  # fmt: skip
            loaded = store.load(wanted, {0: before_ms}, ("count",))
            assert sorted(loaded.end_ms.tolist()) == ends


@pytest.mark.parametrize("change", [
    lambda raw: raw[:-1], lambda raw: raw + b"N", lambda raw: raw[:20] + bytes([raw[20] ^ 1]) + raw[21:],
    lambda raw: b"", lambda raw: b"\x00" * len(raw),
])  # fmt: skip
def test_damage_is_found_among_many(tmp_path: Path, change: Any) -> None:
    state = some()
    with RocksDBSessionStore(name="s", directory=tmp_path) as store:
        store.commit(state.take(np.empty(0, np.intp)), state, {})
        at, values = store._database.rows(ROWS, BEHIND)
        for hurt in (0, 17, 59):
            with pytest.raises(StoreCorrupted), store.all_or_nothing():
                store._database.change({at[hurt]: change(values[hurt])})
                store.load(state.key, {0: -1}, ("count",))


def test_keys_that_are_none_are_damage(tmp_path: Path) -> None:
    state = some()
    with RocksDBSessionStore(name="s", directory=tmp_path) as store:
        store.commit(state.take(np.empty(0, np.intp)), state, {})
        at, values = store._database.rows(ROWS, BEHIND)
        strange = at[3].replace(b"user", b"\xff\xff\xff\xff")
        fields = unpack_value(values[3], at[3])
        for key in (strange, at[3][:20]):
            with pytest.raises(StoreCorrupted), store.all_or_nothing():
                store._database.change({key: pack_value(fields, key)})
                store.load(state.key, {0: 10_000}, ("count",))


@pytest.mark.parametrize("lost", [0, 1])
def test_a_row_that_is_in_the_index_only_is_damage(tmp_path: Path, lost: int) -> None:
    """Or the other way round."""
    state = some()
    with RocksDBSessionStore(name="s", directory=tmp_path, time_ordered=True) as store:
        store.commit(state.take(np.empty(0, np.intp)), state, {})
        at, _ = store._database.rows(ROWS, BEHIND)
        gone = next(key for key in at if key[13] == lost)
        with pytest.raises(StoreCorrupted, match="index and rows differ"), store.all_or_nothing():
            store._database.change({gone: None})
            store.load(state.key, {0: -1}, ("count",))


def test_keys_of_another_type_are_refused_at_once(tmp_path: Path) -> None:
    state = some()
    with RocksDBSessionStore(name="s", directory=tmp_path) as store:
        store.commit(state.take(np.empty(0, np.intp)), state, {})
        with pytest.raises(InvalidArgument, match="its keys are str"):
            store.commit(state, state._replace(key=pa.array(range(60))), {})
        assert len(store) == 60


@pytest.mark.parametrize("at", [0, 1, 2])
def test_one_window_that_is_refused_refuses_all(tmp_path: Path, at: int) -> None:
    here, state = np.arange(3) == at, some(3)
    named = [("x" * 32_769 if is_here else "x" * 32_768) for is_here in here.tolist()]
    long_keys = pa.array(named, pa.large_string())
    with RocksDBSessionStore(name="s", directory=tmp_path) as store:
        for wrong in (
            state._replace(start_ms=np.where(here, -1, state.start_ms)),
            state._replace(end_ms=np.where(here, state.start_ms - 1, state.end_ms)),
            state._replace(partition=np.where(here, -1, 0)),
            state._replace(partition=np.where(here, 2**32, 0)),
            state._replace(key=long_keys),
        ):
            with pytest.raises(InvalidArgument):
                store.commit(state.take(np.empty(0, np.intp)), wrong, {})
        assert len(store) == 0
        right = state._replace(key=long_keys, partition=np.full(3, 2**32 - 1)).take(np.flatnonzero(~here))
        store.commit(state.take(np.empty(0, np.intp)), right, {})
        assert len(store) == 2


def test_the_checksum_is_zlibs() -> None:
    for size in (0, 1, 7, 8, 9, 63, 200):
        body = bytes(range(200))[:size]
        packed = column_codec.pack_fields(pa.array([body], pa.large_binary()), some(1, count=pa.array([size])))
        assert packed is not None
        (raw,) = packed.to_pylist()
        assert int.from_bytes(raw[:4]) == zlib.crc32(raw[4:], zlib.crc32(body))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [pa.int16(), pa.uint64(), pa.float32()])
@pytest.mark.parametrize("make", [sk.min, sk.max, sk.first, sk.last, sk.collect])
def test_columns_of_fewer_bits_go_on_where_they_stopped(tmp_path: Path, kind: pa.DataType, make: Any) -> None:
    values = pa.array([3, None, 5], kind)

    def day(start: int) -> pa.Table:
        return pa.table({"user": ["a", "b", "a"], "ts": [start, start + 5, start + 9], "v": values})

    keyed = group_in_ms("user", timestamp="ts")
    plan = keyed.windowed_by(sk.SessionWindows(inactivity_gap="1s", grace="1s")).aggregate(x=make("v"))
    tables = []
    for store in (sk.open_store("memory", "s"), sk.open_store("rocksdb", "s", directory=tmp_path)):
        with store:
            plan.run(day(0), store=store)
            tables.append(plan.run(day(20), store=store).table())
    assert tables[0].equals(tables[1])
