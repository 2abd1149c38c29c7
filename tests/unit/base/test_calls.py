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
from sessionkit.errors import InvalidArgument, SessionkitError, UnknownName
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
KINDS = (sk.SessionWindows, sk.TimeWindows, sk.CalendarWindows, sk.SlidingWindows)


def classes() -> dict[str, type]:
    """Every class whose objects are handed out, on Spark too, where that is installed."""
    for kind in ("memory", "rocksdb"):
        assert store_class(kind, "sessions") and store_class(kind, "windows")  # registers them
    found = {name: kind for name, kind in PUBLIC.items() if inspect.isclass(kind) and kind not in KINDS}
    found |= {f"{kind} {of}": store for (kind, of), store in STORE_KINDS.items() if isinstance(store, type)}
    places = {
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
        where[0], "clicks", of=where[1], **({"directory": folder} if where[0] != "memory" else {})
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


@pytest.mark.thorough
@pytest.mark.parametrize(("kind", "name"), METHODS, ids=[".".join(each) for each in METHODS])
def test_no_method_answers_with_a_bare_type_error(kind: str, name: str, tmp_path: Path) -> None:
    with one_of(kind, tmp_path) as owner:
        assert_answered(getattr(owner, name))


@pytest.mark.parametrize("owner", ["Run", "Plan", "SparkRun", "StreamRun", "memory sessions", "rocksdb windows"])
def test_the_kinds_of_objects_are_among_them(owner: str) -> None:
    assert sum(kind == owner for kind, _ in METHODS) > 5


RUN = PLAN.run(CLICKS)
RIGHT: dict[str, Any] = {
    "unit": "day", "timezone": "UTC",
    "key": "ada", "data": CLICKS, "plan": PLAN, "run": RUN, "held": RUN, "other": RUN, "windows": PLAN.windows,
    "strategy": "on_window_close", "until": "until_window_closes", "function": max, "value": "amount", "offset": 0,
    "column": "amount", "keys": "user", "by": "user", "at": "at", "gap": "1h", "partitions": 4, "kind": "memory",
    "name": "clicks", "path": "clicks.html", "size": 1, "aggregate": 1, "timestamp": "at", "checkpoint": "no", "q": 0.5,
    "n": 3, "theirs": "page",
}  # fmt: skip
NO_TEXT, NO_PATH = [5, ["a"], b"x"], [5, ["a"], CLICKS]
WRONG = {"int": ["5", "a", 2.5, [1]], "str": NO_TEXT, "Path": NO_PATH, "Mapping": ["a", 5], "Theme": NO_TEXT}
# What only our own code calls, with arrays and rows of its own.
OWN = {"as_they_came", "bounds_before", "last_instants_ms", "passed_by", "windows_at", "records_of", "size_of"}
NEED_SPARK = {"watch", "from_kafka", "to_kafka"}


def handed_out() -> dict[str, Any]:
    """What users hold: runs and plans, and what their views and the functions give."""
    held = {"run": RUN, "plan": PLAN, "trace": RUN.trace, "latency": RUN.latency(), "open_windows": RUN.open_windows()}
    held |= {"comparison": RUN.compare(RUN), "lineage": RUN.lineage("ada", CLICKS["at"][0]), "export": PLAN.to_java()}
    held |= {"emissions": RUN.emissions("ada"), "calendar": RUN.drop_calendar(), "times": RUN.partition_times()}
    held |= {"sweep": sk.sweep(PLAN, CLICKS, grace=["0s", "1h"]), "audit": sk.audit(PLAN, CLICKS)}
    held |= {"grace": sk.suggest_grace(PLAN, CLICKS), "gap": sk.suggest_gap(PLAN, CLICKS)}
    held |= {"beside": sk.audit(PLAN.suppress("until_window_closes"), CLICKS).beside_emit_on_close()}
    held |= {"deployment": sk.Deployment()}
    return held | {"tune": sk.tune(PLAN, CLICKS), "play": sk.play(RUN)}


HELD = handed_out()
BOARDS = ("tune", "play")
CALLS: dict[str, Any] = {f"sk.{name}": call for name, call in FUNCTIONS.items() if name not in NEED_SPARK}
STORE = sk.open_store("memory", "clicks")
CALLS |= {f"store.{name}": getattr(STORE, name) for name in ("put", "remove", "find_sessions", "fetch_session", "all")}
CALLS |= {
    f"{shown}.{name}": getattr(owner, name)
    for shown, owner in HELD.items()
    for name in (("figure", "set", "write_html") if shown in BOARDS else dir(owner))
    if not name.startswith("_") and name not in OWN and inspect.ismethod(getattr(owner, name, None))
}


def wrong_calls() -> list[tuple[str, str, Any]]:
    """Each parameter that is a number, text, a path, a dict or a theme and nothing else, with what is none."""
    found = []
    for shown, call in CALLS.items():
        for name, each in inspect.signature(call).parameters.items():
            kinds = {kind.partition("[")[0] for kind in str(each.annotation).split(" | ")} - {"None"}
            if kinds <= set(WRONG):
                values = NO_PATH if "Path" in kinds else [value for kind in kinds for value in WRONG[kind]]
                found += [(shown, name, value) for value in values]
    return found


@pytest.mark.parametrize(("shown", "name", "value"), wrong_calls())
def test_a_value_of_the_wrong_type_is_answered(
    shown: str, name: str, value: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an error of sessionkit's own, if the call has no answer: `losses("a")` spoke of slice indices."""
    monkeypatch.chdir(tmp_path)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for each in inspect.signature(CALLS[shown]).parameters.values():
        if each.kind == each.VAR_KEYWORD or (each.name != name and each.default is not each.empty):
            continue
        given = value if each.name == name else 0 if each.name.endswith("_ms") else RIGHT[each.name]
        if each.kind == each.VAR_POSITIONAL:
            positional.append(given)
        else:
            named[each.name] = given
    with contextlib.suppress(SessionkitError):
        CALLS[shown](*positional, **named)


def test_the_wrong_calls_are_many() -> None:
    """And reach every kind of object: what the test above goes through is worked out from signatures."""
    calls = wrong_calls()
    owners = {shown.partition(".")[0] for shown, _, _ in calls}
    assert owners >= {"sk", "run", "plan", "trace", "sweep", "tune", "grace"}
    assert len(calls) > 150


@pytest.mark.parametrize("shown", [shown for shown in HELD if shown not in BOARDS])
def test_what_is_handed_out_refuses_wrong_arguments_and_names(shown: str) -> None:
    owner = HELD[shown]
    for name in dir(owner):
        if not name.startswith("_") and inspect.ismethod(getattr(owner, name, None)):
            assert_answered(getattr(owner, name))
    if shown != "trace":
        with pytest.raises(UnknownName, match=r"has no such name; got zzzzzz; "):
            owner.zzzzzz  # noqa: B018
    if hasattr(owner, "table"):
        with pytest.raises(InvalidArgument, match=r"is no table; got \w+\['x'\]; \w+\.table\(\) is one"):
            owner["x"]


@pytest.mark.parametrize("shown", BOARDS)
def test_a_board_refuses_wrong_arguments(shown: str) -> None:
    assert_answered(HELD[shown].figure)


def test_the_answer_is_a_call_that_is_right() -> None:
    run = PLAN.run(CLICKS)
    told = r"^Run\.table cannot be called like this; got too many positional arguments; run\.table\(\)$"
    with pytest.raises(InvalidArgument, match=told):
        run.table("ada")  # type: ignore[call-arg]
    store: Any = sk.open_store("memory", "of-sessions", of="sessions")
    with pytest.raises(InvalidArgument, match=r'; store\.fetch\("ada"\), or store\.find_sessions\("ada", "2026'):
        store.fetch("ada", "2026-03-02", "2026-03-03")
    with pytest.raises(InvalidArgument, match=r"store\.backward_fetch\(key, partition=0\)$"):
        store.backward_fetch("ada", "2026-03-02", "2026-03-03")
    with pytest.raises(InvalidArgument, match=r"run\.dropped\(missing_grace=True\)$"):
        run.dropped(grace=True)  # type: ignore[call-arg]
    with sk.open_store("memory", "clicks") as store, pytest.raises(InvalidArgument, match=r"store\.put\(key, "):
        store.put("ada")


def test_a_mistyped_name_is_answered_with_the_nearest() -> None:
    """`run.plane(first=3)` was Python's TypeError about `plane_scene`."""
    with pytest.raises(InvalidArgument, match=r"^Run\.lanes .* 'kyes'; keys= is the nearest name: run\.lanes\(\)$"):
        RUN.lanes(kyes=["ada"])  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match=r"^Run.plane cannot be .*; from_offset= is the nearest name"):
        RUN.plane(first=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match=r"'limit'; run\.lanes\(\); it takes keys, most, sort, start, "):
        RUN.lanes(limit=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match="no argument 'timestamp'; timestamp= is the nearest name"):
        sk.group_by_key("user", time="at")  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match=r"'start'; run.plane.*; run.lanes\(start="):
        RUN.plane("ada", start="2026-01-01")  # type: ignore[call-arg]


@pytest.mark.parametrize(("wrong", "meant"), [
    ({"gap": "30m", "max_duration": "4h"}, "max_length="), ({"gap": "30m", "max_events": 5}, "max_rows="),
    ({"timeout": "30m"}, "gap="),
])  # fmt: skip
def test_a_rule_of_sessions_is_found_by_what_it_does_and_not_by_its_letters(wrong: dict[str, Any], meant: str) -> None:
    with pytest.raises(InvalidArgument, match=f"; {meant} is the nearest name"):
        sk.sessionize(pd.DataFrame(), by="user", at="at", **wrong)


def test_a_view_on_spark_refuses_options_of_the_view_here_before_it_collects_anything() -> None:
    run = object.__new__(CLASSES["SparkRun"])  # which knows no frame
    with pytest.raises(InvalidArgument, match=r"^SparkRun.lanes cannot be .* 'kyes'; keys= is the nearest name"):
        run.lanes(kyes=["ada"])
    with pytest.raises(InvalidArgument, match=r"^SparkRun.plane cannot be .* 'widht'; width= is the nearest name"):
        run.plane(widht=900)
    with pytest.raises(InvalidArgument, match=r"^SparkRun.plane takes a whole number as width; got str '900'; "):
        run.plane(width="900")
    assert {"last", "playback"} < {*inspect.signature(run.plane).parameters}  # what a notebook shows


@pytest.mark.parametrize(("kind", "name", "meant"), [
    ("StreamRun", "plane", "plan.run(data).plane: The history of one key"),
    ("SparkRun", "tabel", "run.table: One row per window"),
    ("StreamRun", "trace", "plan.run(data).trace: Every decision; a stream keeps the windows that a record can still"),
    ("StreamRun", "of", "a stream keeps no records; plan.run(df) of the same ones"),
    ("SparkRun", "deployed", "run.local(partition).deployed; what each application sent"),
    ("SparkRun", "write", "its tables are DataFrames: run.table().write"),
    ("Run", "of", 'plan.run(data, keys=["ada"]) is the run of some keys'),
])  # fmt: skip
def test_what_only_a_run_here_has_says_where_it_is(kind: str, name: str, meant: str) -> None:
    with pytest.raises(UnknownName) as caught:
        getattr(object.__new__(CLASSES[kind]), name)
    assert str(caught.value).startswith(f"run has no such name; got {name}; {meant}")


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
    with pytest.raises(InvalidArgument, match=r"^inner takes a whole number as number; got list \[3\]; inner\(3\)$"):
        called_as("inner(3)")(inner)([3])  # type: ignore[arg-type]


def test_a_value_that_is_called_says_that_it_is_one() -> None:
    frame = {"user": ["ada"], "at": [1]}
    for windows in (sk.SessionWindows(inactivity_gap="1s", grace=0), sk.TimeWindows(size="1s", grace=0)):
        run = sk.group_by_key("user", timestamp="at", unit="ms").windowed_by(windows).count().run(frame)
        with pytest.raises(
            InvalidArgument, match=r"^run\.trace is a value, not a method; got run\.trace\(\); run\.trace$"
        ):
            run.trace()  # type: ignore[operator]
