"""A wrong call of anything public is answered with a right one, never with Python's own TypeError."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.base.calls import called_as
from sessionkit.errors import InvalidArgument
from sessionkit.stores import store_class
from sessionkit.stores.contract import STORE_KINDS

CLICKS = pd.DataFrame({"user": ["ada"], "at": pd.to_datetime(["2026-03-02"], utc=True), "amount": [1.0]})
PLAN = (
    sk.group_by_key("user", timestamp="at")
    .windowed_by(sk.SessionWindows(inactivity_gap="30m", grace="10m"))
    .aggregate(visits=sk.count())
)
MANY = [None] * 30
PUBLIC = {name: getattr(sk, name) for name in sk.__all__}
# Windows are values with an engine's own methods beside them; those that users call are checked.
KINDS = (sk.SessionWindows, sk.TimeWindows, sk.SlidingWindows)


def classes() -> dict[str, type]:
    """Every class whose objects are handed out, on Spark too, where that is installed."""
    for kind in ("memory", "rocksdb"):
        assert store_class(kind, "sessions") and store_class(kind, "windows")  # registers them
    found = {name: kind for name, kind in PUBLIC.items() if inspect.isclass(kind) and kind not in KINDS}
    found |= {f"{kind} {of}": store for (kind, of), store in STORE_KINDS.items() if isinstance(store, type)}
    places = {
        "sessionkit.restarted_run": ["RestartedRun"],
        "sessionkit.trace.session_trace": ["SessionTrace"],
        "sessionkit.trace.window_trace": ["WindowTrace"],
        "sessionkit.spark.batch_run": ["SparkRun", "SparkTrace"],
        "sessionkit.spark.stream_run": ["StreamRun"],
    }
    return found | {name: getattr(import_module(place), name) for place, names in places.items() for name in names}


CLASSES = classes()
FUNCTIONS = {
    name: getattr(sk, name)
    for name in sk.__all__
    if inspect.isfunction(getattr(sk, name)) or getattr(sk, name) in KINDS
}
METHODS = [
    (kind, name)
    for kind, owner in CLASSES.items()
    for name in dir(owner)
    if not name.startswith("_")
    and inspect.isfunction(inspect.getattr_static(owner, name))
    and name not in getattr(owner, "__dataclass_fields__", {})
]


@contextlib.contextmanager
def one_of(kind: str, folder: Path) -> Iterator[Any]:
    """An object of this kind; a store that is open, as its methods take its lock first."""
    if (where := tuple(kind.split())) not in STORE_KINDS:
        yield object.__new__(CLASSES[kind])
        return
    with sk.open_store(
        where[0], "clicks", of=where[1], **({"directory": folder} if where[0] == "rocksdb" else {})
    ) as made:
        yield made


def assert_answered(call: Any) -> None:
    kinds = [each.kind for each in inspect.signature(call).parameters.values()]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        with pytest.raises(InvalidArgument, match=r"cannot be called like this; got (?!got|missing)"):
            call(nonsense=1)
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        with pytest.raises(InvalidArgument, match="positional arguments"):
            call(*MANY)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_function_answers_with_a_bare_type_error(name: str) -> None:
    assert_answered(FUNCTIONS[name])


@pytest.mark.parametrize(("kind", "name"), METHODS, ids=[".".join(each) for each in METHODS])
def test_no_method_answers_with_a_bare_type_error(kind: str, name: str, tmp_path: Path) -> None:
    with one_of(kind, tmp_path) as owner:
        assert_answered(getattr(owner, name))


@pytest.mark.parametrize("owner", ["Run", "Plan", "SparkRun", "StreamRun", "memory sessions", "rocksdb windows"])
def test_the_kinds_of_objects_are_among_them(owner: str) -> None:
    assert sum(kind == owner for kind, _ in METHODS) > 5


def test_the_answer_is_a_call_that_is_right() -> None:
    run = PLAN.run(CLICKS)
    told = r"^Run\.table cannot be called like this; got too many positional arguments; run\.table\(\)$"
    with pytest.raises(InvalidArgument, match=told):
        run.table("ada")  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match=r"run\.dropped\(missing_grace=True\)$"):
        run.dropped(grace=True)  # type: ignore[call-arg]
    with sk.open_store("memory", "clicks") as store, pytest.raises(InvalidArgument, match=r"store\.put\(key, "):
        store.put("ada")


def test_a_word_is_not_doubled() -> None:
    @called_as("f(x=3)")
    def f(*, x: int) -> int:
        return x

    with pytest.raises(InvalidArgument, match=r"^f cannot be .*; got an unexpected keyword argument 'y'; f\(x=3\)$"):
        f(x=3, y=4)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match=r"; got no argument 'x'; f\(x=3\)$"):
        f()  # type: ignore[call-arg]


def test_a_type_error_from_inside_stays_what_it_is() -> None:
    def inner(number: int) -> int:
        return number + "1"  # type: ignore[operator]

    with pytest.raises(TypeError, match="unsupported operand"):
        called_as("inner(3)")(inner)(3)
