"""The session store on disk: Kafka's RocksDB order and expiry, commits, reopening, refusals; and what it shows."""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from rocksdict import Options, Rdict

import sessionkit as sk
from sessionkit.errors import (
    InvalidArgument,
    InvalidData,
    NotBuilt,
    StoreClosed,
    StoreCorrupted,
    StoreFailed,
    StoreLocked,
    StoreMismatch,
    UnsupportedData,
    shorten,
)
from sessionkit.stores.contract import Snapshot
from sessionkit.stores.rocksdb.disk import folder
from sessionkit.stores.rocksdb.disk import open_strictly as strict
from sessionkit.stores.rocksdb.disk.database import Cursor
from sessionkit.stores.rocksdb.row_space import HEADER
from sessionkit.stores.rocksdb.sessions import RocksDBSessionStore
from sessionkit.stores.typed_bytes import Place
from tests.contract.stores_model import KafkaRows, OnDisk, SessionMachine, Spans, sort_key, spans_of
from tests.contract.stores_model import session_columns as columns
from tests.interpreted import fewer
from tests.kinds import group_in_ms, in_ms
from tests.memory import MEMORY

pytestmark = pytest.mark.lengthy

# In memory where there is such a place: what a loss of power would leave is not asked here.


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as place:
        yield Path(place)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Where the stores of a test lie."""
    return tmp_path / "state"


def opened(directory: Path, **options: Any) -> RocksDBSessionStore:
    return RocksDBSessionStore(**{"name": "clicks", "directory": directory, **options})


def refused(error: type[Exception], telling: str, directory: Path, **options: Any) -> None:
    with pytest.raises(error, match=telling):
        opened(directory, **options)


def filled(directory: Path, spans: Spans, **options: Any) -> RocksDBSessionStore:
    """A store with these sessions, each with its own span as the aggregate."""
    store = opened(directory, **options)
    for key, start, end in spans:
        assert store.put(key, start, end, f"{key}{start}-{end}")
    return store


# ---- order: segment, then key, end and start

MIXED: Spans = [
    ("b", 5, 9), ("a", 1, 9), ("a", 7, 9), ("a", 0, 3), ("b", 90, 120), ("a", 4, 9), ("", 9, 9), ("a", 99, 99),
]  # fmt: skip
IN_ORDER: Spans = [
    ("", 9, 9), ("a", 0, 3), ("a", 1, 9), ("a", 4, 9), ("a", 7, 9), ("a", 99, 99), ("b", 5, 9), ("b", 90, 120),
]  # fmt: skip
SEGMENTED: Spans = [*IN_ORDER[:5], ("b", 5, 9), ("a", 99, 99), ("b", 90, 120)]
BY_END: Spans = [
    ("a", 0, 3), ("a", 1, 9), ("a", 4, 9), ("b", 5, 9), ("a", 7, 9), ("", 9, 9), ("a", 99, 99), ("b", 90, 120),
]  # fmt: skip


@pytest.mark.parametrize("time_ordered", [False, True])
@pytest.mark.parametrize(("interval", "expected"), [(1000, IN_ORDER), (50, SEGMENTED)])
def test_ranges_come_by_segment_key_end_and_start(
    directory: Path, time_ordered: bool, interval: int, expected: Spans
) -> None:
    with filled(directory, MIXED, time_ordered=time_ordered, segment_interval=f"{interval}ms") as store:
        assert spans_of(store.all()) == expected
        assert spans_of(store.fetch(None, None)) == expected
        assert spans_of(store.find_sessions_in_keys(None, None, 0, 120)) == expected
        assert spans_of(store.backward_fetch(None, None)) == expected[::-1]
        assert spans_of(store.backward_find_sessions_in_keys(None, None, 0, 120)) == expected[::-1]
        of_a = [("a", 0, 3), ("a", 1, 9), ("a", 4, 9), ("a", 7, 9), ("a", 99, 99)]
        assert spans_of(store.fetch("a")) == spans_of(store.find_sessions("a", 0, 120)) == of_a
        assert spans_of(store.backward_fetch("a")) == spans_of(store.backward_find_sessions("a", 0, 120)) == of_a[::-1]
        places = [sort_key(store._space, Place(key.encode(), start, end)) for key, start, end in expected]
        assert places == sorted(places)


def test_by_end_comes_by_end_start_and_key(directory: Path) -> None:
    with filled(directory, MIXED, time_ordered=True, segment_interval="50ms") as store:
        assert spans_of(store.find_sessions_by_end(0, 120)) == BY_END
        assert spans_of(store.find_sessions_by_end(4, 99)) == BY_END[1:-1]
        assert spans_of(store.find_sessions_by_end(-(2**63), 2**63 - 1)) == BY_END
        assert spans_of(store.find_sessions_by_end(10, 9)) == []


def test_the_ordinary_form_does_not_know_the_order_of_time(directory: Path) -> None:
    with (
        filled(directory, MIXED) as store,
        pytest.raises(NotBuilt, match=r"store 'clicks' is not in order of time; .*"),
    ):
        store.find_sessions_by_end(0, 120)


@pytest.mark.parametrize("time_ordered", [False, True])
def test_put_replaces_and_null_deletes(directory: Path, time_ordered: bool) -> None:
    with filled(directory, [("ada", 5, 9)], time_ordered=time_ordered) as store:
        store.put("ada", 5, 9, "new")
        assert [s.aggregate for s in store.all()] == ["new"]
        store.put("ada", 5, 9, None)
        assert (len(store), store.fetch_session("ada", 5, 9)) == (0, None)
        store.put("ada", 5, 9, None)  # there is nothing to delete
        store.put("ada", 5, 9, None, keep_null=True)
        assert [s.aggregate for s in store.all()] == [None]
        store.put("ada", 6, 9, 1, opened_by=3, closed_by=8)
        store.remove("ada", 5, 9)
        store.remove("ada", 5, 9)
        store.remove("ada", 9, 5)
        assert list(store.fetch("ada")) == [(6, 9, 1, "ada", 3, 8, -1)]


# ---- expiry (Kafka's segments)


def test_a_put_is_refused_when_its_segment_has_expired(directory: Path) -> None:
    with opened(directory, retention="3000ms", segment_interval="1000ms") as store:
        assert store.put("ada", 0, 5999, 1)
        assert store.put("ada", 2000, 2000, 2)  # segment 2 is live: (5999 - 3000) / 1000
        assert not store.put("ada", 1999, 1999, 3)
        assert list(store.all()) == [(0, 5999, 1, "ada", -1, -1, -1)]  # what was taken is hidden all the same
        assert store.put("ada", 6000, 6000, 4)
        assert not store.put("ada", 2999, 2999, None)


def test_reads_hide_what_lies_behind_the_retention(directory: Path) -> None:
    with filled(directory, [("ada", 0, 90), ("ada", 0, 91)], retention="10ms") as store:
        store.put("bob", 100, 100, 1)
        assert store.fetch_session("ada", 0, 90) is None
        assert store.fetch_session("ada", 0, 91) == "ada0-91"
        left: Spans = [("ada", 0, 91), ("bob", 100, 100)]
        assert spans_of(store.all()) == spans_of(store.find_sessions_in_keys("a", "c", 0, 200)) == left
        assert spans_of(store.find_sessions("ada", 0, 200)) == spans_of(store.fetch("ada")) == left[:1]
        assert len(store) == 2


@pytest.mark.parametrize("retention", [3000, 0])
def test_by_end_sees_all_that_is_in_live_segments(directory: Path, retention: int) -> None:
    with opened(directory, retention=in_ms(retention), segment_interval="1000ms", time_ordered=True) as store:
        for end in (999, 1000, 1999, 4999):
            store.put("ada", end, end, end)
        ends = [s.window_end_ms for s in store.find_sessions_by_end(0, 9999)]
        assert ends == ([1000, 1999, 4999] if retention else [4999])
        assert [s.window_end_ms for s in store.all()] == ([4999] if retention else [])
        with store.all_or_nothing():
            store.put("ada", 6000, 6000, 1)  # the next put drops segments 1 and 2
        assert [s.window_end_ms for s in store.find_sessions_by_end(0, 9999)] == ([4999, 6000] if retention else [6000])


def test_a_restarted_task_has_observed_nothing(directory: Path) -> None:
    """Rows behind the retention are seen again until the next put; dropped segments stay dropped."""
    with opened(directory, retention="2min") as store:
        for end in (0, 100_000, 230_000):
            store.put("a", end, end, 1)
        store.commit_snapshots({0: Snapshot(7, 230_000, 200_000)})
        assert spans_of(store.all()) == [("a", 230_000, 230_000)]
        store.restart_task()
        assert spans_of(store.all()) == [("a", 100_000, 100_000), ("a", 230_000, 230_000)]
        assert store.snapshot(0) == Snapshot(7, -1, 200_000)
    with opened(directory, retention="2min") as store:
        assert store.snapshot(0) == Snapshot(7, -1, 200_000)
        assert len(spans_of(store.all())) == 2
        store.put("b", 240_000, 240_000, 1)
        assert spans_of(store.all()) == [("a", 230_000, 230_000), ("b", 240_000, 240_000)]


def test_a_restored_store_has_observed_the_largest_time_that_was_ever_put(directory: Path) -> None:
    """Also where its task has been restarted on the same disk meanwhile, and let old segments come back."""
    with opened(directory, retention="2min") as store:
        for end in (0, 100_000, 230_000):
            store.put("a", end, end, 1)
        store.commit_snapshots({0: Snapshot(7, 230_000, 200_000)})
        store.restart_task()
        assert store.put("a", 5, 5, 1)
        store.restart_task("changelog")
        assert spans_of(store.all()) == [("a", 230_000, 230_000)]
        assert not store.put("a", 6, 6, 1)  # its segment has expired
        assert store.snapshot(0) == Snapshot(7, -1, 200_000)


def test_a_store_whose_task_was_killed_has_observed_what_it_had_since_it_was_opened(directory: Path) -> None:
    with opened(directory, retention="2min") as store:
        for end in (0, 100_000, 230_000):
            store.put("a", end, end, 1)
        store.restart_task("killed")
        assert spans_of(store.all()) == [("a", 230_000, 230_000)]
        store.restart_task("disk")
        store.put("a", 5, 5, 1)
        store.restart_task("killed")
        assert spans_of(store.all()) == [("a", 5, 5), ("a", 100_000, 100_000), ("a", 230_000, 230_000)]


def test_a_dropped_segment_is_gone_from_disk(directory: Path) -> None:
    with opened(directory, retention="10ms", segment_interval="10ms", time_ordered=True) as store:
        for end in range(100):
            store.put("ada", end, end, end)
        assert sum(1 for _ in store._space.walk(store._database, store._question(0)._replace(from_ms=0))) == 20
    rows = Rdict(str(directory / "clicks" / "rows"), Options(raw_mode=True))
    assert sum(key.startswith(b"\2") for key in list(rows.keys())) == 40  # each has its row in the index
    rows.close()


def test_a_segment_made_and_dropped_in_one_block(directory: Path) -> None:
    with opened(directory, retention="10ms", segment_interval="10ms", time_ordered=True) as store:
        with store.all_or_nothing():
            for end in (5, 15, 35, 95):
                store.put("ada", end, end, end)
            assert [s.window_end_ms for s in store.find_sessions_by_end(0, 99)] == [95]
            assert store._database.pending.dropped == {}
        assert [s.window_end_ms for s in store.find_sessions_by_end(0, 99)] == [95]


def test_without_retention_nothing_expires(directory: Path) -> None:
    with filled(directory, [("ada", 0, 0), ("ada", 2**62, 2**62), ("ada", 5, 2**63 - 1)]) as store:
        assert len(store) == 3
        assert [s.window_end_ms for s in store.backward_fetch("ada")] == [2**63 - 1, 2**62, 0]
        assert store._space.segments.interval_ms == 60_000


def test_a_removed_end_is_observed_as_by_kafka(directory: Path) -> None:
    with filled(directory, [("ada", 5, 9)], retention="10ms", time_ordered=True) as store:
        store.remove("bob", 0, 50)
        assert list(store.all()) == []
        assert spans_of(store.find_sessions_by_end(0, 99)) == [("ada", 5, 9)]


class KafkaModel(KafkaRows):
    """What a remove and each read of Kafka's RocksDB session store does, one line each."""

    def remove(self, row: tuple[str, int, int]) -> None:
        self.observed = max(self.observed, row[2])
        self.rows.pop(row, None)

    def reads(self, low: str | None, high: str | None, end: int, start: int) -> Spans:
        seen = end if self.retention is None else max(end, self.observed - self.retention + 1)
        found = [at for at in self.rows if at[2] >= seen and at[1] <= start]
        found = [at for at in found if (low is None or low <= at[0]) and (high is None or at[0] <= high)]
        return sorted(found, key=lambda at: (at[2] // self.interval, at[0], at[2], at[1]))

    def by_end(self, first: int, last: int) -> Spans:
        return sorted((at for at in self.rows if first <= at[2] <= last), key=lambda at: (at[2], at[1], at[0]))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "null", "remove", "reopen", "fail", "pass"]),
        st.sampled_from(["a", "b", "ab"]),
        st.integers(0, 60),
        st.integers(0, 5),
    ),
    max_size=25,
)


@pytest.fixture(scope="module")
def machine_directory() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        yield Path(directory)


@pytest.mark.slow
@settings(max_examples=fewer(40))
@given(STEPS, st.none() | st.integers(0, 30), st.integers(1, 12), st.booleans())
def test_equals_a_list_that_does_what_kafka_does(
    machine_directory: Path, steps: list[Any], retention: int | None, interval: int, time_ordered: bool
) -> None:
    name = f"s{len(os.listdir(machine_directory))}"
    options = {
        "name": name,
        "retention": in_ms(retention),
        "segment_interval": in_ms(interval),
        "time_ordered": time_ordered,
    }
    store, model = opened(machine_directory, **options), KafkaModel(retention, interval)
    try:
        for number, (what, key, start, length) in enumerate(steps):
            row = (key, start, start + length)
            if what == "remove":
                store.remove(*row)
                model.remove(row)
            elif what in ("put", "null"):
                value = number if what == "put" else None
                assert store.put(*row, value) == model.put(row, value)
            elif what == "reopen":
                store.commit_snapshots({0: Snapshot(number, 5, 3)})
                store.close()
                store = opened(machine_directory, **options)
                assert store.snapshot(0) == Snapshot(number, 5, 3)
            else:
                settle(store, model, row, number, fails=what == "fail")
            compare(store, model, key, start, length)
    finally:
        store.close()


def settle(store: RocksDBSessionStore, model: KafkaModel, row: Any, number: int, *, fails: bool) -> None:
    """Changes in a block that raises, or that does not: there and after it, reads see what holds."""
    before = list(store.all())
    try:
        with store.all_or_nothing():
            twin = KafkaModel(model.retention, model.interval)
            twin.rows, twin.observed = dict(model.rows), model.observed
            for each in (row, ("b", row[1] + 9, row[2] + 20), ("a", row[1], row[2])):
                assert store.put(*each, number) == twin.put(each, number)
            store.remove("b", row[1] + 9, row[2] + 20)
            twin.remove(("b", row[1] + 9, row[2] + 20))
            compare(store, twin, row[0], row[1], 3)
            if fails:
                raise KeyError
    except KeyError:
        assert list(store.all()) == before
    else:
        model.rows, model.observed = twin.rows, twin.observed


def compare(store: RocksDBSessionStore, model: KafkaModel, key: str, start: int, length: int) -> None:
    everything = model.reads(None, None, 0, 999)
    assert spans_of(store.all()) == everything
    assert [s.aggregate for s in store.all()] == [model.rows[at] for at in everything]
    assert spans_of(store.backward_fetch(None, None)) == everything[::-1]
    assert spans_of(store.find_sessions(key, start, start + length)) == model.reads(key, key, start, start + length)
    assert spans_of(store.fetch("a", "ab")) == model.reads("a", "ab", 0, 999)
    shown = model.reads(key, key, 0, 999)
    for at in model.rows:
        if at[0] == key:
            assert store.fetch_session(*at) == (model.rows[at] if at in shown else None)
    if store.time_ordered:
        assert spans_of(store.find_sessions_by_end(start, start + 9)) == model.by_end(start, start + 9)


@pytest.mark.slow
def test_any_calls_in_any_order_are_answered_from_many_segments() -> None:
    machine = type("OnDisk", (OnDisk, SessionMachine), {"forms": [{}, {"time_ordered": True}]})
    run_state_machine_as_test(machine, settings=settings(max_examples=fewer(40), stateful_step_count=20))


# ---- state between runs


@pytest.mark.parametrize("time_ordered", [False, True])
@pytest.mark.parametrize("many", [0, 60])  # few keys are looked up one by one, for many all rows are read once
def test_what_was_committed_is_loaded(directory: Path, many: int, time_ordered: bool) -> None:
    others = [(f"other{i}", 0, 500, 600, -1, -1, i) for i in range(many)]
    snapshots = {0: Snapshot(17, 900, 800), 2: Snapshot(4, 50, -1)}
    with opened(directory, time_ordered=time_ordered) as store:
        rows = [("a", 0, 1, 5, 3, -1, [1, "x"]), ("b", 2, 7, 9, 8, 11, None), *others]
        store.commit(columns([]), columns(rows), snapshots)
    with opened(directory, time_ordered=time_ordered) as store:
        assert (store.snapshot(0), store.snapshot(2), store.snapshot(1)) == (*snapshots.values(), Snapshot())
        loaded = store.load(pa.array(["a", "b"]), {0: 0, 2: 0}, ("count",))
        assert loaded.key.to_pylist() == ["a", "b"]
        assert [column.tolist() for column in loaded[1:6]] == [[0, 2], [1, 7], [5, 9], [3, 8], [-1, 11]]
        assert loaded.aggregates["count"].tolist() == [[1, "x"], None]
        for key in ("x", "a"):  # to be closed, and asked for as well
            assert store.load(pa.array([key]), {0: 6}, ("count",)).key.to_pylist() == ["a"]
        assert len(store.load(pa.array(["a"]), {}, ("count",)).key) == 0
        assert len(store.load(pa.array(["a"]), {0: -5}, ("count",)).key) == 1
        assert store.load(pa.array(["x"] * 99), {0: 0}, ("count",)).key.to_pylist() == []
        store.commit(loaded, columns([("a", 0, 1, 6, 3, -1, 11)]), {})
        assert spans_of(store.fetch("a")) == [("a", 1, 6)]
        assert spans_of(store.all(partition=2)) == []
        with pytest.raises(InvalidData, match=r"holds the results of another plan; got \['count'\] in it, \['n'\]"):
            store.load(pa.array(["a"]), {0: 0}, ("n",))


def test_observed_time_is_forgotten_unless_a_plan_committed_it(directory: Path) -> None:
    for partition, committed in ((0, False), (1, True)):
        with opened(directory, retention="10ms") as store:
            store.put("ada", 0, 80, 1, partition=partition)
            store.put("ada", 95, 100, 2, partition=partition)
            if committed:
                store.commit_snapshots({partition: Snapshot(1, 100, 90)})
    with opened(directory, retention="10ms") as store:
        assert [s.window_end_ms for s in store.all(partition=0)] == [80, 100]
        assert [s.window_end_ms for s in store.all(partition=1)] == [100]


def test_a_block_reaches_the_disk_with_its_position_or_not_at_all(directory: Path) -> None:
    """What is on disk while the store is open is what a crash would leave."""
    with opened(directory) as store:
        store.put("ada", 5, 9, 1)
        with store.all_or_nothing():
            store.put("ada", 5, 9, 2)
            store.put("bob", 5, 9, 2)
        assert after_a_crash(directory) == (["ada1"], -1)
        store.commit_snapshots({0: Snapshot(7, 9, -1)})
        assert after_a_crash(directory) == (["ada2", "bob2"], 7)
        with pytest.raises(UnsupportedData):
            store.commit(columns([]), columns([("eve", 0, 1, 2, 3, -1, 1), ("eve", 0, 5, 6, 4, -1, object())]), {})
        with store.all_or_nothing():
            store.remove("bob", 5, 9)
        store.put("cat", 5, 9, 3)
        assert after_a_crash(directory) == (["ada2", "cat3"], 7)
        with store.all_or_nothing():
            store.put("dan", 5, 9, 4)
            store.commit_snapshots({0: Snapshot(8, 9, -1)})
            assert after_a_crash(directory) == (["ada2", "cat3"], 7)
        assert after_a_crash(directory) == (["ada2", "cat3", "dan4"], 8)
        with store.all_or_nothing():
            store.put("ada", 5, 9, None)
    with opened(directory) as store:
        assert [s.key for s in store.all()] == ["cat", "dan"]


def after_a_crash(directory: Path) -> tuple[list[str], int]:
    with tempfile.TemporaryDirectory(dir=MEMORY) as elsewhere:
        shutil.copytree(directory / "clicks", Path(elsewhere) / "clicks")
        with opened(Path(elsewhere)) as store:
            return [f"{s.key}{s.aggregate}" for s in store.all()], store.snapshot(0).position


def test_a_plan_goes_on_where_it_stopped(directory: Path) -> None:
    plan = group_in_ms("user", offset="offset")
    plan = plan.windowed_by(sk.SessionWindows(inactivity_gap_ms=10, grace_ms=10)).aggregate(
        n=sk.count(), total=sk.sum("v")
    )
    frame = pd.DataFrame(
        {"user": ["ada", "bob", "ada", "ada"], "at": [5, 6, 12, 40], "v": [1, 2, 3, 4], "offset": range(4)}
    )
    whole = plan.run(frame).table()
    with opened(directory) as store:
        first = plan.run(frame[:2], store=store).table()
    with opened(directory) as store:
        assert store.snapshot(0).position == 1
        assert [s[:4] for s in store.all()] == [
            (5, 5, {"n": 1, "total": 1}, "ada"),
            (6, 6, {"n": 1, "total": 2}, "bob"),
        ]
        again = plan.run(frame, store=store)
        assert again.metrics()["replayed-records"] == 2
        both = pd.concat([first, again.table()]).drop_duplicates(["key", "window_start_ms"], keep="last")
        order = ["key", "window_start_ms"]
        pd.testing.assert_frame_equal(*(f.sort_values(order).reset_index(drop=True) for f in (both, whole)))


# ---- what it refuses


def test_other_settings_are_refused_by_name(directory: Path) -> None:
    filled(directory, [("ada", 5, 9)], retention="1h").close()
    others: dict[str, dict[str, Any]] = {
        "retention 1 h, not 2 h; segment_interval 30 min, not 1 h": {"retention": "2h"},
        "retention 1 h, not none; segment_interval 30 min, not 1 min": {},
        "segment_interval 30 min, not 5 s": {"retention": "1h", "segment_interval": "5s"},
        "time_ordered False, not True; index False, not True": {"retention": "1h", "time_ordered": True},
    }
    for telling, options in others.items():
        with pytest.raises(StoreMismatch) as caught:
            opened(directory, **options)
        assert f"store 'clicks' was made with other settings; got {telling}" in str(caught.value)
        assert "open it as it was made, or use another name" in str(caught.value)
    with opened(directory, retention="1h") as store:
        assert len(store) == 1


def test_windows_with_other_parameters_are_refused(directory: Path) -> None:
    parameters = {"kind": "SessionWindows", "inactivity_gap_ms": 10, "grace_ms": 5}
    with opened(directory) as store:
        with pytest.raises(UnsupportedData):
            store.bind({"kind": object()})
        store.bind(parameters)
        store.bind(parameters)
    with opened(directory) as store:
        with pytest.raises(StoreMismatch, match="got grace_ms 5, not 7; open it as it was made"):
            store.bind({**parameters, "grace_ms": 7})
        with pytest.raises(StoreMismatch, match="got grace_ms 5, not None"):
            store.bind({"kind": "SessionWindows", "inactivity_gap_ms": 10})
        store.bind(parameters)


def test_a_store_is_open_once(directory: Path) -> None:
    with opened(directory) as store:
        refused(StoreLocked, r"store 'clicks' is open already; got .*clicks; close it there first", directory)
        store.put("ada", 5, 9, 1)
    Rdict(str(directory / "clicks" / "rows"), Options(raw_mode=True)).close()
    rows = Rdict(str(directory / "other" / "rows"), Options(raw_mode=True))  # by someone who does not know our lock
    shutil.copy(directory / "clicks" / "STORE", directory / "other" / "STORE")
    with pytest.raises(StoreLocked):
        opened(directory, name="other")
    rows.close()


def test_a_store_whose_lock_another_holds_is_not_opened(directory: Path) -> None:
    """Though RocksDB itself does not have it open yet: the other may just be checking its files."""
    opened(directory).close()
    with (directory / "clicks" / "LOCK").open("r+b") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreLocked):
            opened(directory)
    opened(directory).close()


def test_a_directory_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for directory in ("a\0b", 7, None, tmp_path / "file"):
        with pytest.raises(InvalidArgument, match="directory cannot be used"):
            opened(directory)  # type: ignore[arg-type]
    (tmp_path / "clicks").write_text("mine")
    refused(InvalidArgument, "store 'clicks' is not a folder", tmp_path)
    assert (tmp_path / "clicks").read_text() == "mine"
    refused(
        StoreFailed,
        r"store '\w+' cannot be made; got .*; check the free space, the permissions and the disk at ",
        Path("/proc"),
    )


def test_links_are_not_followed(directory: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    filled(outside, [("ada", 5, 9)]).close()
    before = sorted(outside.rglob("*"))
    directory.mkdir()
    (directory / "clicks").symlink_to(outside / "clicks")
    refused(InvalidArgument, r"store 'clicks' is a link; got .*; a folder: links are not followed", directory)
    (directory / "dangling").symlink_to(tmp_path / "nowhere")
    refused(InvalidArgument, "is a link", directory, name="dangling")
    for inside in ("rows", "STORE", "LOCK", "CLOSED", "rows/CURRENT"):
        shutil.rmtree(directory / "mine", ignore_errors=True)
        shutil.copytree(outside / "clicks", directory / "mine")
        target = directory / "mine" / inside
        (shutil.rmtree if target.is_dir() else os.unlink)(target)
        target.symlink_to(outside / "clicks" / inside)
        with pytest.raises((StoreCorrupted, StoreFailed)):
            opened(directory, name="mine")
    assert sorted(outside.rglob("*")) == before
    (tmp_path / "link").symlink_to(outside)  # the directory itself is the user's choice
    with opened(tmp_path / "link") as store:
        assert len(store) == 1


def test_a_folder_of_somebody_else_is_left_alone(directory: Path) -> None:
    (directory / "clicks").mkdir(parents=True)
    (directory / "clicks" / "diary.txt").write_text("dear diary")
    refused(StoreCorrupted, "no file STORE; it is not a store of this version of sessionkit", directory)
    assert os.listdir(directory / "clicks") == ["diary.txt"]
    (directory / "empty").mkdir()
    opened(directory, name="empty").close()


class Attack:
    """Runs when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (os.mkdir, (f"{tempfile.gettempdir()}/a-pickle-was-run",))


def test_a_store_full_of_pickles_is_opened_harmlessly(directory: Path) -> None:
    """rocksdict's own default would run them when they are read."""
    filled(directory, [("ada", 5, 9)]).close()
    rows = directory / "clicks" / "rows"
    raw = Rdict(str(rows), Options(raw_mode=True))
    keys = list(raw.keys())
    raw.close()
    pickled = Rdict(str(directory / "pickled" / "rows"))  # not in raw mode: what is put is pickled
    for key in (*keys, "text", 1):
        pickled[key] = Attack()
    pickled.close()
    refused(StoreCorrupted, "no file STORE", directory, name="pickled")
    shutil.copy(directory / "clicks" / "STORE", directory / "pickled" / "STORE")
    with pytest.raises(StoreCorrupted):
        opened(directory, name="pickled")

    disguised = Rdict(str(rows), Options(raw_mode=True))
    header, made_for = min(keys), max(keys)
    import pickle

    for key in keys:
        if key not in (header, made_for):
            disguised[key] = pickle.dumps(Attack())
    disguised.close()
    (directory / "clicks" / "CLOSED").unlink()
    with opened(directory) as store:
        for read in (lambda: list(store.all()), lambda: store.fetch_session("ada", 5, 9), store.to_pandas):
            with pytest.raises(
                StoreCorrupted, match="store 'clicks' is damaged; got a stored value fails its checksum"
            ):
                read()
    assert not os.path.exists(f"{tempfile.gettempdir()}/a-pickle-was-run")


def test_what_is_changed_while_it_is_closed_is_noticed(directory: Path) -> None:
    filled(directory, [("ada", 5, 9)]).close()
    rows = directory / "clicks" / "rows"
    (rows / "000999.log").write_bytes(b"")
    refused(StoreCorrupted, r"000999.log was not there since the store was closed; nothing was deleted", directory)
    (rows / "000999.log").unlink()
    (rows / "IDENTITY").write_bytes(b"other")
    refused(StoreCorrupted, "IDENTITY was changed since the store was closed", directory)
    (rows / "IDENTITY").unlink()
    refused(StoreCorrupted, "IDENTITY is missing since the store was closed", directory)


def test_a_damaged_block_is_noticed_by_every_scan(directory: Path) -> None:
    """RocksDB's iterator just ends there, unless it is asked why."""
    filled(directory, [(f"key {number}", 5, 9) for number in range(500)]).close()
    opened(directory).close()  # made a table of the log
    (table, *_) = sorted((directory / "clicks" / "rows").glob("*.sst"), key=lambda file: -file.stat().st_size)
    raw = bytearray(table.read_bytes())
    raw[len(raw) * 6 // 10] ^= 1  # the header of the store lies at the front
    table.write_bytes(raw)
    with opened(directory) as store:
        assert list(store.fetch("key 0")) == [(5, 9, "key 05-9", "key 0", -1, -1, -1)]  # in a block that is whole
        for read in (store.all, lambda: store.backward_fetch(None, None), lambda: store.fetch("key 1", "key 9")):
            with pytest.raises(
                StoreCorrupted, match="store 'clicks' is damaged; got Corruption: block checksum mismatch"
            ):
                list(read())
        for read in (lambda: len(store), lambda: store.load(pa.array(["x"] * 99), {0: 0}, ("count",))):
            with pytest.raises(StoreCorrupted, match="block checksum mismatch"):
                read()


def test_a_store_that_was_not_closed_is_tried_elsewhere_first(directory: Path) -> None:
    filled(directory, [("ada", 5, 9)]).close()
    (directory / "clicks" / "CLOSED").unlink()
    with opened(directory) as store:
        assert len(store) == 1
    (directory / "clicks" / "CLOSED").unlink()
    (manifest,) = (directory / "clicks" / "rows").glob("MANIFEST-*")
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[:6] + bytes([whole[6] ^ 4]) + whole[7:])  # here RocksDB would read for ever
    refused(StoreCorrupted, r"got it was not closed, and MANIFEST-\d+ is damaged at byte 0; nothing was", directory)
    manifest.write_bytes(whole)
    (directory / "clicks" / "rows" / "CURRENT").write_bytes(b"MANIFEST-999999\n")
    refused(StoreCorrupted, r"store 'clicks' is damaged; got .*\(it was not closed\); .* read the source", directory)


@pytest.mark.parametrize("aggregate", [object(), {1: 2}, 2**63, "\ud800", np.array([1])])
def test_what_cannot_be_written_is_refused_and_nothing_is_changed(directory: Path, aggregate: Any) -> None:
    with filled(directory, [("ada", 5, 9)], retention="10ms") as store:
        with pytest.raises(UnsupportedData, match="this aggregation has no encode= and decode= for other types"):
            store.put("ada", 5, 100, aggregate)
        assert [s.aggregate for s in store.all()] == ["ada5-9"]


def test_a_key_that_is_too_long(directory: Path) -> None:
    with opened(directory) as store:
        for call in (lambda: store.put("x" * 32_769, 5, 9, 1), lambda: store.find_sessions("x" * 32_769, 0, 9)):
            with pytest.raises(InvalidArgument, match="a key is too long"):
                call()


def test_a_store_has_one_type_of_key(directory: Path) -> None:
    filled(directory, [(np.int64(1), np.int64(5), 9)]).close()
    with opened(directory) as store:
        for key in ("\0\0\0\0\0\0\0\1", b"\0\0\0\0\0\0\0\1"):
            with pytest.raises(
                InvalidArgument, match=r"store 'clicks' holds keys of another type; .*; its keys are int"
            ):
                store.put(key, 5, 9, 2)
        assert [s[:4] for s in store.all()] == [(5, 9, "15-9", 1)]


def test_an_answer_is_fixed_in_a_block_too(directory: Path) -> None:
    with filled(directory, [("a", 1, 2)]) as store, store.all_or_nothing():
        store.put("b", 1, 2, "new")
        found = store.all()
        for key in "ab":
            store.remove(key, 1, 2)
        store.put("c", 1, 2, "newer")
        assert [session.aggregate for session in found] == ["a1-2", "new"]
        assert [session.aggregate for session in store.all()] == ["newer"]


def test_an_answer_ends_when_the_store_is_closed(directory: Path) -> None:
    store = filled(directory, [("ada", 5, 9), ("bob", 5, 9)])
    found, unread = store.all(), store.all()
    next(found)
    next(unread)
    store.close()
    for call in (lambda: next(found), lambda: store.all_or_nothing().__enter__()):
        with pytest.raises(StoreClosed, match="store 'clicks' is closed"):
            call()
    with opened(directory) as store:  # an answer that nobody read to its end does not keep the folder
        assert len(store) == 2
        assert unread is not None
        with pytest.raises(StoreClosed), store.all_or_nothing():
            store.close()
            store.put("eve", 5, 9, 1)


# ---- to look at


def test_it_shows_itself(directory: Path) -> None:
    with filled(directory, [("bob", 0, 5), ("<b>", 7, 9)], retention="1m", time_ordered=True) as store:
        store.put("eve", 1, 2, [1], partition=4)
        assert repr(store) == "RocksDBSessionStore('clicks'): 3 sessions, kept for 1 min"
        assert store.to_pandas()["key"].tolist() == ["<b>", "bob", "eve"]
        shown = store._repr_html_()
        oldest = "oldest: a session that ends at 1970-01-01 00:00:00.002; newest: a session that ends at "
        assert f"<li>{oldest}1970-01-01 00:00:00.009 (UTC)</li>" in shown
        expires = "the oldest expires when a session that ends at 1970-01-01 00:01:00.002 is put into partition 4"
        assert f"<li>{expires}</li>" in shown
        assert f" MB on disk, in {directory / 'clicks'}</li>" in shown


def test_oldest_and_newest_are_found_across_segments(directory: Path) -> None:
    spans: Spans = [("a", 0, 7), ("b", 0, 3), ("c", 0, 25), ("a", 9, 29), ("d", 0, 21)]
    with filled(directory, spans, segment_interval="10ms") as store:
        shown = store._repr_html_()
    assert "oldest: a session that ends at 1970-01-01 00:00:00.003; newest: a session that ends at " in shown
    assert "newest: a session that ends at 1970-01-01 00:00:00.029 (UTC)<" in shown


def test_an_empty_store_shows_itself(directory: Path) -> None:
    with opened(directory, name="none") as store:
        assert repr(store) == "RocksDBSessionStore('none'): 0 sessions, kept as long as a plan says"
        assert "oldest" not in store._repr_html_()
        assert len(store.to_pandas()) == 0


def test_it_counts_so_many(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with filled(directory, [("ada", i, i) for i in range(50)]) as store:
        monkeypatch.setattr("sessionkit.stores.base.store.COUNTED_ROWS", 50)
        assert repr(store) == "RocksDBSessionStore('clicks'): 50 sessions, kept as long as a plan says"
        monkeypatch.setattr("sessionkit.stores.base.store.COUNTED_ROWS", 49)
        assert repr(store) == "RocksDBSessionStore('clicks'): more than 49 sessions, kept as long as a plan says"
        assert len(store) == 50


def test_counting_reads_no_values(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for options in ({}, {"time_ordered": True}):
        with filled(directory, MIXED, name=f"form{len(options)}", **options) as store, monkeypatch.context() as patch:
            patch.setattr(Cursor, "value", None)
            assert len(store) == len(MIXED)
            assert repr(store).endswith(f"{len(MIXED)} sessions, kept as long as a plan says")
            assert any(fact.startswith("oldest: ") for fact in store._facts())


# ---- deeper: what a store never asks, or a disk seldom answers


def test_a_cursor_and_dropped_ranges(directory: Path) -> None:
    with opened(directory) as store:
        database = store._database
        with store.all_or_nothing():
            database.change({bytes([9, n]): b"v" for n in range(8)})
        store.put("ada", 5, 9, 1)  # writes them
        with store.all_or_nothing():
            database.change({b"\x09\x03": b"new", b"\x09\x06": None, b"\x09\xff": b"last"})
            database.drop(b"\x09\x02", b"\x09\x04")
            database.drop(b"\x09\x20", b"\x09\x30")
            assert [database.get(bytes([9, n])) for n in (1, 2, 3, 4, 6)] == [b"v", None, None, b"v", None]
            seen = {}
            for backward, bound in ((False, b"\x09\x01"), (True, b"\x09\x07")):
                cursor = database.cursor(backward=backward)
                cursor.seek(bound)
                seen[backward] = []
                while cursor.key is not None and cursor.key[0] == 9:
                    seen[backward].append(cursor.key[1])
                    cursor.step()
            assert seen == {False: [1, 4, 5, 7, 255], True: [5, 4, 1, 0]}
        with pytest.raises(TypeError):
            database.call(len)


def test_rows_that_cannot_be(directory: Path) -> None:
    with filled(directory, [("ada", 5, 9)], time_ordered=True) as store:
        index = store._space.index_row(0, Place(b"ada", 5, 9))
        base = store._space.row(0, Place(b"ada", 5, 9))
        rdict = store._database.rdict
        value = rdict[base]
        del rdict[base]
        with pytest.raises(StoreCorrupted, match="a row is in the index only"):
            list(store.fetch("ada"))
        assert index is not None
        rdict[index[:20]] = b""
        with pytest.raises(StoreCorrupted, match="a row's key is too short"):
            list(store.fetch(None, None))
        del rdict[index[:20]]
        rdict[base] = value
        rdict[base[:-1] + b"\xff"] = value
        with pytest.raises(StoreCorrupted, match="a stored value fails its checksum"):
            list(store.find_sessions_by_end(0, 9))
        store._noted = store._noted._replace(key_kind="int")
        with pytest.raises(StoreCorrupted, match="a stored key cannot be read"):
            list(store.fetch(None, None))
        del rdict[HEADER]
    refused(StoreCorrupted, "it has no header", directory, time_ordered=True)


def test_a_trial_that_does_not_end(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(directory, [("ada", 5, 9)]).close()
    (directory / "clicks" / "CLOSED").write_bytes(b"not a seal")

    def runs_out(command: list[str], **options: Any) -> Any:
        raise subprocess.TimeoutExpired(command, options["timeout"])

    outcomes: dict[str, Any] = {
        "it did not open within 60 s": runs_out,
        "it was not closed, and did not open within 5 s": lambda command, **o: done(command, -signal.SIGALRM, b""),
        r"opening it ended with -11 \(it was not closed\)": lambda command, **o: done(command, -signal.SIGSEGV, b""),
    }
    done = subprocess.CompletedProcess
    for telling, run in outcomes.items():
        monkeypatch.setattr(subprocess, "run", lambda command, run=run, **o: with_output(run(command, **o)))
        refused(StoreCorrupted, telling, directory)
    refuses = with_output(done([], 3, b"IO error: No space left on device: While appending"))
    monkeypatch.setattr(subprocess, "run", lambda command, **o: refuses)
    refused(StoreFailed, "store 'clicks' cannot be read or written; got IO error: No space left", directory)


def with_output(done: Any) -> Any:
    done.stderr = b""
    return done


def test_two_make_it_at_once(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The faster one's store is opened by both."""
    seal = folder._seal

    def slow(path: Path) -> None:
        seal(path)
        if path.name.startswith(".clicks~"):
            monkeypatch.setattr(folder, "_seal", seal)
            filled(directory, [("ada", 5, 9)]).close()

    monkeypatch.setattr(folder, "_seal", slow)
    with opened(directory) as store:
        assert spans_of(store.all()) == [("ada", 5, 9)]
    assert os.listdir(directory) == ["clicks"]


def test_a_disk_that_refuses(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    replace = Path.replace
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda self, to: full() if self.is_dir() else replace(self, to))
        refused(StoreFailed, r"store 'clicks' cannot be made; got .*No space left on device", directory)
    assert os.listdir(directory) == []
    filled(directory, [("ada", 5, 9)]).close()
    with monkeypatch.context() as patch:
        patch.setattr(folder, "_sync_folder", full)
        refused(StoreFailed, r"store 'clicks' cannot be opened; got .*No space left on device", directory)
    with opened(directory) as store:
        monkeypatch.setattr(folder, "_write_file", full)
    assert not (directory / "clicks" / "CLOSED").exists()  # no room for the seal: opened as after a crash
    with opened(directory) as store:
        assert len(store) == 1


def test_files_in_the_place_of_folders(directory: Path) -> None:
    for place in ("rows", "STORE", "CLOSED"):
        filled(directory, [("ada", 5, 9)], name=place).close()
        there = directory / place / place
        if there.is_dir():
            shutil.rmtree(there)
            there.write_bytes(b"")
        else:
            there.unlink()
            there.mkdir()
        refused(StoreCorrupted, r"rows is not a folder|no file STORE|CLOSED is not a plain file", directory, name=place)


SEALS = ["[1, 2]", "7", "null", '"rows"', "{", "[" * 100_000, '{"CURRENT": 5}', "nan", "[]", "\ud800", "{}", "true"]


@pytest.mark.parametrize("body", SEALS, ids=[shorten(body, 12) for body in SEALS])
def test_a_seal_with_a_right_checksum_and_other_content(directory: Path, body: str) -> None:
    """Whoever can write a seal can write its checksum."""
    filled(directory, [("ada", 5, 9)]).close()
    raw = body.encode("utf-8", errors="surrogatepass")
    (directory / "clicks" / "CLOSED").write_bytes(b"%08x " % zlib.crc32(raw) + raw)
    refused(StoreCorrupted, r"CLOSED is not a list of files|since the store was closed", directory)


NO_ROOM = "No space left on device (os error 28)"


def test_a_new_store_that_the_disk_refuses_is_not_called_damaged(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """rocksdict's own words lack RocksDB's "IO error"; and nothing that is made anew can be damaged."""

    def refuses(said: str) -> Any:
        def refuse(path: str, *, create: bool) -> Any:
            raise Exception(said)

        return refuse

    for said in (NO_ROOM, "Corruption: half of a file was written", "File too large (os error 27)"):
        with monkeypatch.context() as patch:
            patch.setattr(strict, "open_strictly", refuses(said))
            refused(
                StoreFailed, f"store 'clicks' cannot be made; got {re.escape(said)}; check the free space,", directory
            )
        assert os.listdir(directory) == []
    filled(directory, [("ada", 5, 9)]).close()
    corruption = "Corruption: Can't access /000008.sst: IO error: While open a file for random read: "
    for said in (NO_ROOM, "Too many open files (os error 24)", corruption + "Too many open files"):
        with monkeypatch.context() as patch:
            patch.setattr(strict, "open_strictly", refuses(said))
            refused(StoreFailed, "store 'clicks' cannot be read or written; got ", directory)
    for said in ("No such file or directory (os error 2)", corruption + "No such file or directory"):
        with monkeypatch.context() as patch:
            patch.setattr(strict, "open_strictly", refuses(said))
            with pytest.raises(StoreCorrupted):
                opened(directory)
    with opened(directory) as store:
        assert len(store) == 1


UNDER_O = """
import sys
import pandas as pd
import sessionkit as sk
from sessionkit.errors import NotKept, StoreClosed

assert False, "asserts are on"

def refused(call):
    try:
        call()
    except StoreClosed:
        return
    sys.exit(f"not refused: {call.__name__}")

for of, put in (("sessions", ("ada", 5, 9, 2)), ("windows", ("ada", 5, 2, 9))):
    for options in ({}, {"time_ordered": True}):
        name = of + str(len(options))
        store = sk.open_store("rocksdb", name, of=of, directory=sys.argv[1], **options)
        store.put(*put)
        rows = store.all()
        store.close()

        def change():
            with store.all_or_nothing():
                store.put(*put)

        def snapshot():
            store.snapshot(0)

        def go_on():
            next(rows)

        def names():
            store.check_names(["count"])

        def partitions():
            store.partitions

        for call in (change, snapshot, go_on, names, partitions, store.restart_task, lambda: store.bind({})):
            refused(call)
        with sk.open_store("rocksdb", name, of=of, directory=sys.argv[1], **options) as again:
            if len(again) != 1:
                sys.exit(f"{len(again)} windows")

plan = sk.group_by_key("user", timestamp="at").windowed_by(sk.SessionWindows(inactivity_gap="1s", grace="0s")).count()
clicks = pd.DataFrame({"user": ["ada"], "at": pd.to_datetime([0], unit="ms", utc=True)})
try:
    plan.run(clicks, trace=False).changelog()
except NotKept:
    sys.exit(0)
sys.exit("a changelog without a trace")
"""


@pytest.mark.slow
def test_checks_stay_where_asserts_are_left_out(directory: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-O", "-c", UNDER_O, str(directory)], capture_output=True, text=True, check=False
    )
    told = [line for line in done.stderr.splitlines() if not line.startswith("sessionkit compiles its loops")]
    assert (done.returncode, told) == (0, [])
