"""A read-only view has the reads of its store and nothing else."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument

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


def test_it_cannot_be_half_made() -> None:
    """Copying asks for attributes before there are any."""
    view = sk.open_store("memory", "s").read_only()
    assert len(copy.copy(view)) == 0


def test_a_plan_does_not_take_one() -> None:
    plan = sk.group_by_key("key", timestamp="at", unit="ms").windowed_by(sk.TimeWindows(size=10, grace=0)).count()
    view = sk.open_store("memory", "s", of="windows").read_only()
    with pytest.raises(InvalidArgument, match=r"a plan writes to its store; got read-only Memory.*; the store itself"):
        plan.run(pd.DataFrame({"key": ["a"], "at": [1]}), store=view)


@pytest.mark.parametrize("caching", [False, True])
def test_what_a_query_sees_of_a_run(caching: bool) -> None:
    plan = sk.group_by_key("key", timestamp="at", unit="ms").windowed_by(sk.TimeWindows(size=10, grace=0)).count()
    run = plan.run(pd.DataFrame({"key": ["a"], "at": [1]}), rules="kafka", caching=caching)
    view = run.store.read_only()
    assert [window.aggregate for window in view.fetch("a", 0, 9)] == [1]
    assert "read-only" in view._repr_html_() or "Memory" in view._repr_html_()
