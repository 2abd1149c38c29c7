"""A read-only view has the reads of its store and nothing else."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import sessionkit as sk

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
