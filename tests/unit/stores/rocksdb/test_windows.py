"""The window store on disk: Kafka's three forms, their orders and what they let expire."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from sessionkit.errors import InvalidArgument, StoreMismatch, UnsupportedData
from sessionkit.stores.contract import Snapshot
from sessionkit.stores.rocksdb.sessions import RocksDBSessionStore
from sessionkit.stores.rocksdb.windows import RocksDBWindowStore
from sessionkit.stores.typed_bytes import Place
from tests.contract.stores_model import KafkaRows, OnDisk, Starts, WindowMachine, sort_key, starts_of
from tests.interpreted import fewer
from tests.kinds import in_ms
from tests.memory import MEMORY

FORMS: dict[str, dict[str, bool]] = {
    "ordinary": {},
    "by time": {"time_ordered": True},
    "by time, with index": {"time_ordered": True, "index": True},
}
every_form = pytest.mark.parametrize("form", FORMS)


@pytest.fixture(scope="module")
def shared() -> Iterator[Path]:
    """Where the stores of these tests lie; in memory where there is such a place."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as directory:
        yield Path(directory)


@pytest.fixture
def directory(shared: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=shared))


def opened(directory: Path, form: str = "ordinary", **options: Any) -> RocksDBWindowStore:
    return RocksDBWindowStore(**{"name": "hourly", "directory": directory, **FORMS[form], **options})


def filled(directory: Path, starts: Starts, form: str = "ordinary", **options: Any) -> RocksDBWindowStore:
    """A store with these windows; aggregate and timestamp tell them apart."""
    store = opened(directory, form, **options)
    for key, start in starts:
        assert store.put(key, start, f"{key}{start}", start + 1)
    return store


MIXED: Starts = [("b", 5), ("a", 40), ("c", 0), ("a", 7), ("b", 60), ("a", 95), ("aa", 40)]
BY_START: Starts = [("c", 0), ("b", 5), ("a", 7), ("a", 40), ("aa", 40), ("b", 60), ("a", 95)]
BY_SEGMENT: Starts = [("a", 7), ("a", 40), ("aa", 40), ("b", 5), ("c", 0), ("a", 95), ("b", 60)]
ORDERS = {
    "ordinary": (BY_SEGMENT, BY_SEGMENT),
    "by time": (BY_START, BY_START),
    "by time, with index": (BY_SEGMENT, BY_START),
}


@every_form
def test_orders(directory: Path, form: str) -> None:
    """(a range of keys, everything): only an index makes a difference between the two."""
    of_range, of_all = ORDERS[form]
    with filled(directory, MIXED, form, segment_interval="50ms") as store:
        assert starts_of(store.all()) == starts_of(store.fetch_all(0, 95)) == of_all
        assert starts_of(store.backward_all()) == starts_of(store.backward_fetch_all(0, 99)) == of_all[::-1]
        assert starts_of(store.fetch_in_keys(None, None, 0, 99)) == of_range
        assert starts_of(store.backward_fetch_in_keys(None, None, 0, 99)) == of_range[::-1]
        assert starts_of(store.fetch_in_keys("aa", "b", 5, 60)) == [w for w in of_range if w[0] in ("aa", "b")]
        assert starts_of(store.fetch_in_keys("b", "aa", 0, 99)) == []
        of_a = [("a", 7), ("a", 40), ("a", 95)]
        assert starts_of(store.fetch("a", 0, 99)) == of_a
        assert starts_of(store.backward_fetch("a", 0, 99)) == of_a[::-1]
        places = [sort_key(store._space, Place(key.encode(), start, start)) for key, start in of_range]
        assert places == sorted(places)


@every_form
@pytest.mark.parametrize(("first", "last", "found"), [(5, 5, True), (0, 4, False), (6, 99, False), (-9, 2**70, True)])
def test_bounds_are_inclusive(directory: Path, form: str, first: int, last: int, found: bool) -> None:
    with filled(directory, [("ada", 5)], form) as store:
        for answer in (
            store.fetch("ada", first, last),
            store.backward_fetch("ada", first, last),
            store.fetch_in_keys("a", None, first, last),
            store.fetch_all(first, last),
            store.backward_fetch_all(first, last),
        ):
            assert bool(list(answer)) is found
        assert list(store.fetch("bob", first, last)) == list(store.fetch_all(last, first - 1)) == []


# ---- expiry


@pytest.mark.parametrize(("form", "visible"), [("ordinary", [91, 100]), ("by time", [90, 91, 100])])
def test_the_boundary_is_seen_in_order_of_time_only(directory: Path, form: str, visible: list[int]) -> None:
    with filled(directory, [("a", 89), ("a", 90), ("a", 91), ("a", 100)], form, retention="10ms") as store:
        assert [w.window_start_ms for w in store.all()] == visible
        assert [w.window_start_ms for w in store.fetch("a", 0, 200)] == visible
        assert [start for start in (89, 90, 91, 100) if store.fetch_window("a", start)] == visible
        assert len(store) == len(visible)


@every_form
def test_a_put_is_refused_when_its_segment_has_expired(directory: Path, form: str) -> None:
    with opened(directory, form, retention="3000ms", segment_interval="1000ms") as store:
        assert store.put("a", 5999, 1, 1)
        assert store.put("a", 2000, 1, 1)
        assert not store.put("a", 1999, 1, 1)
        assert store.put("a", 6000, 1, 1)
        assert not store.put("a", 2999, None, 1)
        assert [w.window_start_ms for w in store.all()] == [5999, 6000]


@every_form
def test_a_read_step_by_step_sees_each_segment_as_it_is_when_it_comes_to_it(directory: Path, form: str) -> None:
    """And nothing more of one that expires meanwhile, though a part of it was read."""
    with filled(directory, [("a", 5), ("a", 15), ("a", 25), ("b", 26)], form, segment_interval="10ms") as store:
        for backward, order in ((False, [5, 15, 27, 28]), (True, [28, 27, 16, 15, 5])):
            starts = []
            for window in store.fetch_step_by_step("a", "a", 0, 99, backward=backward):
                starts.append(window.window_start_ms)
                if window.window_start_ms == (28 if backward else 15):
                    for start in (16, 27, 28):
                        store.put("a", start, start, start)
                    store.put("a", 25, None, 25)
            assert starts == order
        bounds = [("a", "b", 15, 26), ("b", "c", 0, 99), (None, "a", 6, 27), ("a", None, 28, 99)]
        steps = [starts_of(store.fetch_step_by_step(*each, backward=False)) for each in bounds]
        assert [sorted(found) for found in steps] == [
            [("a", 15), ("a", 16), ("b", 26)],
            [("b", 26)],
            [("a", 15), ("a", 16), ("a", 27)],
            [("a", 28)],
        ]
    with filled(
        directory, [("a", 20), ("a", 29), ("a", 35)], form, segment_interval="10ms", retention="20ms", name="kept"
    ) as store:
        steps = store.fetch_step_by_step("a", "a", 0, 99, backward=False)
        assert next(steps).window_start_ms == 20
        store.put("a", 59, 1, 59)
        assert starts_of(steps) == [("a", 35)]


class KafkaModel(KafkaRows):
    """Kafka's RocksDB window store, in one of its three forms."""

    def __init__(self, retention: int | None, interval: int, form: str) -> None:
        super().__init__(retention, interval)
        self.form = form

    def reads(self, low: str | None, high: str | None, first: int, last: int, *, everything: bool = False) -> Starts:
        seen = first if self.retention is None else self.observed - self.retention + (self.form == "ordinary")
        found = [at for at in self.rows if max(seen, first) <= at[1] <= last]
        found = [at for at in found if (low is None or low <= at[0]) and (high is None or at[0] <= high)]
        if self.form == "ordinary" or (self.form == "by time, with index" and not everything):
            return sorted(found, key=lambda at: (at[1] // self.interval, *at))
        return sorted(found, key=lambda at: at[::-1])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "null", "reopen", "fail"]), st.sampled_from(["a", "b", "ab"]), st.integers(0, 60)
    ),
    max_size=25,
)


@pytest.mark.slow
@every_form
@settings(max_examples=fewer(25))
@given(steps=STEPS, retention=st.none() | st.integers(0, 30), interval=st.integers(1, 12))
def test_equals_a_list_that_does_what_kafka_does(
    shared: Path, form: str, steps: list[Any], retention: int | None, interval: int
) -> None:
    options = {
        "name": f"s{len(os.listdir(shared))}",
        "retention": in_ms(retention),
        "segment_interval": in_ms(interval),
    }
    store, model = opened(shared, form, **options), KafkaModel(retention, interval, form)
    try:
        for number, (what, key, start) in enumerate(steps):
            if what == "reopen":
                store.commit_snapshots({0: Snapshot(number, 5, 3)}, frozenset({"n"}))
                store.close()
                store = opened(shared, form, **options)
            elif what == "fail":
                with pytest.raises(KeyError), store.all_or_nothing():
                    store.put("b", start + 40, 1, 1)
                    store.put(key, start, None, 1)
                    raise KeyError
            else:
                value = number if what == "put" else None
                assert store.put(key, start, value, start) == model.put((key, start), value)
            compare(store, model, key, start)
    finally:
        store.close()


def compare(store: RocksDBWindowStore, model: KafkaModel, key: str, start: int) -> None:
    everything = model.reads(None, None, 0, 999, everything=True)
    assert starts_of(store.all()) == everything
    assert [w.aggregate for w in store.all()] == [model.rows[at] for at in everything]
    assert starts_of(store.backward_all()) == everything[::-1]
    assert starts_of(store.fetch(key, start - 9, start + 9)) == model.reads(key, key, start - 9, start + 9)
    assert starts_of(store.fetch_in_keys("a", "ab", 0, 999)) == model.reads("a", "ab", 0, 999)
    assert starts_of(store.backward_fetch_in_keys("a", None, 0, 999)) == model.reads("a", None, 0, 999)[::-1]
    shown = model.reads(key, key, 0, 999)
    assert all(bool(store.fetch_window(*at)) == (at in shown) for at in model.rows if at[0] == key)


@pytest.mark.slow
@every_form
def test_any_calls_in_any_order_are_answered_from_many_segments(form: str) -> None:
    machine = type("OnDisk", (OnDisk, WindowMachine), {"forms": [FORMS[form]]})
    run_state_machine_as_test(machine, settings=settings(max_examples=fewer(25), stateful_step_count=20))


# ---- between runs, and what it refuses


def test_state_stays(directory: Path) -> None:
    with opened(directory, retention="10ms") as store:
        with store.all_or_nothing():
            store.put("ada", 80, 1, 80)
            store.put("ada", 95, {"n": 2}, 99)
        store.put("bob", 95, 3, 95, partition=1)
        store.commit_snapshots({0: Snapshot(7, 99, 90)}, frozenset({"n"}))
        store.put("ada", 96, 4, 96, partition=1)
    with opened(directory, retention="10ms") as store:
        assert (store.snapshot(0), store.snapshot(1)) == (Snapshot(7, 99, 90), Snapshot())
        assert starts_of(store.all()) == [("ada", 95)]  # the observed time was committed: 80 stays hidden
        assert starts_of(store.all(partition=1)) == [("ada", 96), ("bob", 95)]
        store.check_names({"n"})


@pytest.mark.parametrize(("options", "telling"), [
    ({"form": "by time"}, "time_ordered False, not True"),
    ({"form": "by time, with index"}, "time_ordered False, not True; index False, not True"),
    ({"retention": "5ms"}, "retention none, not 5 ms"),
])  # fmt: skip
def test_other_settings_are_refused_by_name(directory: Path, options: dict[str, Any], telling: str) -> None:
    opened(directory).close()
    with pytest.raises(StoreMismatch, match=f"got {telling}"):
        opened(directory, **options)


def test_a_store_of_sessions_is_none_of_windows(directory: Path) -> None:
    RocksDBSessionStore(name="hourly", directory=directory).close()
    with pytest.raises(StoreMismatch, match="got it holds sessions, not windows"):
        opened(directory)


def test_what_cannot_be(directory: Path) -> None:
    with pytest.raises(InvalidArgument, match="an index belongs to a time-ordered store; got index=True"):
        opened(directory, index=True)
    with opened(directory) as store:
        for start, timestamp in ((-1, 1), (2**63, 1), (1, 2**63)):
            with pytest.raises(InvalidArgument, match=f"a window starts at 0 or later; got start {start}, timestamp"):
                store.put("ada", start, 1, timestamp)
        with pytest.raises(InvalidArgument, match=r"a time of a window must be a moment; got 1\.5"):
            store.fetch("ada", 1.5, 2)  # type: ignore[arg-type]
        with pytest.raises(UnsupportedData):
            store.put("ada", 1, object(), 1)
        assert len(store) == 0


def test_it_shows_itself(directory: Path) -> None:
    with filled(directory, [("b", 5), ("a", 9)], "by time", retention="1m") as store:
        assert store.to_pandas().to_numpy().tolist() == [[0, "b", 5, "b5", 6], [0, "a", 9, "a9", 10]]
        shown = store._repr_html_()
        assert "oldest: a window that starts at 1970-01-01 00:00:00.005; newest: a window that starts at" in shown
        # by one later than in the ordinary form
        assert "expires when a window that starts at 1970-01-01 00:01:00.006 is put into partition 0" in shown
