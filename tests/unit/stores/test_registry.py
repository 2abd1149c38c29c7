"""How a store is opened: its kind is found by name, its options are the parameters of its class."""

import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, StoreError, StoreUnavailable
from sessionkit.stores.contract import HOLDS, READ_ONLY_KINDS, STORE_KINDS, store_kind
from sessionkit.stores.registry import open_store, store_kinds, such_as


def test_the_kinds_that_come_along() -> None:
    assert store_kinds() == ["memory", "rocksdb", "spark"]
    importlib.import_module("sessionkit.spark.checkpoint")  # registers itself
    assert "spark" in READ_ONLY_KINDS


def test_a_kind_is_loaded_when_it_is_asked_for() -> None:
    code = """
import sys
import sessionkit as sk
before = [name for name in sys.modules if name.startswith("sessionkit.stores.rocksdb") or name == "rocksdict"]
sk.open_store("memory", "clicks").close()
after = [name for name in sys.modules if name.startswith("sessionkit.stores.rocksdb") or name == "rocksdict"]
print(before, after, "sessionkit.stores.memory.sessions" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "[] [] True\n"


@pytest.mark.parametrize(("kind", "options", "telling"), [
    ("memory", {"directory": "state"}, "a store of kind 'memory' has no such option; got directory='state'; leave"),
    ("memory", {"retenshun": "1h"}, "got retenshun='1h'; leave it out, or take another kind; the options of this"),
    ("memory", {"batch": 7}, "the options of this one are retention, name"),
    ("rocksdb", {"checkpoint": "state"}, "a store of kind 'rocksdb' has no such option; got checkpoint='state'"),
    ("rocksdb", {"directory": "state", "index": True}, "has no such option; got index=True"),
    ("rocksdb", {}, "needs an option; got directory=None; directory=…; the options of this kind are name, directory"),
    ("spark", {}, "a store of kind 'spark' needs an option; got checkpoint=None; checkpoint=…"),
    ("spark", {"retention": "1h", "checkpoint": "state"}, "a store of kind 'spark' has no such option; got retention"),
    ("spark", {"name": "clicks", "checkpoint": "state"}, "a store of kind 'spark' has no such option; got name="),
    ("disk", {}, "kind of store must be a known choice; got 'disk'; one of 'memory', 'rocksdb', 'spark'"),
    (None, {}, "kind of store must be a known choice; got None; one of 'memory', 'rocksdb', 'spark'"),
    (["memory"], {}, "kind of store must be a known choice; got ['memory']; one of 'memory', 'rocksdb', 'spark'"),
    ("memory", {"of": "window"}, "of must be a known choice; got 'window'; one of 'sessions', 'windows'"),
])  # fmt: skip
def test_options_that_a_kind_has_not_or_needs(kind: Any, options: dict[str, Any], telling: str) -> None:
    name = None if kind == "spark" else "clicks"
    with pytest.raises(InvalidArgument) as error:
        open_store(kind, **{"name": name, **options})
    assert telling in str(error.value)


def test_an_option_that_is_none_or_false_is_left_out() -> None:
    with open_store("memory", "clicks", directory=None, time_ordered=False, retention=None) as store:
        assert store.retention_ms is None


def test_options_of_windows_alone(tmp_path: Path) -> None:
    options: dict[str, Any] = {"directory": tmp_path, "time_ordered": True, "index": True}
    with open_store("rocksdb", "clicks", of="windows", **options) as store:
        assert store.time_ordered


def test_a_kind_of_ones_own() -> None:
    try:

        @store_kind("half", of="windows")
        class Half:
            def __init__(self, *, name: str, colour: str = "red") -> None:
                self.told = (name, colour)

        assert open_store("half", "mine", of="windows", colour="blue").told == ("mine", "blue")
        assert open_store("half", "mine", of="windows").told == ("mine", "red")
        with pytest.raises(
            InvalidArgument, match="a plan cannot keep sessions in such a store; got 'half'; one of 'mem"
        ):
            open_store("half", "mine")
        with pytest.raises(InvalidArgument, match="this cannot be the name of a store"):
            open_store("half", "a/b", of="windows")
        with pytest.raises(InvalidArgument, match="has no such option; got retention='1h'"):
            open_store("half", "mine", of="windows", retention="1h")
    finally:
        del STORE_KINDS["half", "windows"]
    assert store_kinds() == ["memory", "rocksdb", "spark"]


def test_what_to_give_is_what_works() -> None:
    for of in (None, *HOLDS):
        call = such_as(of).removeprefix("such as ")
        assert call == 'sk.open_store("memory", "clicks-store"' + (")" if of is None else f', of="{of}")')
    assert list(inspect.signature(sk.open_store).parameters) == ["kind", "name", "of", "retention", "options"]


@pytest.mark.parametrize("of", HOLDS)
def test_without_rocksdict_a_store_on_disk_says_what_to_install(
    of: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rocksdict", None)
    with pytest.raises(StoreUnavailable, match=r"pip install 'sessionkit-streams\[rocksdb\]'$") as error:
        sk.open_store("rocksdb", "clicks", of=of, directory=tmp_path / "state")
    assert isinstance(error.value, ImportError)
    assert isinstance(error.value, StoreError)
    assert list(tmp_path.iterdir()) == []
    with sk.open_store("memory", "clicks", of=of) as store:
        assert len(store) == 0
