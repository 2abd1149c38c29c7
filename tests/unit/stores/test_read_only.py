"""A read-only view has the reads of its store and nothing else."""

import copy
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument
from tests.deployments import run_deployed

WRITES = ["put", "remove", "commit", "bind", "all_or_nothing", "commit_snapshots", "close", "find_sessions_by_end"]


@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
@pytest.mark.parametrize("of", ["sessions", "windows"])
def test_reads_are_there_and_writes_are_not(kind: str, of: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"directory": tmp_path} if kind == "rocksdb" else {}
    with sk.open_store(kind, "s", of=of, **options) as store:
        store.put("ada", 5, 9, 2)
        view = store.read_only()
        for name in WRITES:
            with pytest.raises(AttributeError, match=f"a read-only store has no such call; got '{name}'; one of"):
                getattr(view, name)
        assert list(view.all()) == list(store.all())
        assert list(view.fetch(*(["ada"] if of == "sessions" else ["ada", 0, 9]))) == list(store.all())
        assert hasattr(view, "find_sessions") == hasattr(view, "fetch_session") == (of == "sessions")
        assert hasattr(view, "fetch_window") == hasattr(view, "fetch_all") == (of == "windows")
        assert set(dir(view)) >= {"fetch", "backward_fetch", "all", "to_pandas"}
        assert view.to_pandas().equals(store.to_pandas())
        store.put("bob", 6, 9, 2)
        assert (len(view), repr(view)) == (2, f"read-only {store!r}")
        assert view._repr_html_() == store._repr_html_()


@pytest.mark.parametrize("kind", ["memory", "rocksdb"])
@pytest.mark.parametrize("of", ["sessions", "windows"])
def test_a_read_looks_into_all_partitions(kind: str, of: str, tmp_path: Path) -> None:
    """A key that was in partition 3 was not found unless one said so."""
    options: dict[str, Any] = {"directory": tmp_path} if kind == "rocksdb" else {}
    with sk.open_store(kind, "s", of=of, **options) as store:
        view = store.read_only()
        times = (5, 9) if of == "sessions" else (5,)
        of_bob = ("bob",) if of == "sessions" else ("bob", 0, 9)
        exactly = view.fetch_session if of == "sessions" else view.fetch_window
        assert list(view.all()) == list(view.fetch(*of_bob)) == []
        assert exactly("bob", *times) is None
        with pytest.raises(InvalidArgument, match="this cannot be a key"):
            list(view.fetch(1.5, *of_bob[1:]))
        for partition, key in ((3, "bob"), (1, "ada"), (1, "bob")):
            put = (2,) if of == "sessions" else (2, 9)
            store.put(key, *times, *put, partition=partition)
        assert view.partitions == [1, 3]
        assert [each.key for each in view.all()] == ["ada", "bob", "bob"]
        assert len(list(view.fetch(*of_bob))) == 2
        assert [each.key for each in view.fetch(*of_bob, partition=3)] == ["bob"]
        assert list(view.fetch(*of_bob, partition=0)) == []
        assert exactly("ada", *times) is not None
        assert exactly("ada", *times, partition=3) is None


def test_it_cannot_be_half_made() -> None:
    """Copying asks for attributes before there are any."""
    view = sk.open_store("memory", "s").read_only()
    assert len(copy.copy(view)) == 0


@pytest.mark.parametrize("caching", [False, True])
def test_what_a_query_sees_of_a_run(caching: bool) -> None:
    plan = sk.group_by_key("key", timestamp="at", unit="ms").windowed_by(sk.TimeWindows(size_ms=10, grace=0)).count()
    run = run_deployed(plan, pd.DataFrame({"key": ["a"], "at": [1]}), caching=caching)
    view = run._store.read_only()
    assert [window.aggregate for window in view.fetch("a", 0, 9)] == [1]
    assert view.partitions == [0]
    assert "read-only" in view._repr_html_() or "Memory" in view._repr_html_()
