"""Mistakes that anyone makes with a new library: each is answered with the right call, and never from inside."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sessionkit as sk
from sessionkit.errors import InvalidArgument, SessionkitError
from tests.deployments import audit_deployed, run_deployed
from tests.kinds import EACH_KIND

CLICKS = pd.DataFrame({"user": ["ada", "bob", "ada"], "at": [0, 10_000, 20_000], "amount": [1, 2, 3]})
WINDOWS = sk.SessionWindows(inactivity_gap="30s", grace="10s")
KEYED = sk.group_by_key("user", timestamp="at", unit="ms")
PLAN = KEYED.windowed_by(WINDOWS).count()
RUN = PLAN.run(CLICKS)
NUMBERED = PLAN.run(CLICKS.assign(user=[118, 7, 118]))

MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "Kafka's name for sessions": (
        lambda: sk.SessionWindows.ofInactivityGapAndGrace("30m", "5m"),  # type: ignore[attr-defined]
        'got ofInactivityGapAndGrace; sk.SessionWindows(inactivity_gap="30m", grace="5m")',
    ),
    "Kafka's name for hopping": (
        lambda: sk.TimeWindows(size="1h", grace="0s").advanceBy("5m"),  # type: ignore[attr-defined]
        'got advanceBy; sk.TimeWindows(size="1h", advance="5m", grace="5m")',
    ),
    "Polars' name on a store": (lambda: sk.open_store("memory", "s").to_polars(), "store.to_pandas: "),
    "a name that no store has": (lambda: sk.open_store("memory", "s").get("ada"), "got get; store.fetch: "),
    "Spark's word for advance": (
        lambda: sk.TimeWindows(size="1h", slide="5m", grace="0s"),  # type: ignore[call-arg]
        "advance= is the nearest name: sk.TimeWindows(",
    ),
    "rows to be sorted": (
        lambda: sk.sessionize(CLICKS, by="user", at="at", gap="30m", sort=True),
        "without a grace any order of the rows will do",
    ),
    "the former word for by_key": (
        lambda: PLAN.run(CLICKS, parallelism="key"),  # type: ignore[call-overload]
        "plan.run(df).by_key() distributes the records of a Spark DataFrame by key",
    ),
    "rows to be sorted by a run": (
        lambda: PLAN.run(CLICKS, sort="timestamp"),  # type: ignore[call-overload]
        'sort= belongs to sk.group_by_key("user", timestamp="at", …)',
    ),
    "lengths of a run": (
        lambda: PLAN.run(CLICKS, grace="5m"),  # type: ignore[call-overload]
        'plan.with_windows(grace="5m") has other lengths',
    ),
    "no key": (
        lambda: sk.group_by_key(None, timestamp="at"),  # type: ignore[arg-type]
        'group_by_key(timestamp="at"), without a column, takes all records as one key',
    ),
    "one value for a sweep": (
        lambda: sk.sweep(PLAN, CLICKS, inactivity_gap="10m"),
        "a sweep takes several values of inactivity_gap; got '10m'; inactivity_gap=['10m', …]",
    ),
    "one text as keys": (lambda: RUN.lanes(keys="ada"), "keys= takes a list of keys; got 'ada'"),
    "one number as keys": (lambda: RUN.write_html("x.html", keys=5), "keys= takes a list of keys; got 5"),
    "one value for a slider": (lambda: sk.tune(PLAN, CLICKS, grace="10m"), "a span of grace has two ends; got '10m'"),
    "one number for a slider": (lambda: sk.tune(PLAN, CLICKS, inactivity_gap=5), "inactivity_gap has two ends; got 5"),
    "commits after no row": (lambda: run_deployed(PLAN, CLICKS, commit_every=["x"]), "got ['x']"),
    "a share as text": (lambda: sk.suggest_grace(PLAN, CLICKS, keep="0.9"), "a share of the records; got '0.9'"),
    "one number for a sweep": (lambda: sk.sweep(PLAN, CLICKS, grace_ms=5), "got 5; grace_ms=[5, …]"),
    "a gap without its name": (lambda: sk.SessionWindows("2h"), 'SessionWindows(inactivity_gap="30m", grace="5m")'),
    "another name for the gap": (
        lambda: sk.SessionWindows(pause="2h", grace="1h"),
        "sk.SessionWindows(inactivity_gap=",
    ),
    "the gap twice": (lambda: sk.SessionWindows(inactivity_gap="1h", gap="2h", grace="1h"), "two names of one length"),
    "a size without its name": (lambda: sk.TimeWindows("1h"), 'sk.TimeWindows(size="1h", grace="5m")'),
    "a difference without its name": (lambda: sk.SlidingWindows("1h"), "sk.SlidingWindows(time_difference="),
    "until without a retention": (lambda: sk.SessionWindows.until(inactivity_gap="1h"), 'retention="5m" or other text'),
    "grace twice, as 0": (lambda: sk.TimeWindows(size="1h", grace=0, grace_ms=0), "got grace=0 and grace_ms=0; leave"),
    "grace changed twice": (
        lambda: PLAN.with_windows(grace="1h", grace_ms=5),
        "grace and grace_ms cannot both be given",
    ),
    "milliseconds as a float": (lambda: sk.TimeWindows(size_ms=1e3, grace=0), "size_ms must be an int; got 1000.0;"),
    "no time": (lambda: sk.group_by_key("user"), 'sk.group_by_key("user", timestamp="at")'),
    "two keys": (
        lambda: sk.group_by_key("a", "b", timestamp="at"),
        "several key columns need a separator; got ['a', 'b']",
    ),
    "two keys and no text": (lambda: sk.group_by_key("a", "b", timestamp="at", sep=""), "columns need a separator"),
    "the time as a second key": (lambda: sk.group_by_key("user", "at"), "; got no argument 'timestamp'; "),
    "no windows": (KEYED.windowed_by, "plan.windowed_by(sk.SessionWindows("),
    "counts of a column": (lambda: sk.count("amount"), "sk.count(), which counts all records"),
    "a sum of nothing": (sk.sum, 'sk.sum("amount")'),
    "a sum of two columns": (lambda: sk.sum("a", "b"), 'sk.sum("amount")'),
    "an aggregation without a name": (lambda: PLAN.aggregate(sk.count()), "plan.aggregate(visits=sk.count()"),
    "a function without its column": (lambda: sk.reduce(max), 'sk.reduce(function, "page")'),
    "a plan's count of a column": (lambda: KEYED.windowed_by(WINDOWS).count("amount"), "plan.count(); of a column"),
    "no emit strategy": (PLAN.emit, 'plan.emit("on_window_close")'),
    "nothing to run": (PLAN.run, "plan.run(data)"),
    "an option that is not there": (lambda: PLAN.run(CLICKS, cache=True), "this; got an unexpected keyword"),
    "an offset without its name": (lambda: RUN.explain(13), "run.explain(offset=13)"),
    "nothing to explain": (RUN.explain, "explain"),
    "a lineage without a start": (lambda: RUN.lineage("ada"), "lineage takes a key and a start"),
    "another length": (lambda: PLAN.with_windows(size="1h"), "has no such parameter; got 'size'"),
    "a length without its name": (lambda: PLAN.with_windows("1h"), 'plan.with_windows(grace="1h")'),
    "no records to sweep": (lambda: sk.sweep(PLAN, grace=["0s"]), "sk.sweep(plan, data, grace="),
    "no values to sweep": (lambda: sk.sweep(PLAN, CLICKS), "a sweep needs values"),
    "the records twice": (lambda: sk.suggest_gap(CLICKS, CLICKS), "sk.suggest_gap(plan, data)"),
    "no plan to suggest for": (lambda: sk.suggest_grace(CLICKS), "sk.suggest_grace(plan, data"),
    "no records to audit": (lambda: sk.audit(PLAN), "sk.audit(plan, data, sk.Deployment())"),
    "a width as text": (lambda: RUN.plane(width="900"), "Run.plane takes a whole number as width; got str '900'"),
    "a number of keys as text": (lambda: RUN.lanes(most="5"), "Run.lanes takes a whole number as most; got str '5'"),
    "True as a width": (
        lambda: RUN.lanes(width=True),
        "a chart needs room for its labels; got True; 360 pixels or more",
    ),
    "an offset as text": (lambda: RUN.explain(offset="5"), "Run.explain takes a whole number as offset; got str '5'"),
    "an offset with a fraction": (lambda: RUN.explain(offset=2.5), "takes a whole number as offset; got float 2.5"),
    "a partition as text": (lambda: RUN.explain(offset=1, partition="0"), "takes a whole number as partition; got str"),
    "a page as PDF": (lambda: RUN.write_html("x.pdf"), 'a page is HTML; got x.pdf; a path such as "clicks.html"'),
    "a number as a path": (lambda: RUN.write_html(5), "Run.write_html takes text or a path as path; got int 5;"),
    "a plan to play": (lambda: sk.play(PLAN), "play takes a run in this process as run; got Plan"),
    "records to play": (lambda: sk.play(CLICKS), "play takes a run in this process as run; got DataFrame"),
    "a slider without its name": (lambda: sk.tune(PLAN, CLICKS).set("2h"), 'board.set(grace="2h")'),
    "text for a key that is a number": (
        lambda: NUMBERED.plane("118"),
        "this key is not in the run; got '118'; one of 2 keys, such as 118, 7 (numbers, not text)",
    ),
    "a number for a key that is text": (
        lambda: RUN.plane(5),
        "this key is not in the run; got 5; one of 2 keys, such as 'ada', 'bob' (text, not numbers)",
    ),
    "text for the key of a window": (lambda: NUMBERED.explain(key="118", window_start=0), "118, 7 (numbers, not text)"),
    "text for the key of a lineage": (lambda: NUMBERED.lineage("118", 0), "such as 118, 7 (numbers, not text)"),
    "a key over two lines": (lambda: RUN.plane("a\nb"), r"this key is not in the run; got 'a\nb'; one of"),
    "partitions by name": (
        lambda: sk.sessionize(CLICKS, "user", "at", "1h", unit="ms", partition="user"),
        "must hold integers; got string; cast it, or number what it names: pandas.factorize(df['user'])[0]",
    ),
    "the records in front of the key": (lambda: sk.group_by_key(CLICKS, "user", timestamp="at"), "key 0 must be text"),
    "a column of a run": (lambda: RUN["user"], "run is no table; got run['user']; run.table() is one"),
    "a part of an export": (lambda: PLAN.to_ksql()[0], "export is no text; got export[0]; export.code is one"),
    "a loop over a run": (lambda: list(RUN), "run is no table; got run[0]; run.table() is one"),
    "no windows yet": (
        lambda: KEYED.count().run(CLICKS),
        'got (sk.group_by_key("user", timestamp="at", unit="ms").aggregate(count=sk.count()));',
    ),
    "a picture of a sweep": (
        lambda: sk.sweep(PLAN, CLICKS, grace=[0]).plot(),
        "got plot; sweep.heat_map: The cells as a",
    ),
    "no run to compare with": (RUN.compare, "run.compare(other_run)"),
}


# A number without a unit: `gap=7200` was 7.2 s to us and two hours to whoever wrote it.
LENGTHS: dict[str, tuple[str, Callable[[Any], object]]] = {
    "SessionWindows": ("inactivity_gap", lambda given: sk.SessionWindows(inactivity_gap=given, grace=0)),
    "its grace": ("grace", lambda given: sk.SessionWindows(inactivity_gap="2h", grace=given)),
    "until": ("inactivity_gap", lambda given: sk.SessionWindows.until(inactivity_gap=given, retention="1d")),
    "its retention": ("retention", lambda given: sk.SessionWindows.until(inactivity_gap="1h", retention=given)),
    "TimeWindows": ("size", lambda given: sk.TimeWindows(size=given, grace=0)),
    "their advance": ("advance", lambda given: sk.TimeWindows(size="1d", advance=given, grace=0)),
    "their grace": ("grace", lambda given: sk.TimeWindows(size="1d", grace=given)),
    "SlidingWindows": ("time_difference", lambda given: sk.SlidingWindows(time_difference=given, grace=0)),
    "with_windows": ("grace", lambda given: PLAN.with_windows(grace=given)),
    "run": ("retention", lambda given: PLAN.run(CLICKS, retention=given)),
    "run as Kafka": ("retention", lambda given: run_deployed(PLAN, CLICKS, retention=given)),
    "emit_interval": ("emit_interval", lambda given: run_deployed(PLAN, CLICKS, emit_interval=given)),
    "open_store": ("retention", lambda given: sk.open_store("memory", "clicks", retention=given)),
    "open_store on disk": (
        "retention",
        lambda given: sk.open_store("rocksdb", "clicks", directory="nowhere", retention=given),
    ),
    "its segments": (
        "segment_interval",
        lambda given: sk.open_store("rocksdb", "clicks", directory="nowhere", segment_interval=given),
    ),
    "sweep": ("grace", lambda given: sk.sweep(PLAN, CLICKS, grace=["1h", given])),
    "its cell": ("grace", lambda given: sk.sweep(PLAN, CLICKS, grace=["1h"]).cell(grace=given)),
    "suggest_grace": ("inactivity_gap", lambda given: sk.suggest_grace(PLAN, CLICKS, gap=given)),
    "audit": ("retention", lambda given: audit_deployed(PLAN, CLICKS, retention=given)),
    "its emit_interval": ("emit_interval", lambda given: audit_deployed(PLAN, CLICKS, emit_interval=given)),
    "tune": ("grace", lambda given: sk.tune(PLAN, CLICKS, grace=(0, given))),
    "a slider": ("grace", lambda given: sk.tune(PLAN, CLICKS).set(grace=given)),
    "to_java": ("retention", lambda given: PLAN.to_java(retention=given)),
    "to_ksql": ("retention", lambda given: PLAN.to_ksql(retention=given)),
}  # fmt: skip


@pytest.mark.parametrize("call", LENGTHS)
@pytest.mark.parametrize("number", [7200, np.int64(7200), 7200.0])
def test_a_length_without_a_unit_is_refused_with_those_that_could_be_meant(call: str, number: Any) -> None:
    name, make = LENGTHS[call]
    with pytest.raises(InvalidArgument) as caught:
        make(number)
    units = '"7200ms" for milliseconds, "7200s" for seconds, "7200m" for minutes'
    assert str(caught.value) == f"{name} needs a unit; got 7200; {units}"


@pytest.mark.parametrize("windows", [*EACH_KIND.values(), sk.SessionWindows.until(inactivity_gap="1h", retention="1d")])
def test_numbers_have_a_name_of_their_own_and_are_handed_on(windows: Any) -> None:
    make, given = windows.arguments()
    lengths = [name for name in given if name.endswith("_ms")]
    assert lengths and all(type(given[name]) is int for name in lengths)
    plan = KEYED.windowed_by(windows)
    for name in lengths:
        changed = plan.with_windows(**{name: given[name] + 1}).windows
        assert changed.arguments()[1] == {**given, name: given[name] + 1}
        assert changed == make(**{**given, name: np.int64(given[name] + 1)})
        assert changed == plan.with_windows(**{name.removesuffix("_ms"): f"{given[name] + 1}ms"}).windows


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_with_the_right_call(name: str) -> None:
    make, said = MISTAKES[name]
    with pytest.raises(SessionkitError) as caught:
        make()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_goes_wrong_inside_stays_what_it_is() -> None:
    def add(key: object, value: object, count: int) -> int:
        return count + len(value)  # type: ignore[arg-type]

    own = sk.aggregation(initializer=int, aggregator=add, merger=lambda key, a, b: a + b, value="amount")
    with pytest.raises(SessionkitError, match="has no len"):
        KEYED.windowed_by(WINDOWS).aggregate(own=own).run(CLICKS).table()


def test_a_call_that_is_right_keeps_its_signature() -> None:
    with pytest.raises(InvalidArgument, match=r"^SessionWindows cannot be called like this; got too many positional"):
        sk.SessionWindows("2h")
    assert repr(sk.SessionWindows(inactivity_gap="2h", grace="0s")) == 'SessionWindows(inactivity_gap="2h", grace="0s")'
