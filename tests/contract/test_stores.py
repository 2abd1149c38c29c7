"""What every kind of store promises, of sessions and of windows: each test runs over the registry of kinds.

A new kind is tested here once its module is imported; the example on SQLite is registered for these tests alone.
"""

import inspect
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

import sessionkit as sk
import sessionkit.spark.checkpoint  # registers itself
from sessionkit.errors import InvalidArgument, InvalidData, StoreClosed, StoreMismatch
from sessionkit.stores import HOLDS, READ_ONLY_KINDS, STORE_KINDS, Snapshot, store_class, store_kinds
from sessionkit.stores.cache.sessions import CachedSessions, CachedWindows
from sessionkit.stores.contract import RESTARTS, PlanStore, SessionStore, WindowStore
from tests.contract.examples import sqlite_store  # registers itself
from tests.contract.stores_model import MACHINES, listed, opened, put, times_of
from tests.deployments import run_by, run_deployed
from tests.interpreted import fewer
from tests.kinds import group_in_ms, plan_of

EXAMPLES = {("sqlite", of): STORE_KINDS.pop(("sqlite", of)) for of in HOLDS}
KINDS = [kind for kind in [*store_kinds(), "sqlite"] if kind not in READ_ONLY_KINDS]
BOTH = [(kind, of) for kind in KINDS for of in HOLDS]
WINDOWS: dict[str, Any] = {
    "sessions": sk.SessionWindows(inactivity_gap="3s", grace="5s"),
    "windows": sk.TimeWindows(size="6s", advance="3s", grace="4s"),
}
pytestmark = pytest.mark.usefixtures("registered")
every_store = pytest.mark.parametrize(("kind", "of"), BOTH)


@pytest.fixture(scope="module")
def registered() -> Iterator[None]:
    STORE_KINDS.update(EXAMPLES)
    yield
    for key in EXAMPLES:
        del STORE_KINDS[key]


def plan_for(of: str, emit: str = "on_window_update") -> sk.Plan:
    named = {"n": sk.count(), "pages": sk.collect("page"), "total": sk.sum("amount")}
    return plan_of(WINDOWS[of], emit, named, key="user", partition="partition", offset="offset")


def records(count: int = 160) -> pa.Table:
    """Two partitions in turn, with late records, equal times and missing values."""
    steps = [(n * 7919) % 1_000 for n in range(count)]
    at = [n * 400 + step * (9 if step % 13 == 0 else 3) for n, step in enumerate(steps)]
    return pa.table({
        "user": [("ada", "bob", "cy", "é")[step % 4] for step in steps],
        "at": [
            time - 15_000 if step % 11 == 0 and time > 15_000 else time
            for time, step in zip(at, steps, strict=True)
        ],
        "page": [None if step % 7 == 0 else f"page {step % 5}" for step in steps],
        "amount": [step / 8 for step in steps], "partition": [n % 2 for n in range(count)],
        "offset": [n // 2 for n in range(count)],
    })  # fmt: skip


# ---- what a store has


CONTRACTS = {"sessions": (PlanStore, SessionStore, CachedSessions), "windows": (PlanStore, WindowStore, CachedWindows)}


def calls_of(contract: type) -> dict[str, Any]:
    """What a contract names, by name."""
    own = [vars(base) for base in contract.__mro__ if base.__module__.startswith("sessionkit.")]
    return {name: member for each in own for name, member in each.items() if name[0] != "_" or name == "__len__"}


@every_store
def test_it_has_all_calls_of_the_contract(kind: str, of: str, tmp_path: Path) -> None:
    made = store_class(kind, of)
    assert getattr(made, "__abstractmethods__", frozenset()) == frozenset()
    with opened(kind, of, tmp_path) as store:
        assert type(store) is made and store.holds == of
        for contract in CONTRACTS[of]:
            lacking = [name for name in calls_of(contract) if not hasattr(store, name)]
            assert lacking == [], f"{made} lacks what {contract.__name__} names"
            for name, asked in calls_of(contract).items():
                if inspect.isfunction(asked):
                    found = list(inspect.signature(getattr(made, name)).parameters)
                    named = [p for p in inspect.signature(asked).parameters.values() if p.kind is not p.POSITIONAL_ONLY]
                    assert [p.name for p in named if p.name not in found] == [], f"{made}.{name}"


@every_store
def test_its_constructor_takes_options_by_name_and_says_what_it_is_called(kind: str, of: str, tmp_path: Path) -> None:
    parameters = inspect.signature(store_class(kind, of)).parameters
    assert {"name", "retention"} <= set(parameters)
    assert all(each.kind is each.KEYWORD_ONLY for each in parameters.values())
    with opened(kind, of, tmp_path, name="visits", retention="1h") as store:
        assert (store.name, store.retention_ms) == ("visits", 3_600_000)
    with pytest.raises(InvalidArgument, match=rf"a store of kind '{kind}' has no such option; got colour='red'"):
        opened(kind, of, tmp_path, colour="red")
    with pytest.raises(InvalidArgument, match="retention must be 0 ms or more; got -1 ms"):
        opened(kind, of, tmp_path, retention="-1ms")


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize("kind", KINDS)
def test_any_calls_in_any_order(kind: str, machine: type[Any]) -> None:
    mine = type(f"{kind}{machine.__name__}", (machine,), {"store_kind": kind})
    examples = fewer(120 if kind == "memory" else 25)
    run_state_machine_as_test(mine, settings=settings(max_examples=examples, stateful_step_count=30, deadline=None))


@every_store
def test_a_store_is_a_context_and_then_closed(kind: str, of: str, tmp_path: Path) -> None:
    with opened(kind, of, tmp_path) as store:
        put(store, "ada", 9, 2)
        assert times_of(store) == [("ada", 9)]
    assert repr(store) == f"{type(store).__name__}('clicks'): closed"
    calls: list[Any] = [
        lambda: put(store, "ada", 9, 2), lambda: store.fetch("ada", 0, 9) if of == "windows" else store.fetch("ada"),
        lambda: list(store.all()), lambda: store.snapshot(0), lambda: store.partitions,
        lambda: store.check_names(["n"]), lambda: store.bind({}),
        lambda: store.commit_snapshots({0: Snapshot(1, 2, 3)}), store.restart_task,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(StoreClosed, match="store 'clicks' is closed"):
            call()
    store.close()


@every_store
@pytest.mark.parametrize("keys", [["a", "b"], [1, -1], [b"a", b"\xff"]])
def test_every_type_of_key_but_one_a_store(kind: str, of: str, tmp_path: Path, keys: list[Any]) -> None:
    with opened(kind, of, tmp_path) as store:
        for key in keys:
            put(store, key, 9, 1)
        assert [each.key for each in store.all()] == keys  # -1 behind 1: its bytes are larger
        found = store.fetch(keys[1], 0, 9) if of == "windows" else store.fetch(keys[1])
        assert [each.key for each in found] == keys[1:]
        for other in {"x", 7, b"x"} - {key for key in ("x", 7, b"x") if type(key) is type(keys[0])}:
            with pytest.raises(InvalidArgument, match="store 'clicks' holds keys of another type"):
                put(store, other, 9, 1)
        for no_key in (None, 1.5, True):
            with pytest.raises(InvalidArgument, match="this cannot be a key"):
                put(store, no_key, 9, 1)


@every_store
def test_values_come_back_as_they_were(kind: str, of: str, tmp_path: Path) -> None:
    values = [None, True, -(2**63), 1.5, float("inf"), "é\0", b"\xff", [1, [None]], {"n": 1, "seen": ["x"]}, (1, "a")]
    with opened(kind, of, tmp_path) as store:
        for time_ms, value in enumerate(values):
            put(store, "ada", time_ms, value, keep_null=True, opened_by=time_ms, closed_by=3)
        held = sorted(store.all(), key=lambda each: each.window_start_ms)
        assert [each.aggregate for each in held] == values
        assert [(each.opened_by, each.closed_by) for each in held] == [(n, 3) for n in range(len(values))]
        put(store, "ada", 1, None)
        assert len(store) == len(values) - 1


@every_store
def test_a_call_that_names_no_partition_means_the_first(kind: str, of: str, tmp_path: Path) -> None:
    """Also in Kafka's own words for a stored window."""
    with opened(kind, of, tmp_path) as store:
        put(store, "a", 5, 1)
        (stored,) = store.all()
        assert (stored.opened_by, stored.closed_by) == (-1, -1), "put by hand"
        store.write(stored._replace(key="b"))
        assert times_of(store) == times_of(store, partition=0) == [("a", 5), ("b", 5)]
        assert times_of(store, partition=1) == []
        if of == "sessions":
            store.remove("b", 5, 5)
            assert times_of(store) == [("a", 5)]


@every_store
def test_times_that_cannot_be(kind: str, of: str, tmp_path: Path) -> None:
    with opened(kind, of, tmp_path) as store:
        for time_ms in (-1, -(2**70)):
            with pytest.raises(InvalidArgument, match="starts at 0 or later"):
                put(store, "ada", time_ms, 1)
        for no_time in ("9", 1.5, True, None):
            with pytest.raises(InvalidArgument, match="must be a moment"):
                put(store, "ada", no_time, 1)  # type: ignore[arg-type]
        assert len(store) == 0
        far = 2**63 - 1
        put(store, "ada", far, 1)
        assert times_of(store) == [("ada", far)]


@pytest.mark.parametrize("kind", KINDS)
def test_sessions_that_overlap_may_be_stored(kind: str, tmp_path: Path) -> None:
    """KIP-445: a store keeps what it is given; that sessions of a key lie apart is the work of who puts them there."""
    with opened(kind, "sessions", tmp_path) as store:
        for start, end in ((0, 10), (5, 15), (0, 15), (5, 10), (7, 7)):
            assert store.put("ada", start, end, f"{start} to {end}")
        found = {(each.window_start_ms, each.window_end_ms): each.aggregate for each in store.fetch("ada")}
        assert found == {(start, end): f"{start} to {end}" for start, end in found}
        assert len(found) == len(list(store.find_sessions("ada", 0, 20))) == 5
        assert store.fetch_session("ada", 5, 10) == "5 to 10"
        store.remove("ada", 5, 15)
        assert len(store) == 4


@every_store
def test_what_lies_far_behind_is_refused_and_gone(kind: str, of: str, tmp_path: Path) -> None:
    """How exactly is a matter of the kind: on disk whole segments expire."""
    hour = 3_600_000
    with opened(kind, of, tmp_path, retention="1h") as store:
        assert put(store, "ada", 5, 1)
        assert put(store, "ada", 10 * hour, 2)
        assert put(store, "bob", 5, 3, partition=1)
        assert not put(store, "ada", 6, 4)
        assert times_of(store) == [("ada", 10 * hour)]
        assert times_of(store, partition=1) == [("bob", 5)]
        assert put(store, "ada", 10 * hour - 9, 5)
        assert len(store) == 3


@every_store
def test_it_shows_itself(kind: str, of: str, tmp_path: Path) -> None:
    noun = of[:-1]
    with opened(kind, of, tmp_path) as store:
        for n in range(25):
            put(store, "<b>", n, f"<i>{n}", partition=n % 2)
        name = type(store).__name__
        assert repr(store) == f"{name}('clicks'): 25 {noun}s, kept as long as a plan says"
        shown = store._repr_html_()
        cells = ["&lt;b&gt;", "0", "0", "&lt;i&gt;0"] if of == "sessions" else ["&lt;b&gt;", "0", "&lt;i&gt;0", "0"]
        assert "".join(f"<td>{cell}</td>" for cell in cells) in shown
        assert "<i>" not in shown and shown.count("<tr>") == 21  # with the head
        frame = store.to_pandas()
        last = ["window_end_ms", "aggregate"] if of == "sessions" else ["aggregate", "timestamp_ms"]
        assert list(frame.columns) == ["partition", *store.columns] == ["partition", "key", "window_start_ms", *last]
        assert frame.to_dict("records") == list(store.rows())
        assert any(fact.startswith(f"oldest: a {noun} that ") for fact in store.facts())
        assert [each.key for each in store.read_only().all()] == ["<b>"] * 25
        with pytest.raises(AttributeError, match="a read-only store has no such call"):
            store.read_only().put("ada", 1, 2, 3)
    with opened(kind, of, tmp_path, name="none", retention="1m") as store:
        assert repr(store) == f"{name}('none'): 0 {noun}s, kept for 1 min"


# ---- runs


@every_store
def test_what_is_committed_is_loaded(kind: str, of: str, tmp_path: Path) -> None:
    with opened(kind, of, tmp_path) as store:
        plan_for(of).run(records(), store=store)
        held = [(p, *each) for p in (0, 1) for each in store.all(partition=p)]
        loaded = store.load(pa.array(["ada", "é"], pa.large_string()), {0: 0, 1: 2**40}, ("n", "pages", "total"))
        columns = (loaded.partition, loaded.key.to_pylist(), loaded.start_ms, loaded.opened_by, loaded.closed_by)
        found = sorted(zip(*map(list, columns), strict=True))
        assert {row[:2] for row in found} == {(p, key) for p, key in {(r[0], r[4]) for r in held} if p or key in "adaé"}
        expected = sorted((r[0], r[4], r[1], r[5], r[6]) for r in held if r[0] == 1 or r[4] in ("ada", "é"))
        assert found == expected
        assert [len(listed(column)) for column in loaded.aggregates.values()] == [len(found)] * 3


@every_store
def test_a_plan_is_bound_to_its_store(kind: str, of: str, tmp_path: Path) -> None:
    with opened(kind, of, tmp_path) as store:
        plan = plan_for(of)
        plan.run(records(), store=store)
        with pytest.raises(StoreMismatch, match="store 'clicks' was made with other settings"):
            plan.with_windows(grace="9s").run(records(), store=store)
        with pytest.raises(
            InvalidData, match=r"'clicks' holds the results of another plan; got \['n', 'pages', 'total'\] in"
        ):
            plan.count().run(records(), store=store)
        other = next(held for held in HOLDS if held != of)
        with pytest.raises(InvalidArgument, match=rf'store must be a store of {other}; got .*of="{other}"\)'):
            plan_for(other).run(records(), store=store)
        with pytest.raises(InvalidArgument, match=r"cannot write to this store; got read-only .*; the store itself"):
            plan.run(records(), store=store.read_only())


@every_store
@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
def test_a_run_that_fails_leaves_its_store_as_it_was(kind: str, of: str, rules: str, tmp_path: Path) -> None:
    table = pa.table({"user": ["ada", "ada", "bob"], "at": [5, 6, 900], "v": [1, 2, 0]})
    plan = group_in_ms("user").windowed_by(WINDOWS[of]).reduce(lambda a, b: a // b, "v")
    retention = {"retention": "1h"} if rules == "kafka" else {}
    with opened(kind, of, tmp_path, **retention) as store:
        run_by(plan, table.slice(0, 2), store=store, rules=rules)
        before = list(store.all()), store.snapshot(0)
        bad = pa.table({"user": ["eve", "ada", "ada"], "at": [7, 7, 8], "v": [1, 1, 0]})
        with pytest.raises(sk.errors.AggregationFailed, match="nothing of this run was committed"):
            run_by(plan, bad, store=store, rules=rules)
        assert (list(store.all()), store.snapshot(0)) == before


@every_store
def test_windows_and_position_are_never_apart(
    kind: str, of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under Kafka's rules a run writes window by window; if its position cannot be noted, none of them was written."""
    with opened(kind, of, tmp_path, retention="1h") as store:

        def refuse(*_: Any) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(store, "commit_snapshots", refuse)
        with pytest.raises(ZeroDivisionError):
            run_deployed(plan_for(of), records(), store=store)
        assert (len(store), store.snapshot(0)) == (0, Snapshot())


@every_store
def test_it_names_the_partitions_that_were_read_with_the_arrival_of_their_last_record(
    kind: str, of: str, tmp_path: Path
) -> None:
    read = {7: Snapshot(1, 2, 3, 4), 2: Snapshot(5, 6, 7)}  # the second by a plan without `idle_after=`
    with opened(kind, of, tmp_path) as store:
        assert store.read_partitions == []
        store.commit_snapshots(read)
        assert (store.read_partitions, store.partitions) == ([2, 7], [])
        assert {p: store.snapshot(p) for p in (2, 7)} == read
        store.restart_task()
        assert store.snapshot(7) == Snapshot(1, -1, 3, 4)
    with pytest.raises(StoreClosed):
        _ = store.read_partitions
    if store.is_persistent:
        with opened(kind, of, tmp_path) as store:
            assert (store.read_partitions, store.snapshot(7).last_arrival_ms) == ([2, 7], 4)


@every_store
def test_an_offset_that_was_read_is_a_replay(kind: str, of: str, tmp_path: Path) -> None:
    plan = group_in_ms("user", offset="offset").windowed_by(WINDOWS[of]).count()
    first = pa.table({"user": ["ada"] * 3, "at": [5, 6, 7], "offset": [0, 1, 5]})
    again = pa.table({"user": ["ada"] * 3, "at": [6, 7, 8], "offset": [4, 5, 6]})
    with opened(kind, of, tmp_path) as store:
        plan.run(first, store=store)
        run = plan.run(again, store=store)
        assert run.table()["count"].to_pylist() == [4]
        assert run.dropped()["reason"].to_pylist() == ["replayed", "replayed"]
        assert run.metrics()["replayed-records"] == 2
        assert store.snapshot(0).position == 6


@pytest.mark.thorough
@every_store
@pytest.mark.parametrize("emit", ["on_window_update", "on_window_close"])
@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
def test_runs_over_parts_are_those_over_a_store_in_memory(
    kind: str, of: str, rules: str, emit: str, tmp_path: Path
) -> None:
    """Table, changelog, what was dropped and why, part by part: on disk and in memory, through an end of the store."""
    plan, table, retention = plan_for(of, emit), records(), {"retention": "1h"} if rules == "kafka" else {}
    parts = [table.slice(start, stop - start) for start, stop in pairwise([0, 50, 51, 120, len(table)])]
    with opened("memory", of, tmp_path, **retention) as memory:
        expected = [told(run_by(plan, part, store=memory, rules=rules)) for part in parts]
        held = sorted(memory.rows(), key=str)
        assert any(each[2] for each in expected)
        store = opened(kind, of, tmp_path, **retention)
        try:
            for part, each in zip(parts, expected, strict=True):
                if kind != "memory":
                    store.close()
                    store = opened(kind, of, tmp_path, **retention)
                assert told(run_by(plan, part, store=store, rules=rules)) == each
            assert sorted(store.rows(), key=str) == held
            assert [store.snapshot(p) for p in (0, 1)] == [memory.snapshot(p) for p in (0, 1)]
        finally:
            store.close()


def told(run: sk.Run) -> list[Any]:
    frames = [run.table(), run.changelog(), run.dropped()]
    rows = [sorted(frame.to_pylist(), key=str) for frame in frames]
    offsets = [(0, frames[1]["offset"][0].as_py())] if len(frames[1]) else []
    return [*rows, *(str(run.explain(partition=p, offset=offset)) for p, offset in offsets), run.metrics()]


@every_store
@pytest.mark.parametrize("caching", [True, "300 B"])
def test_a_record_cache_stands_before_it(kind: str, of: str, caching: bool | str, tmp_path: Path) -> None:
    """Which entries a limited one evicts is another on disk, where Kafka goes through segments; what is kept is not."""
    plan, table = plan_for(of), records()
    changes, held = [], []
    for each in (kind, "memory"):
        folder = tmp_path / each
        folder.mkdir(exist_ok=True)
        with opened(each, of, folder, retention="1h") as store:
            run = run_deployed(plan, table, store=store, caching=caching, commit_every=40)
            asked = run._store.read_only()
            assert len(asked) == len(store) > 0
            changes.append(sorted(run.changelog().to_pylist(), key=str))
            held.append((sorted(store.rows(), key=str), store.is_persistent and caching is not True))
    assert held[0][0] == held[1][0]
    assert changes[0] == changes[1] or held[0][1]


@every_store
def test_a_restarted_task_forgets_its_stream_time(kind: str, of: str, tmp_path: Path) -> None:
    with opened(kind, of, tmp_path, retention="1h") as store:
        run_deployed(plan_for(of), records(), store=store)
        before = store.snapshot(0)
        assert before.stream_time_ms > 0
        for kind_of_restart in RESTARTS:
            store.commit_snapshots({0: before})
            store.restart_task(kind_of_restart)
            assert store.snapshot(0) == before._replace(stream_time_ms=-1)
        with pytest.raises(InvalidArgument, match="kind must be a known choice; got 'lost'; one of 'disk'"):
            store.restart_task("lost")


@every_store
def test_a_store_that_outlives_its_process_is_found_again(kind: str, of: str, tmp_path: Path) -> None:
    if "directory" not in inspect.signature(store_class(kind, of)).parameters:
        return  # it lies nowhere
    plan = plan_for(of)
    with opened(kind, of, tmp_path) as store:
        plan.run(records(), store=store)
        held, snapshots = list(store.rows()), [store.snapshot(p) for p in (0, 1)]
    with opened(kind, of, tmp_path) as store:
        assert list(store.rows()) == held
        assert [store.snapshot(p) for p in (0, 1)] == snapshots
        assert store.partitions == [0, 1]
        with pytest.raises(StoreMismatch, match="store 'clicks' was made with other settings"):
            plan.with_windows(grace="9s").run(records(), store=store)
        with pytest.raises(InvalidArgument, match="holds keys of another type"):
            put(store, 7, 9, 1)
    for other in ({"retention": "1h"}, {"of": next(held for held in HOLDS if held != of)}):
        with pytest.raises(StoreMismatch, match="store 'clicks' was made with other settings"):
            opened(kind, **{"of": of, "folder": tmp_path, **other})


@pytest.mark.parametrize("of", HOLDS)
def test_the_example_is_a_kind_like_any_other(of: str, tmp_path: Path) -> None:
    assert "sqlite" in store_kinds()
    with sk.open_store("sqlite", "clicks", of=of, directory=tmp_path) as store:
        assert isinstance(store, sqlite_store.SQLiteRows)
        assert isinstance(store.to_pandas(), pd.DataFrame)
        browser = pytest.importorskip("anywidget") and sk.browse(store)
        assert repr(store) in repr(browser)
    with pytest.raises(InvalidArgument, match=r"needs an option; got directory=None; directory=…; the options of this"):
        sk.open_store("sqlite", "clicks", of=of)


def test_a_kind_may_hold_one_of_the_two_alone() -> None:
    kept = STORE_KINDS.pop(("sqlite", "windows"))
    try:
        with pytest.raises(
            InvalidArgument, match="a plan cannot keep windows in such a store; got 'sqlite'; one of 'mem"
        ):
            sk.open_store("sqlite", "clicks", of="windows")
    finally:
        STORE_KINDS["sqlite", "windows"] = kept
