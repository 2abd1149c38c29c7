"""A store under several threads, and in processes that were forked while it was in use."""

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import StoreLocked
from sessionkit.stores import HOLDS, locking, store_class
from sessionkit.stores.contract import STORE_KINDS
from sessionkit.stores.locking import SharedStore
from tests.deployments import run_by
from tests.kinds import each_kind, plan_of

KINDS = [(kind, of) for kind in ("memory", "rocksdb") for of in HOLDS]


def store_of(kind: str, of: str, directory: Path, **options: Any) -> Any:
    place = {"directory": directory} if kind == "rocksdb" else {}
    return sk.open_store(kind, "shared", of=of, **place, **options)


def clicks(partition: int, *, first: int = 0, count: int = 40) -> pd.DataFrame:
    rows = [(f"key {n % 3}", n * 700, partition, n, n) for n in range(first, first + count)]
    return pd.DataFrame(rows, columns=["user", "at", "partition", "offset", "amount"])


def plan_for(of: str, total: Any) -> sk.Plan:
    windows = each_kind(1_000)["session" if of == "sessions" else "tumbling"]
    return plan_of(windows, named={"total": total}, key="user", partition="partition", offset="offset")


def before_adding() -> None:
    pass


def add(older: int, newer: int) -> int:
    before_adding()
    return older + newer


@pytest.mark.thorough
@pytest.mark.parametrize("rules", ["sessionkit", "kafka"])
@pytest.mark.parametrize(("kind", "of"), KINDS)
def test_a_run_inside_a_run_of_another_thread_waits(
    tmp_path: Path, kind: str, of: str, rules: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run stops between its reading and its writing until the other has read, too; that one writes last."""
    retention = {"retention": "1h"} if rules == "kafka" else {}

    def run_half(store: Any, partition: int, first: int) -> None:
        frame = clicks(partition, first=first, count=20)
        run_by(plan_for(of, sk.reduce(add, "amount")), frame, store=store, rules=rules)

    with store_of(kind, of, tmp_path / "expected", **retention) as store:
        for partition in (0, 1):
            run_half(store, partition, 0)
            run_half(store, partition, 20)
        expected = store.to_pandas()
    others: list[threading.Thread] = []
    first_is_through = threading.Event()
    with store_of(kind, of, tmp_path / "found", **retention) as store:
        for partition in (0, 1):
            run_half(store, partition, 0)

        def let_in() -> None:
            if others and threading.current_thread() is others[0]:
                first_is_through.wait(5)
            elif not others:
                others.append(threading.Thread(target=run_half, args=(store, 1, 20)))
                others[0].start()
                others[0].join(0.3)

        monkeypatch.setattr(f"{__name__}.before_adding", let_in)
        run_half(store, 0, 20)
        first_is_through.set()
        others[0].join()
        assert len(store)
        pd.testing.assert_frame_equal(store.to_pandas(), expected)


@pytest.mark.compiled
@pytest.mark.lengthy
@pytest.mark.parametrize(("kind", "of"), KINDS)
def test_threads_with_a_partition_each(tmp_path: Path, kind: str, of: str) -> None:
    total, threads = sk.sum("amount"), 6
    with store_of(kind, of, tmp_path / "expected") as store:
        for partition in range(threads):
            plan_for(of, total).run(clicks(partition, count=400), store=store)
        expected = store.to_pandas()
    failures: list[BaseException] = []
    switch_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with store_of(kind, of, tmp_path / "found") as store:

            def work(partition: int) -> None:
                try:
                    for first in range(0, 400, 80):
                        frame = clicks(partition, first=first, count=80)
                        plan_for(of, total).run(frame, store=store)
                        assert store.snapshot(partition).position == first + 79
                        assert list(store.read_only().all(partition=partition))
                except BaseException as error:
                    failures.append(error)

            running = [threading.Thread(target=work, args=(partition,)) for partition in range(threads)]
            for thread in running:
                thread.start()
            for thread in running:
                thread.join()
            assert failures == []
            pd.testing.assert_frame_equal(store.to_pandas(), expected)
    finally:
        sys.setswitchinterval(switch_s)


@pytest.mark.parametrize(("kind", "of"), KINDS)
def test_a_change_waits_for_another_threads_transaction(tmp_path: Path, kind: str, of: str) -> None:
    """It would be taken back with it."""
    last = (9, 1) if of == "sessions" else (1, 9)
    with store_of(kind, of, tmp_path) as store:
        other = threading.Thread(target=store.put, args=("bob", 5, *last))
        with pytest.raises(ZeroDivisionError), store.all_or_nothing():
            store.put("ada", 5, *last)
            other.start()
            other.join(0.2)
            raise ZeroDivisionError
        other.join()
        assert list(store.to_pandas().key) == ["bob"]


def test_every_store_is_one() -> None:
    for kind, of in KINDS:
        assert store_class(kind, of) is STORE_KINDS[kind, of]
    assert all(issubclass(store, SharedStore) for store in STORE_KINDS.values())


def test_a_class_of_stores_tells_its_other_bases_of_itself() -> None:
    told: list[str] = []

    class Listed:
        def __init_subclass__(cls, **named: Any) -> None:
            told.append(named["label"])

    class Mine(SharedStore, Listed, label="mine"):
        """A store that is in a list."""

    assert told == ["mine"]


# ---- forks

FORKS = """
import os, signal, sys, threading, warnings
warnings.filterwarnings("ignore", ".*use of fork", DeprecationWarning)  # from Python 3.12 on: that is the matter here
import sessionkit as sk
from sessionkit.errors import StoreLocked

signal.alarm(60)
directory = sys.argv[1]

def opened(name, kind="rocksdb"):
    return sk.open_store(kind, name, **({"directory": directory} if kind == "rocksdb" else {}))

def ended(work, *arguments):
    # what a child that does this work ended with: 0 if it came to its own end
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1]
    signal.alarm(20)
    work(*arguments)
    sys.exit(0)

def refused(call):
    try:
        call()
    except StoreLocked as error:
        assert "forked" in str(error), error
        return
    os._exit(9)

def ends(status):
    if status:
        sys.exit(f"a child ended with {status}")
"""

FORKED = {
    "a child opens a new store": """
opened("mine").close()
ends(ended(lambda: refused(lambda: opened("another"))))
ends(ended(lambda: refused(lambda: opened("mine"))))
""",
    "before it is used a child may": """
ends(ended(lambda: opened("another").close()))
with opened("another"):
    pass
""",
    "a grandchild, too": """
opened("mine").close()
ends(ended(lambda: ends(ended(lambda: refused(lambda: opened("another"))))))
""",
    "a child does not touch its parent's": """
def use(store, rows, more):
    for call in (
        lambda: store.put("bob", 5, 9, 1), lambda: store.fetch_session("ada", 5, 9), lambda: len(store),
        lambda: store.commit_snapshots({}), lambda: next(rows), lambda: next(more), store.restart_task,
    ):
        refused(call)
    store.close()
    del store

store = opened("mine")
store.put("ada", 5, 9, 2)
store.put("ada", 15, 19, 2)
with store.all_or_nothing():
    rows, more = store.all(), store.all()
    next(more)
    store.put("eve", 5, 9, 3)
    ends(ended(use, store, rows, more))
ends(ended(use, store, rows, more))
assert [session.key for session in store.all()] == ["ada", "ada", "eve"]
del rows, more
store.close()
with opened("mine") as store:
    assert [session.key for session in store.all()] == ["ada", "ada", "eve"]
""",
    "a child that lives on locks nothing": """
store = opened("mine")
child = os.fork()
if not child:
    signal.pause()
store.close()
opened("mine").close()
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
""",
    "a store in memory is a copy": """
store = opened("mine", "memory")
store.put("ada", 5, 9, 2)
def use():
    store.put("bob", 5, 9, 2)
    assert len(store) == 2
ends(ended(use))
with store.all_or_nothing():
    ends(ended(use))
assert len(store) == 1
""",
    "half a change of another thread is refused": """
store = opened("mine", "memory")
inside, go_on = threading.Event(), threading.Event()
def change():
    with store.all_or_nothing():
        store.put("ada", 5, 9, 2)
        inside.set()
        go_on.wait()
other = threading.Thread(target=change)
other.start()
inside.wait()
ends(ended(lambda: refused(lambda: store.fetch_session("ada", 5, 9))))
go_on.set()
other.join()
ends(ended(lambda: len(store) == 1 or os._exit(9)))
""",
}


@pytest.mark.parametrize("case", FORKED)
@pytest.mark.slow
def test_forks(tmp_path: Path, case: str) -> None:
    program = [sys.executable, "-c", FORKS + FORKED[case], str(tmp_path)]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


# ---- what a forked process does first, here in this one


def test_a_lock_that_another_thread_held_is_torn_and_the_others_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    free, held, torn = (SharedStore(name) for name in ("free", "held", "torn"))
    torn.lock = before = locking._Torn("torn")
    monkeypatch.setattr(locking, "_stores", [torn, free, held])
    monkeypatch.setattr(locking._RocksDBUse, "before_fork", False)
    monkeypatch.setattr(locking._RocksDBUse, "here", False)
    inside, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        with held.lock:
            inside.set()
            go_on.wait()

    def take() -> None:
        lock: Any = free.lock
        taken.append(lock.acquire(blocking=False))

    taken: list[bool] = []
    first, second = threading.Thread(target=hold), threading.Thread(target=take)
    first.start()
    inside.wait()
    locking._after_fork()
    go_on.set()
    second.start()
    first.join(), second.join()
    assert taken == [True]
    assert torn.lock is before
    for store in (held, torn):
        what = f"another thread was using store '{store.name}' when this process was forked; got process "
        with pytest.raises(StoreLocked, match=what), store.lock:
            pass


@pytest.mark.parametrize(("here", "before"), [(False, False), (True, False), (False, True), (True, True)])
def test_rocksdb_is_refused_in_every_process_behind_one_that_used_it(
    monkeypatch: pytest.MonkeyPatch, here: bool, before: bool
) -> None:
    monkeypatch.setattr(locking, "_stores", [])
    monkeypatch.setattr(locking._RocksDBUse, "here", here)
    monkeypatch.setattr(locking._RocksDBUse, "before_fork", before)
    locking._after_fork()
    if not (here or before):
        locking.note_rocksdb()
        assert locking._RocksDBUse.here
        locking._after_fork()
    with pytest.raises(StoreLocked, match=r"a store on disk cannot be opened; got process \d+, forked"):
        locking.note_rocksdb()


def test_an_object_that_is_never_dropped_has_an_owner_more() -> None:
    opened = object()
    owners = sys.getrefcount(opened)
    locking.never_drop(opened)
    assert sys.getrefcount(opened) == owners + 1
